"""Discovery documents of backends as entries of the aggregated document. Anything may come: what has not the form of the
document is a ValueError, and nothing of it gets into ours.
"""

from __future__ import annotations

from typing import Any

from fastapi_core.schema.errors import TypeMismatch
from fastapi_core.schema.normalize import normalize
from fastapi_core.schema.tables import type_of

Tree = dict[str, Any]
Found = dict[tuple[str, str], list[Tree]]
"""(group, version) -> resources."""
ACCEPT = b"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def is_aggregated(content_type: bytes) -> bool:
    """Whether a content type is that of the aggregated document in the version we understand."""
    kind, *parameters = (part.strip().lower() for part in content_type.split(b";"))
    wanted = {b"g=apidiscovery.k8s.io", b"v=v2", b"as=apigroupdiscoverylist"}
    return kind == b"application/json" and wanted <= set(parameters)


def aggregated(tree: Any) -> Found:
    """Resources of every version of an aggregated document."""
    shaped = _shaped("apidiscovery.k8s.io/v2.APIGroupDiscoveryList", tree)
    found: Found = {}
    for item in shaped.get("items") or ():
        for version in item.get("versions") or ():
            resources = version.get("resources") or []
            for resource in resources:
                _complete(resource)
                for subresource in resource.get("subresources") or ():
                    _complete(subresource)
            group = (item.get("metadata") or {}).get("name") or ""
            found[group, version.get("version") or ""] = resources
    return found


def _complete(entry: Tree) -> None:
    # Old clients do not expect that there is none.
    if not entry.get("responseKind"):
        entry["responseKind"] = {"group": "", "version": "", "kind": ""}


def legacy(tree: Any) -> list[Tree]:
    """The resources of an APIResourceList."""
    shaped = _shaped("meta/v1.APIResourceList", tree)
    found: dict[str, Tree] = {}
    for entry in shaped.get("resources") or ():
        name, _, sub = (entry.get("name") or "").partition("/")
        scope = "Namespaced" if entry.get("namespaced") else "Cluster"
        kind = {key: entry.get(key) or "" for key in ("group", "version", "kind")}
        resource = found.setdefault(name, {"resource": name, "responseKind": _NONE, "scope": scope})
        if sub:
            made = {"subresource": sub, "responseKind": kind, "verbs": list(entry.get("verbs") or ())}
            resource.setdefault("subresources", []).append(made)
            continue
        subresources = resource.pop("subresources", None)
        resource |= {
            "responseKind": kind,
            "scope": scope,
            "singularResource": entry.get("singularName") or "",
            "verbs": list(entry.get("verbs") or ()),
        }
        resource |= {key: entry[key] for key in ("shortNames", "categories") if entry.get(key)}
        if subresources:
            resource["subresources"] = subresources
    for resource in found.values():
        resource.setdefault("singularResource", "")
        resource.setdefault("verbs", [])
    return list(found.values())


_NONE = {"group": "", "version": "", "kind": ""}


def _shaped(ref: str, tree: Any) -> Tree:
    if not isinstance(tree, dict):
        raise ValueError("the document is no object")
    try:
        return normalize(type_of(ref), tree).tree
    except TypeMismatch as error:
        raise ValueError(str(error)) from None
