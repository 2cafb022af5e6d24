"""Request bodies: media type, decoding, the object's kind and version, unknown and duplicate fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastapi_core import errors
from fastapi_core.codec import json as json_codec
from fastapi_core.codec.negotiate import content_type
from fastapi_core.registry.definition import Tree
from fastapi_core.schema import normalize
from fastapi_core.schema.types import Type

if TYPE_CHECKING:
    from fastapi_core.request.context import RequestContext

ACCEPTED = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")


@dataclass(frozen=True, slots=True)
class Expected:
    """The kind an endpoint takes."""

    kind: str
    group: str
    version: str
    type: Type

    @property
    def group_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


def parse_body(ctx: RequestContext) -> tuple[Any, list[str]]:
    """(tree, duplicate field messages) of the body in its media type; 415 for an unknown one, 400 when broken."""
    request = ctx.request
    header = request.header(b"content-type")
    form = content_type(header.decode("latin-1") if header else "")
    if form is None:
        raise errors.unsupported_media_type(ACCEPTED)
    return parse_bytes(request.body, form)


def parse_bytes(body: bytes, form: str) -> tuple[Any, list[str]]:
    if form == "yaml":
        from fastapi_core.codec import yaml as yaml_codec

        parsed = yaml_codec.parse(body)
    else:
        parsed = json_codec.parse(body)
    return parsed.tree, parsed.duplicates


def read_object(ctx: RequestContext, expected: Expected, validation: str) -> Tree:
    """The body as a canonical tree of the expected kind.

    `validation` is the fieldValidation level: Strict refuses unknown and duplicate fields, Warn reports them as
    Warning headers, Ignore drops them silently.
    """
    try:
        tree, duplicates = parse_body(ctx)
    except json_codec.DecodeError as error:
        raise cannot_handle(expected, expected, str(error)) from error
    if tree is None:
        tree = {}
    if not isinstance(tree, dict):
        raise cannot_handle(
            expected,
            expected,
            f"json: cannot unmarshal {normalize.json_kind(tree)} into Go value of type struct "
            '{ APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }',
        )
    check_kind(tree, expected)
    return conform(ctx, tree, expected, validation, duplicates)


def check_kind(tree: Tree, expected: Expected) -> None:
    """400 unless apiVersion and kind, where given, are the endpoint's."""
    kind = tree.get("kind") or expected.kind
    version = tree.get("apiVersion") or expected.group_version
    if not isinstance(kind, str) or not isinstance(version, str):
        raise errors.bad_request("couldn't get version/kind; json parse error: json: cannot unmarshal value into Go struct")
    if kind != expected.kind:
        raise errors.bad_request(
            f"{kind} in version {errors.go_quote(version.rpartition('/')[2])} cannot be handled as a {expected.kind}: "
            f"converting ({_internal(version)}.{kind}) to ({_internal(expected.group_version)}.{expected.kind}): unknown conversion"
        )
    if version != expected.group_version:
        raise errors.bad_request(
            f"the API version in the data ({version}) does not match the expected API version ({expected.group_version})"
        )


def _internal(group_version: str) -> str:
    group, _, version = group_version.rpartition("/")
    return f"{group.partition('.')[0] or 'core'}.{version}"


def conform(ctx: RequestContext, tree: Tree, expected: Expected, validation: str, duplicates: list[str]) -> Tree:
    """Normalise a tree to its type, reporting unknown and duplicate fields as asked."""
    try:
        result = normalize.normalize(expected.type, tree)
    except normalize.TypeMismatch as error:
        raise cannot_handle(expected, expected, str(error)) from error
    problems = [f'unknown field "{path}"' for path in result.unknown] if result.unknown else []
    problems += duplicates
    if problems and validation != "Ignore":
        if validation == "Strict":
            raise cannot_handle(expected, expected, "strict decoding error: " + ", ".join(problems))
        for problem in problems:
            ctx.warn(problem)
    conformed = result.tree
    conformed["kind"], conformed["apiVersion"] = expected.kind, expected.group_version
    return conformed


def cannot_handle(actual: Expected, expected: Expected, reason: str) -> errors.APIError:
    return errors.bad_request(
        f"{actual.kind} in version {errors.go_quote(actual.version)} cannot be handled as a {expected.kind}: {reason}"
    )
