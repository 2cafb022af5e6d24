"""Request bodies: media type, decoding, the object's kind and version, unknown and duplicate fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fastapi_core import errors
from fastapi_core.codec import decode, protobuf
from fastapi_core.codec import json as json_codec
from fastapi_core.codec.negotiate import content_type
from fastapi_core.records import dataclass
from fastapi_core.registry.definition import Form, Tree
from fastapi_core.request import aside
from fastapi_core.rest import custom
from fastapi_core.schema.tables import type_for
from fastapi_core.schema.types import Type

if TYPE_CHECKING:
    from fastapi_core.request.context import RequestContext

ACCEPTED = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")

UNMARSHALABLE = (
    "object *unstructured.Unstructured does not implement the protobuf marshalling interface and cannot be encoded to a "
    "protobuf message"
)


#: The register of kinds that a group's objects are decoded with, as the reference names it.
_SCHEMES = {
    "apiextensions.k8s.io": "k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go:55",
    "apiregistration.k8s.io": "k8s.io/kube-aggregator/pkg/apiserver/scheme/scheme.go:28",
}
_SCHEME = "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30"


@dataclass(frozen=True, slots=True)
class Expected:
    """The kind an endpoint takes."""

    kind: str
    group: str
    version: str
    type: Type
    custom: bool = False
    """A custom resource: its type has no protobuf form."""
    defaults: Callable[[Tree], None] | None = None
    """What decoding fills in, for those who write the body down."""
    form: Form | None = None
    """The schema of a custom resource."""
    earlier: str = ""
    """An older apiVersion with objects of the same form."""

    @property
    def group_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


def body_form(ctx: RequestContext) -> str:
    """`json`, `yaml` or `protobuf`, by the request's media type; 415 for an unknown one."""
    header = ctx.request.header(b"content-type")
    form = content_type(header.decode("latin-1") if header else "")
    if form is None:
        raise errors.unsupported_media_type(ACCEPTED)
    return form


def read_object(ctx: RequestContext, expected: Expected, validation: str) -> Tree:
    """The body as a canonical tree of the expected kind.

    `validation` is the fieldValidation level: Strict refuses unknown and duplicate fields, Warn reports them as
    Warning headers, Ignore drops them silently.
    """
    tree = _read(ctx, expected, validation)
    if ctx.audit is not None:
        ctx.audit.decoded(tree, expected.defaults)
    return tree


def _read(ctx: RequestContext, expected: Expected, validation: str) -> Tree:
    body, form = ctx.request.body, body_form(ctx)
    if form == "protobuf":
        return _read_protobuf(body, expected)
    try:
        parsed = aside.parse(ctx, form)
    except decode.DecodeError as error:
        raise errors.bad_request(json_codec.unrecognized(expected.kind, error, body)) from error
    if expected.form is not None:
        tree, complaints = custom.conform(expected, expected.form, parsed.tree, parsed.complaints, body)
    else:
        check_kind(parsed.tree, expected, body)
        try:
            tree, complaints = decode.conform(expected.type, parsed, body)
        except decode.DecodeError as error:
            raise cannot_handle(expected, str(error)) from error
    if complaints and validation != "Ignore":
        if validation == "Strict":
            raise cannot_handle(expected, "strict decoding error: " + ", ".join(complaints))
        for complaint in complaints:
            warn(ctx, complaint)
    conformed: Tree = tree
    if expected.form is not None:
        return conformed
    conformed["kind"], conformed["apiVersion"] = expected.kind, expected.group_version
    if clears_owners(parsed.tree):
        conformed["metadata"] = {**(conformed.get("metadata") or {}), "managedFields": []}
    return conformed


def warn(ctx: RequestContext, complaint: str) -> None:
    """A complaint as a Warning; what YAML has to say about several lines is a warning each."""
    head, yaml, lines = complaint.partition("yaml: unmarshal errors:\n")
    for text in lines.split("\n") if yaml and head in ("", "error converting YAML to JSON: ") else [complaint]:
        ctx.warn(text.strip() if yaml else text)


def _read_protobuf(body: bytes, expected: Expected) -> Tree:
    """The same from protobuf, where fields have numbers and there is nothing to validate but the bytes."""
    try:
        envelope = protobuf.open_envelope(body)
    except decode.DecodeError as error:
        raise errors.bad_request(
            f"the object provided is unrecognized (must be of type {expected.kind}): {error} ({json_codec.summary(body)})"
        ) from error
    if expected.custom:
        raise cannot_handle(expected, UNMARSHALABLE)
    check_kind({"apiVersion": envelope.api_version, "kind": envelope.kind}, expected, body)
    try:
        tree = decode.from_protobuf(expected.type, envelope.message)
    except decode.DecodeError as error:
        raise cannot_handle(expected, str(error)) from error
    tree["kind"], tree["apiVersion"] = expected.kind, expected.group_version
    return tree


def clears_owners(tree: Any) -> bool:
    """Whether an object carries an empty list of managedFields, which normalising drops and which means something."""
    metadata = tree.get("metadata") if isinstance(tree, dict) else None
    return isinstance(metadata, dict) and metadata.get("managedFields") == []


def check_kind(tree: Any, expected: Expected, body: bytes) -> None:
    """400 unless apiVersion and kind, where given, are the endpoint's."""
    if not isinstance(tree, dict):
        if tree is None:
            return
        raise errors.bad_request(
            f"couldn't get version/kind; json parse error: json: cannot unmarshal {json_codec.summary(body)} into Go value"
        )
    kind = tree.get("kind") or expected.kind
    version = tree.get("apiVersion") or expected.group_version
    if not isinstance(kind, str) or not isinstance(version, str):
        raise errors.bad_request("couldn't get version/kind; json parse error: kind and apiVersion must be strings")
    if kind == expected.kind and version in (expected.group_version, expected.earlier):
        return
    name = version.rpartition("/")[2]
    if not registered(expected.group, version, kind):
        raise errors.bad_request(
            f"{kind} in version {errors.go_quote(name)} cannot be handled as a {expected.kind}: "
            + not_registered(expected.group, version, kind)
        )
    if kind != expected.kind:
        raise errors.bad_request(
            f"{kind} in version {errors.go_quote(name)} cannot be handled as a {expected.kind}: "
            f"converting ({name}.{kind}) to ({expected.group.partition('.')[0] or 'core'}.{expected.kind}): unknown conversion"
        )
    raise errors.bad_request(
        f"the API version in the data ({version}) does not match the expected API version ({expected.group_version})"
    )


def registered(home: str, version: str, kind: str) -> bool:
    """Whether the decoder of the group `home` knows a kind in a version."""
    group, _, name = version.rpartition("/")
    return (home not in _SCHEMES or group == home) and type_for(group, name, kind) is not None


def not_registered(home: str, version: str, kind: str) -> str:
    return f'no kind "{kind}" is registered for version "{version}" in scheme "{_SCHEMES.get(home, _SCHEME)}"'


def cannot_handle(expected: Expected, reason: str) -> errors.APIError:
    return errors.bad_request(
        f"{expected.kind} in version {errors.go_quote(expected.version)} cannot be handled as a {expected.kind}: {reason}"
    )
