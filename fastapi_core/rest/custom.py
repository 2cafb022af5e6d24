"""Bodies of custom resources: there is no type to decode into, the schema prunes and checks what has been parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi_core import errors
from fastapi_core.codec import json as json_codec
from fastapi_core.codec.decode import unknown
from fastapi_core.errors import FieldError
from fastapi_core.registry.definition import Form, ResourceDefinition, Tree
from fastapi_core.schema.normalize import MAX_COMPLAINTS

if TYPE_CHECKING:
    from fastapi_core.rest.body import Expected


def conform(expected: Expected, form: Form, tree: Any, complaints: list[str], body: bytes) -> tuple[Tree, list[str]]:
    """The parsed body as an object of the expected kind, in place, and everything strict decoding complains about."""
    checked = identified(expected.kind, expected.group, expected.version, tree, body)
    problems, odd = form.coerce(checked, drop=False)
    if problems:
        raise errors.bad_request(
            f"{expected.kind} in version {errors.go_quote(expected.version)} cannot be handled as a {expected.kind}: "
            f"{_told(problems[0])}"
        )
    unknown_fields = _in_order(form.prune(checked), odd)
    found = [*complaints, *(unknown(path) for path in unknown_fields)]
    return checked, found[:MAX_COMPLAINTS]


def identified(kind: str, group: str, version: str, tree: Any, body: bytes) -> Tree:
    """400 unless the tree is an object that names its kind and the version of the path; 422 for another kind."""
    group_version = f"{group}/{version}"
    if not isinstance(tree, dict):
        text = f"json: cannot unmarshal {json_codec.summary(body)} into Go value"
        raise errors.bad_request(
            f"couldn't get version/kind; json parse error: {text} ({json_codec.summary(body)})",
        )
    given = tree.get("kind")
    if not isinstance(given, str) or not given:
        shown = body if body[:1] == b"{" else json_codec.encode(tree)
        raise errors.bad_request(
            f"the object provided is unrecognized (must be of type {kind}): Object 'Kind' is missing in "
            f"'{shown.decode('utf-8', 'replace')}' ({json_codec.summary(shown)})"
        )
    found = tree.get("apiVersion")
    if found != group_version:
        shown_version = found if isinstance(found, str) else ""
        raise errors.bad_request(
            f"the API version in the data ({shown_version}) does not match the expected API version ({group_version})"
        )
    if given != kind:
        metadata = tree.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else ""
        problem = FieldError("Invalid value", "kind", f"must be {kind}", given)
        raise errors.invalid(given, group, name if isinstance(name, str) else "", [problem])
    return tree


def conform_patched(definition: ResourceDefinition, form: Form, patched: Tree, reported: list[str]) -> Tree:
    """A patched object read as one that came in a body; unknown members are added to `reported`."""
    if not isinstance(patched.get("metadata", {}), dict):
        raise undecodable("json: cannot unmarshal into Go struct field .metadata of type v1.ObjectMeta")
    if patched.get("kind") != definition.kind or patched.get("apiVersion") != definition.group_version:
        raise _other(definition, patched)
    tree = patched
    problems, odd = form.coerce(tree, drop=False)
    if problems:
        raise undecodable(_told(problems[0]))
    reported += [unknown(path) for path in _in_order(form.prune(tree), odd)]
    tree["metadata"] = dict(tree.get("metadata") or {})
    return tree


def _other(definition: ResourceDefinition, patched: Tree) -> errors.APIError:
    """What a patched object is that is of another kind or version."""
    kind, version = patched.get("kind"), patched.get("apiVersion")
    if not isinstance(kind, str) or not kind:
        return undecodable(f"Object 'Kind' is missing in '{json_codec.encode(patched).decode('utf-8', 'replace')}'")
    if not isinstance(version, str) or not version:
        return errors.internal("Object 'apiVersion' is missing in 'object has no apiVersion field'")
    if kind != definition.kind:
        problem = FieldError("Invalid value", "kind", f"must be {definition.kind}", kind)
    else:
        problem = FieldError("Invalid value", "apiVersion", f"must be {definition.group_version}", version)
    name = (patched.get("metadata") or {}).get("name")
    return errors.invalid(kind, version.rpartition("/")[0], name if isinstance(name, str) else "", [problem])


def _told(problem: FieldError) -> str:
    """The object's own metadata is told without its place."""
    return problem.detail if problem.field == "metadata" else str(problem)


def _in_order(pruned: list[str], odd: list[str]) -> list[str]:
    """Unknown members: those of the object's own metadata, those of the schema, those of objects inside."""
    own = [path for path in odd if path.startswith("metadata.")]
    return [*own, *pruned, *(path for path in odd if not path.startswith("metadata."))]


def undecodable(text: str) -> errors.APIError:
    """What a patch made of the object cannot be read."""
    return errors.invalid("", "", "", [FieldError("Invalid value", "patch", text, "")])
