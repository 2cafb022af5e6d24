"""The roles and bindings every server has, and what to do with those that are there already.

As in the reference an existing object only ever gains: rules, subjects and labels that somebody took away come back at the
next start, what somebody added stays, and the annotation `autoupdate: "false"` keeps an object as it is.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from fastapi_core.authz import rules

Tree = dict[str, Any]

GROUP = "rbac.authorization.k8s.io"
AUTO_UPDATE = "rbac.authorization.kubernetes.io/autoupdate"
_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_ANNOTATIONS = {AUTO_UPDATE: "true"}
_KINDS = {
    "clusterroles": "ClusterRole",
    "clusterrolebindings": "ClusterRoleBinding",
    "roles": "Role",
    "rolebindings": "RoleBinding",
}
NODE_ROLE = "system:node"


@lru_cache(maxsize=1)
def _data() -> dict[str, dict[str, Tree]]:
    found: dict[str, dict[str, Tree]] = orjson.loads((Path(__file__).parent / "data" / "policies.json").read_bytes())
    return found


def node_rules() -> list[Tree]:
    """What every node may do, as far as it does not depend on the node."""
    found: list[Tree] = _data()["clusterroles"][NODE_ROLE]["rules"]
    return found


def expected() -> list[tuple[str, list[Tree]]]:
    """The objects by resource."""
    return [(plural, [_object(kind, key, entry) for key, entry in _data()[plural].items()])
            for plural, kind in _KINDS.items()]  # fmt: skip


def _object(kind: str, key: str, entry: Tree) -> Tree:
    namespace, _, name = key.rpartition("/")
    metadata: Tree = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    metadata["labels"] = dict(sorted({**_LABELS, **entry.get("labels", {})}.items()))
    metadata["annotations"] = dict(_ANNOTATIONS)
    tree: Tree = {"kind": kind, "apiVersion": f"{GROUP}/v1", "metadata": metadata}
    if kind.endswith("Binding"):
        if entry.get("subjects"):
            tree["subjects"] = entry["subjects"]
        tree["roleRef"] = {"apiGroup": GROUP, **entry["roleRef"]}
        return tree
    tree["rules"] = entry.get("rules")
    if entry.get("aggregationRule"):
        tree["aggregationRule"] = entry["aggregationRule"]
    return tree


class Correction(NamedTuple):
    """What an existing object should be instead; `anew`: it has to be removed and made again."""

    tree: Tree
    anew: bool = False


def corrected(existing: Tree, wanted: Tree) -> Correction | None:
    """What an existing role or binding lacks; None when it is fine or nobody may touch it."""
    metadata = existing["metadata"]
    annotations = metadata.get("annotations") or {}
    if annotations.get(AUTO_UPDATE) == "false":
        return None
    if "roleRef" in wanted and existing.get("roleRef") != wanted["roleRef"]:
        # A reference cannot be changed, so the binding gives way to the one that should be there.
        return Correction(wanted, anew=True)
    tree = {**existing, "metadata": dict(metadata)}
    for member in ("annotations", "labels"):
        merged = dict(sorted({**wanted["metadata"][member], **(metadata.get(member) or {})}.items()))
        if merged != (metadata.get(member) or {}):
            tree["metadata"][member] = merged
    if "roleRef" in wanted:
        _add(tree, "subjects", wanted.get("subjects") or ())
    elif "aggregationRule" in wanted:
        _aggregate(tree, wanted["aggregationRule"])
    elif tree.get("rules") != wanted["rules"]:
        missing = rules.uncovered(existing.get("rules") or (), wanted["rules"] or ())
        if missing:
            tree["rules"] = [*(existing.get("rules") or ()), *missing]
    return None if tree == existing else Correction(tree)


def _add(tree: Tree, member: str, wanted: Any) -> None:
    present = tree.get(member) or []
    missing = [item for item in wanted if item not in present]
    if missing:
        tree[member] = [*present, *missing]


def _aggregate(tree: Tree, wanted: Tree) -> None:
    rule = dict(tree.get("aggregationRule") or {})
    _add(rule, "clusterRoleSelectors", wanted["clusterRoleSelectors"])
    if rule != (tree.get("aggregationRule") or {}):
        tree["aggregationRule"] = rule
