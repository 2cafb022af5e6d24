"""Writes `fastapi_core/schema/data/*.json` from the facts about the API (form: see `fastapi_core/schema/tables.py`).

    python tools/make_types.py FACTS_DIRECTORY [--check]

`FACTS_DIRECTORY` holds `types/*.json` and `samples/*.json`; the samples tell in which order JSON prints the fields of
a type, which the facts about types do not. `--check` writes nothing and fails when a file would change.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parent.parent / "fastapi_core" / "schema" / "data"
Record = dict[str, Any]


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


#: Of no sample, but in documents everybody has seen.
_UNSEEN = {
    "meta/v1.APIResource": (
        "name",
        "singularName",
        "namespaced",
        "group",
        "version",
        "kind",
        "verbs",
        "shortNames",
        "categories",
    ),
}


class Facts:
    """All type facts, by reference."""

    def __init__(self, folder: Path) -> None:
        self.files: dict[str, Record] = {}
        self.types: dict[str, Record] = {}
        self.order: dict[str, list[str]] = {ref: list(names) for ref, names in _UNSEEN.items()}
        for path in sorted((folder / "types").glob("*.json")):
            data = json.loads(path.read_text())
            group = data["group"] or "core"
            gv = f"{group}/{data['version']}" if data["version"] else group
            self.files[gv] = data
            for name, record in data["types"].items():
                self.types[f"{gv}.{name}"] = record
        for path in sorted((folder / "samples").glob("*.json")):
            self._observe(json.loads(path.read_text()))

    def _observe(self, sample: Record) -> None:
        version = sample.get("apiVersion", "")
        gv = version if "/" in version else f"core/{version}"
        for ref in (f"{gv}.{sample.get('kind')}", f"meta/v1.{sample.get('kind')}"):
            if ref in self.types:
                self._see(ref, sample)
                return

    def _see(self, ref: str, value: Any) -> None:
        record = self.types[ref]
        if record.get("json") or not isinstance(value, dict):
            return
        names = [name for name in value if not (record.get("kind") and name in ("kind", "apiVersion"))]
        self._note_order(ref, names)
        fields = self.flat(ref)
        for name in names:
            field = fields[name]
            if field["type"] not in self.types:
                continue
            child = value[name]
            card = field.get("card")
            members = () if child is None else child if card == "list" else child.values() if card == "map" else [child]
            for member in members:
                self._see(field["type"], member)

    def _note_order(self, ref: str, names: list[str]) -> None:
        """The longest list of members seen is the order of a type, and of the structs inlined in it."""
        if len(names) > len(self.order.get(ref, ())):
            self.order[ref] = names
        for field in self.types[ref]["fields"].values():
            if field.get("inline"):
                members = self.flat(field["type"])
                self._note_order(field["type"], [name for name in names if name in members])

    def flat(self, ref: str) -> dict[str, Record]:
        """JSON name -> field, inlined structs flattened."""
        out: dict[str, Record] = {}
        for name, field in self.types[ref]["fields"].items():
            if field.get("inline"):
                out.update(self.flat(field["type"]))
            else:
                out[name] = field
        return out

    def ordered(self, ref: str) -> list[tuple[str, Record]]:
        """Declared fields in JSON order: as seen in a sample, unseen ones by their number."""
        seen = {name: i for i, name in enumerate(self.order.get(ref, ()))}
        fields: dict[str, Record] = self.types[ref]["fields"]

        def position(name: str, field: Record) -> int | None:
            members = self.flat(field["type"]) if field.get("inline") else {name: field}
            return min((seen[m] for m in members if m in seen), default=None)

        known = [(p, n, f) for n, f in fields.items() if (p := position(n, f)) is not None]
        out = [(n, f) for _, n, f in sorted(known, key=lambda entry: entry[0])]
        unknown = [(n, f) for n, f in fields.items() if position(n, f) is None]
        for name, field in sorted(unknown, key=lambda entry: entry[1]["num"]):
            before = [i for i, (_, other) in enumerate(out) if other["num"] < field["num"]]
            out.insert(before[-1] + 1 if before else 0, (name, field))
        return out


def short(ref: str, gv: str) -> str:
    """A reference as the data file of `gv` writes it."""
    return ref[len(gv) :] if ref.startswith(gv + ".") else ref


def header(record: Record) -> str:
    words = []
    if record.get("kind"):
        words.append("kind")
    gvk = record.get("gvk")
    if gvk:
        words.append("gvk=" + (gvk if isinstance(gvk, str) else ",".join(gvk)))
    for key, word in (("json", "json"), ("mapType", "map")):
        if record.get(key):
            words.append(f"{word}={record[key]}")
    for key in ("oa", "unions"):
        if record.get(key):
            words.append(f"{key}={compact(record[key])}")
    return " ".join(words)


def enum_word(field: Record, enums: dict[str, list[Any]]) -> str:
    listed = field.get("enum") or field.get("elemEnum")
    if not listed:
        return ""
    alias = enums.get(field.get("elemAlias") or field.get("alias") or "")
    return "e" if alias is not None and sorted(alias) == sorted(listed) else "e=" + ",".join(sorted(listed))


def field_line(name: str, field: Record, gv: str, enums: dict[str, list[Any]]) -> str:
    shape = ("*" if field.get("ptr") else "") + {"list": "[]", "map": "{}"}.get(field.get("card", ""), "")
    words = [name, str(field["num"]), shape + short(field["type"], gv)]
    if field.get("inline"):
        words.append("~")
    elif field.get("json") is False:
        words.append("-")
    else:
        words += {None: ["+"], "empty": [], "empty+zero": ["0"]}[field.get("omit")]
    if field.get("required"):
        words.append("!")
    if "default" in field:
        words.append("=" + compact(field["default"]))
    enum = enum_word(field, enums)
    if enum:
        words.append(enum)
    if field.get("listType"):
        keys = field.get("listKeys")
        words.append(f"list={field['listType']}" + (":" + ",".join(keys) if keys else ""))
    for key, word in (("mapType", "map"), ("mergeKey", "merge"), ("patch", "patch")):
        if field.get(key):
            words.append(f"{word}={field[key]}")
    for key, word in (("alias", "as"), ("elemAlias", "of"), ("keyAlias", "key")):
        if field.get(key):
            words.append(f"{word}={short(field[key], gv)}")
    if field.get("gates"):
        words.append("gates=" + ",".join(field["gates"]))
    if any(" " in word or not word for word in words):
        raise ValueError(f"{gv}: a word of {words} cannot be written")
    return " ".join(words)


def document(gv: str, facts: Facts, enums: dict[str, list[Any]]) -> str:
    data = facts.files[gv]
    listed = {
        name: {"values": entry["values"]} if entry.get("openapi") else {"values": entry["values"], "openapi": False}
        for name, entry in sorted(data.get("enums", {}).items())
    }
    out = [f'{{"group":{compact(data["group"] or "core")},"version":{compact(data["version"])},']
    out.append(f'"served":{compact(data["served"])},"proto":{compact(data["protoPackage"])},')
    out.append('"enums":{')
    out.append(",\n".join(f"{compact(name)}:{compact(entry)}" for name, entry in listed.items()))
    out.append('},"types":{')
    types = []
    for name, record in sorted(data["types"].items()):
        lines = [header(record), *(field_line(n, f, gv, enums) for n, f in facts.ordered(f"{gv}.{name}"))]
        types.append(f"{compact(name)}:[" + ",\n ".join(compact(line) for line in lines) + "]")
    out.append(",\n".join(types))
    out.append("}}")
    return "\n".join(out) + "\n"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("facts", type=Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(argv)
    facts = Facts(options.facts)
    enums = {
        f"{gv}.{name}": entry["values"]
        for gv, data in facts.files.items()
        for name, entry in data.get("enums", {}).items()
    }
    wanted = {gv.replace("/", "_") + ".json": document(gv, facts, enums) for gv in facts.files}
    present = {path.name: path.read_text() for path in OUT.glob("*.json")}
    changed = sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))
    if options.check:
        for name in changed:
            print(f"out of date: {name}", file=sys.stderr)
        return 1 if changed else 0
    OUT.mkdir(parents=True, exist_ok=True)
    for name in changed:
        if name in wanted:
            (OUT / name).write_text(wanted[name])
        else:
            (OUT / name).unlink()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
