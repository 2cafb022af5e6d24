"""Makes `fastapi_core/apis/data/resources.json` and `optional.json` from `../shared/facts/resources.json`.

The facts are a recording of a live server; our data holds the same knowledge with everything left out that follows from
the rest (default verbs, plain key prefixes, selectors that are their own path). `--check` fails when they differ.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "fastapi_core" / "apis" / "data"
#: File -> how the reference serves what is in it.
FILES = {"resources.json": "default", "optional.json": "optin"}
FACTS = ROOT.parent / "shared" / "facts" / "resources.json"

ALL_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
METADATA_FIELDS = ("metadata.name", "metadata.namespace")

#: Selectors that are not the path of a member; numbers are list positions.
SPECIAL_PATHS = {
    ("pods", "spec.host"): "spec.nodeName",
    ("pods", "status.podIP"): "status.podIPs.0.ip",
    ("pods", "status.podIPs"): "status.podIPs.-",  # accepted, but the reference never has a value for it
    ("jobs", "status.successful"): "status.succeeded",
    ("events", "source"): "source.component",
}


def selector_path(plural: str, name: str) -> str:
    """Dotted path in the served object that a field selector reads."""
    return SPECIAL_PATHS.get((plural, name), name)


def split_kind(text: str) -> list[str]:
    """`policy/v1/Eviction` or `Pod` -> [kind, group, version]."""
    parts = text.split("/")
    if len(parts) == 1:
        return [parts[0]]
    if len(parts) == 2:
        return [parts[1], "", parts[0]]
    return [parts[2], parts[0], parts[1]]


def record(fact: dict[str, Any]) -> dict[str, Any]:
    """One resource in our form: only what differs from the defaults of `apis/resources.py`."""
    plural = fact["plural"]
    out: dict[str, Any] = {"group": fact["group"], "version": fact["version"], "plural": plural, "kind": fact["kind"]}
    if fact["singular"] != fact["kind"].lower():
        out["singular"] = fact["singular"]
    if fact["scope"] == "Cluster":
        out["cluster"] = True
    if fact["verbs"] != ALL_VERBS:
        out["verbs"] = fact["verbs"]
    for ours, theirs in (("short", "short"), ("categories", "categories")):
        if fact.get(theirs):
            out[ours] = fact[theirs]
    subresources = {
        name: [sub["verbs"], *split_kind(sub["kind"])] for name, sub in fact.get("subresources", {}).items()
    }
    if subresources:
        out["subresources"] = subresources
    if "gate" in fact:
        out["gate"] = fact["gate"]
    if "etcdPrefix" not in fact:
        out["virtual"] = True
        return out
    return out | stored(fact)


def stored(fact: dict[str, Any]) -> dict[str, Any]:
    """The members that only a resource with storage has."""
    out: dict[str, Any] = {"hash": fact["storageVersionHash"]}
    if fact["etcdPrefix"] != fact["plural"]:
        out["prefix"] = fact["etcdPrefix"]
    group_version = f"{fact['group']}/{fact['version']}".lstrip("/")
    if fact["storage"] != group_version:
        out["storage"] = fact["storage"]
    fields = {n: selector_path(fact["plural"], n) for n in fact["fieldSelectors"] if n not in METADATA_FIELDS}
    if fields:
        out["fields"] = {name: path if path != name else "" for name, path in fields.items()}
    if "metadata.namespace" not in fact["fieldSelectors"]:
        out["noNamespaceField"] = True
    if fact["plural"] == "cronjobs":
        # The facts have read the case of a version that is gone.
        fact = {**fact, "deletePropagation": "background"}
    for name, key, usual in (
        ("createOnUpdate", "createOnUpdate", False),
        ("unconditional", "unconditionalUpdate", True),
        ("graceful", "graceful", False),
        ("returnDeleted", "returnDeletedObject", False),
        ("propagation", "deletePropagation", "background"),
    ):
        if fact[key] != usual:
            out[name] = fact[key]
    generation = fact["generation"]
    if generation["create"]:
        out["generation"] = generation["create"]
    if generation["bump"]:
        out["bump"] = True
    if "ttl" in fact:
        out["ttl"] = 3600
    return out


def build(facts: dict[str, Any], how: str) -> str:
    """The text of a data file: one resource a line."""
    served = [r for r in facts["resources"].values() if r["served"] == how]
    lines = [json.dumps(record(r), separators=(",", ":")) for r in served]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--facts", type=Path, default=FACTS)
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 when the data file is out of date")
    options = parser.parse_args()
    facts = json.loads(options.facts.read_text())
    DATA.mkdir(parents=True, exist_ok=True)
    for name, how in FILES.items():
        text, path = build(facts, how), DATA / name
        if not options.check:
            path.write_text(text)
        elif path.read_text() != text:
            print(f"{path} is out of date: run {Path(__file__).name}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
