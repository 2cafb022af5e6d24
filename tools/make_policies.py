"""Makes `fastapi_core/authz/data/policies.json` from `../shared/facts/rbac.json`.

The facts are a recording of a live server; our data leaves out what all the objects share (one label, one annotation, the API
group of role references). `--check` fails when they differ.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "fastapi_core" / "authz" / "data" / "policies.json"
FACTS = ROOT.parent / "shared" / "facts" / "rbac.json"

KINDS = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
ANNOTATIONS = {"rbac.authorization.kubernetes.io/autoupdate": "true"}
BOOTSTRAPPING = "kubernetes.io/bootstrapping"
GROUP = "rbac.authorization.k8s.io"


def entry(name: str, fact: dict[str, Any]) -> dict[str, Any]:
    """One object in our form; ValueError when it does not share what all share."""
    labels = dict(fact["labels"])
    if fact["annotations"] != ANNOTATIONS or labels.pop(BOOTSTRAPPING, "") != "rbac-defaults":
        raise ValueError(f"{name} is not like the others")
    found: dict[str, Any] = {"labels": labels} if labels else {}
    found |= {
        member: fact[member] for member in ("rules", "aggregationRule", "subjects") if fact.get(member) is not None
    }
    if "roleRef" in fact:
        reference = fact["roleRef"]
        if reference["apiGroup"] != GROUP:
            raise ValueError(f"{name} refers to another group")
        found["roleRef"] = {"kind": reference["kind"], "name": reference["name"]}
    return found


def document(facts: dict[str, dict[str, Any]]) -> str:
    """One object a line."""
    parts = []
    for kind in KINDS:
        lines = [
            f"{json.dumps(name)}:{json.dumps(entry(name, fact), separators=(',', ':'), sort_keys=True)}"
            for name, fact in facts[kind].items()
        ]
        parts.append(f"{json.dumps(kind)}:{{\n" + ",\n".join(lines) + "\n}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    made = document(json.loads(FACTS.read_text()))
    if parser.parse_args().check:
        return int(made != DATA.read_text())
    DATA.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
