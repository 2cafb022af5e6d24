"""OpenAPI documents of backends: checked, cut down to what is the backend's own, merged, converted from v2 to v3.

Anything may come; what has not the form of a document is a ValueError, so that it is left out and spoils nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from hashlib import sha512
from typing import Any

from fastapi_core.records import dataclass

Tree = dict[str, Any]
DEFINITIONS, SCHEMAS = "#/definitions/", "#/components/schemas/"
PARAMETERS = "#/parameters/"
KINDS = "x-kubernetes-group-version-kind"
DEPTH = 200
METHODS = ("get", "put", "post", "delete", "options", "head", "patch")


@dataclass(frozen=True, slots=True)
class Swagger:
    """A v2 document that has been checked."""

    body: bytes
    etag: bytes
    tree: Tree = field(compare=False)

    @property
    def hash(self) -> str:
        return sha512(self.body).hexdigest().upper()


def checked(tree: Any) -> Tree:
    """The v2 document, if it is one that can be merged and encoded."""
    from fastapi_core.openapi import protobuf_v2

    _members(tree, paths=dict, definitions=dict, parameters=dict)
    _shallow(tree)
    for path, item in (tree.get("paths") or {}).items():
        if not path.startswith("/") or not isinstance(item, dict):
            raise ValueError(f"path {path!r} is none")
    try:
        protobuf_v2.encode(tree)
    except (TypeError, KeyError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        raise ValueError(f"not an OpenAPI v2 document: {error}") from None
    return dict(tree)


def checked_v3(tree: Any) -> Tree:
    """The v3 document, if it can be encoded."""
    from fastapi_core.openapi import protobuf_v3

    _members(tree, paths=dict, components=dict)
    _shallow(tree)
    try:
        protobuf_v3.encode(tree)
    except (TypeError, KeyError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        raise ValueError(f"not an OpenAPI v3 document: {error}") from None
    return dict(tree)


def _members(tree: Any, **kinds: type) -> None:
    if not isinstance(tree, dict):
        raise ValueError("the document is no object")
    for name, kind in kinds.items():
        if tree.get(name) is not None and not isinstance(tree[name], kind):
            raise ValueError(f"{name} has another type")


def _shallow(tree: Any) -> None:
    """ValueError for what is nested too deeply to be walked."""
    level: list[Any] = [tree]
    for _ in range(DEPTH):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
        if not level:
            return
    raise ValueError("the document is nested too deeply")


def index(tree: Any) -> Mapping[str, str]:
    """Name -> path of a v3 index; entries that are none are left out."""
    _members(tree, paths=dict)
    found = {}
    for name, entry in (tree.get("paths") or {}).items():
        url = entry.get("serverRelativeURL") if isinstance(entry, dict) else None
        if isinstance(url, str) and url.startswith("/openapi/v3/") and url.isascii() and url.isprintable():
            found[name] = url.replace(" ", "%20")
    return found


def rewritten(value: Any, change: Callable[[str], str]) -> Any:
    """The tree with every reference changed."""
    if isinstance(value, dict):
        return {
            key: change(entry) if key == "$ref" and isinstance(entry, str) else rewritten(entry, change)
            for key, entry in value.items()
        }
    if isinstance(value, list):
        return [rewritten(entry, change) for entry in value]
    return value


def references(value: Any, prefix: str) -> set[str]:
    """Names behind all references that begin with the prefix."""
    found: set[str] = set()
    level: list[Any] = [value]
    while level:
        node = level.pop()
        if isinstance(node, dict):
            target = node.get("$ref")
            if isinstance(target, str) and target.startswith(prefix):
                found.add(target[len(prefix) :])
            level.extend(node.values())
        elif isinstance(node, list):
            level.extend(node)
    return found


def own_part(tree: Tree, roots: Iterable[str]) -> Tree:
    """What belongs to some group versions: paths at and below `roots`, and the definitions and parameters they use."""
    chosen = tuple(roots)
    below = tuple(root + "/" for root in chosen)
    paths = {path: item for path, item in (tree.get("paths") or {}).items() if path in chosen or path.startswith(below)}
    parameters = tree.get("parameters") or {}
    used_parameters = {name: parameters[name] for name in sorted(references(paths, PARAMETERS)) if name in parameters}
    definitions = tree.get("definitions") or {}
    used: dict[str, Any] = {}
    pending = references([paths, used_parameters], DEFINITIONS)
    while pending:
        name = pending.pop()
        if name not in used and name in definitions:
            used[name] = definitions[name]
            pending |= references(definitions[name], DEFINITIONS) - used.keys()
    return {**tree, "paths": paths, "definitions": used, "parameters": used_parameters}


def merge(into: Tree, part: Tree) -> None:
    """Add paths that are not there; definitions and parameters of the same name that say something else get another."""
    names: dict[str, str] = {}
    for prefix, member in ((DEFINITIONS, "definitions"), (PARAMETERS, "parameters")):
        known = into.setdefault(member, {})
        for name, value in (part.get(member) or {}).items():
            other = _free(known, name, value)
            if other != name:
                names[prefix + name] = prefix + other
    renamed = rewritten(part, lambda ref: names.get(ref, ref)) if names else part
    for prefix, member in ((DEFINITIONS, "definitions"), (PARAMETERS, "parameters")):
        known = into[member]
        for name, value in (renamed.get(member) or {}).items():
            target = names.get(prefix + name, prefix + name)[len(prefix) :]
            known[target] = _joined(known[target], value) if target in known else value
    paths = into.setdefault("paths", {})
    for path, item in (renamed.get("paths") or {}).items():
        paths.setdefault(path, item)


def _free(known: Tree, name: str, value: Any) -> str:
    """The name under which the value is known, or may be."""
    candidate, number = name, 2
    while candidate in known and not _same(known[candidate], value):
        candidate = f"{name}_v{number}"
        number += 1
    return candidate


def _same(one: Any, other: Any) -> bool:
    if not isinstance(one, dict) or not isinstance(other, dict):
        return bool(one == other)
    return {k: v for k, v in one.items() if k != KINDS} == {k: v for k, v in other.items() if k != KINDS}


def _joined(one: Any, other: Any) -> Any:
    """One definition that stands for the kinds of both."""
    if not isinstance(one, dict) or not isinstance(other, dict) or not isinstance(other.get(KINDS), list):
        return one
    given = one.get(KINDS)
    kinds: list[Any] = given if isinstance(given, list) else []
    more = [kind for kind in other[KINDS] if kind not in kinds]
    return {**one, KINDS: [*kinds, *more]} if more else one


# v2 -> v3


def to_v3(tree: Tree) -> Tree:
    """The v3 form of a v2 document."""
    parameters = {name: value for name, value in (tree.get("parameters") or {}).items() if isinstance(value, dict)}
    paths = {path: _item(item, tree, parameters) for path, item in (tree.get("paths") or {}).items()}
    components: Tree = {}
    definitions = tree.get("definitions") or {}
    if definitions:
        components["schemas"] = _schema(definitions)
    info = tree.get("info") if isinstance(tree.get("info"), dict) else {}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": components}


def _schema(value: Any) -> Any:
    return rewritten(value, lambda ref: SCHEMAS + ref[len(DEFINITIONS) :] if ref.startswith(DEFINITIONS) else ref)


def _item(item: Any, tree: Tree, parameters: Mapping[str, Tree]) -> Tree:
    out: Tree = {}
    if not isinstance(item, dict):
        return out
    for name, value in item.items():
        if name in METHODS and isinstance(value, dict):
            out[name] = _operation(value, tree, parameters)
        elif name == "parameters":
            out[name] = [_parameter(p) for p in _resolved(value, parameters) if p.get("in") not in ("body", "formData")]
        elif name.startswith("x-"):
            out[name] = value
    return out


def _resolved(value: Any, parameters: Mapping[str, Tree]) -> list[Tree]:
    found = []
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, dict):
            ref = entry.get("$ref")
            found.append(parameters.get(ref[len(PARAMETERS) :], {}) if isinstance(ref, str) else entry)
    return [entry for entry in found if entry.get("name")]


def _operation(operation: Tree, tree: Tree, parameters: Mapping[str, Tree]) -> Tree:
    taken = ("tags", "summary", "description", "operationId", "deprecated")
    out = {name: operation[name] for name in taken if name in operation}
    out |= {name: value for name, value in operation.items() if name.startswith("x-")}
    consumes = operation.get("consumes") or tree.get("consumes") or ["application/json"]
    produces = operation.get("produces") or tree.get("produces") or ["application/json"]
    found = _resolved(operation.get("parameters"), parameters)
    others = [_parameter(p) for p in found if p.get("in") not in ("body", "formData")]
    if others:
        out["parameters"] = others
    for body in found:
        if body.get("in") == "body":
            content = {kind: {"schema": _schema(body.get("schema") or {})} for kind in _texts(consumes)}
            out["requestBody"] = {"content": content}
            if body.get("required"):
                out["requestBody"]["required"] = True
    responses = operation.get("responses")
    out["responses"] = {
        code: _response(answer, produces)
        for code, answer in (responses.items() if isinstance(responses, dict) else ())
        if isinstance(answer, dict)
    }
    return out


def _parameter(parameter: Tree) -> Tree:
    taken = ("name", "in", "description", "required")
    out = {name: parameter[name] for name in taken if name in parameter}
    schema = {k: v for k, v in parameter.items() if k not in taken and not k.startswith("x-") and k != "$ref"}
    schema.pop("collectionFormat", None)
    schema.pop("allowEmptyValue", None)
    if schema:
        out["schema"] = _schema(schema)
    return out


def _response(answer: Tree, produces: Any) -> Tree:
    out: Tree = {"description": answer.get("description") or ""}
    if isinstance(answer.get("schema"), dict):
        out["content"] = {kind: {"schema": _schema(answer["schema"])} for kind in _texts(produces)}
    return out


def _texts(value: Any) -> list[str]:
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []
