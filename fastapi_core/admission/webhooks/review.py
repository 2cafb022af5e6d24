"""AdmissionReview, in the versions webhooks understand: the question as bytes, the answer checked.

Follows the reference to the field: what it leaves out when empty is left out, `object`, `oldObject` and `options` are null.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from fastapi_core.admission.chain import DELETE, Attributes
from fastapi_core.admission.matching import Kind
from fastapi_core.admission.webhooks.answers import RequestError, check_review
from fastapi_core.codec import json
from fastapi_core.errors import APIError, bad_request, go_quote
from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.request.context import User
from fastapi_core.schema.errors import TypeMismatch
from fastapi_core.schema.normalize import normalize
from fastapi_core.schema.tables import type_of

GROUP: Final = "admission.k8s.io"
KIND: Final = "AdmissionReview"
VERSIONS: Final = ("v1", "v1beta1")
JSON_PATCH: Final = "JSONPatch"
_HEADS: Final = {v: f'{{"kind":"{KIND}","apiVersion":"{GROUP}/{v}","request":{{"uid":"'.encode() for v in VERSIONS}


class ReviewError(Exception):
    """An answer that is a review, and not one to rely on."""


class Response(NamedTuple):
    """What a webhook says."""

    allowed: bool
    status: Tree | None
    patch: bytes
    patch_type: str
    annotations: dict[str, str]
    warnings: list[str]


def words(target: ResourceDefinition, kind: Kind, request: ResourceDefinition, own: Kind, subresource: str) -> bytes:
    """The members of a request that only depend on its kind: from `kind` to `requestSubResource`."""
    part = f',"subResource":{_text(subresource)}' if subresource else ""
    asked = f',"requestSubResource":{_text(subresource)}' if subresource else ""
    text = (
        f'"kind":{_kind(kind)},"resource":{_resource(target)}{part},'
        f'"requestKind":{_kind(own)},"requestResource":{_resource(request)}{asked}'
    )
    return text.encode()


def _kind(kind: Kind) -> str:
    return json.encode({"group": kind.group, "version": kind.version, "kind": kind.kind}).decode()


def _resource(definition: ResourceDefinition) -> str:
    named = {"group": definition.group, "version": definition.version, "resource": definition.plural}
    return json.encode(named).decode()


def _text(text: str) -> str:
    return json.encode(text).decode()


def name_of(attributes: Attributes) -> str:
    """The name a request gives; a deletion of many gives none."""
    if attributes.operation == DELETE:
        info = getattr(attributes.context, "info", None)
        if info is not None and info.verb == "deletecollection":
            return ""
    return attributes.name


def user_info(user: User) -> Tree:
    info: Tree = {"username": user.name, "uid": user.uid, "groups": list(user.groups)}
    if user.extra:
        info["extra"] = {name: list(user.extra[name]) for name in sorted(user.extra)}
    return {name: value for name, value in info.items() if value}


def options_of(attributes: Attributes) -> Tree | None:
    return attributes.options.tree(attributes.operation) if attributes.options is not None else None


def question(version: str, uid: str, fixed: bytes, attributes: Attributes, new: bytes, old: bytes) -> bytes:
    """The body of the request; `new` and `old` are the encoded objects or null."""
    name, namespace = name_of(attributes), attributes.namespace
    options = options_of(attributes)
    return b"".join(
        (
            _HEADS[version], uid.encode(), b'",', fixed,
            b',"name":' + json.encode(name) if name else b"",
            b',"namespace":' + json.encode(namespace) if namespace else b"",
            b',"operation":"', attributes.operation.encode(),
            b'","userInfo":', json.encode(user_info(attributes.context.user)),
            b',"object":', new, b',"oldObject":', old,
            b',"dryRun":true' if attributes.dry_run else b',"dryRun":false',
            b',"options":', json.encode(options) if options is not None else b"null", b"}}",
        )
    )  # fmt: skip


def understood(version: str, uid: str, tree: Tree, *, mutating: bool) -> Response:
    """The response in an answer. Raises RequestError for another document, ReviewError for one that contradicts itself."""
    kind, api = check_review(tree, GROUP, KIND, version)
    try:
        response = normalize(type_of(f"{GROUP}/{version}.{KIND}"), tree).tree.get("response")
    except TypeMismatch as error:
        raise RequestError(str(error)) from None
    if response is None:
        raise ReviewError("webhook response was absent")
    if version == "v1":
        _check(uid, kind, api, response, mutating=mutating)
    patch = _bytes(response.get("patch")) if mutating else b""
    patch_type = response.get("patchType") or ""
    return Response(
        response.get("allowed") is True,
        response.get("status"),
        patch,
        JSON_PATCH if patch and version != "v1" else patch_type,
        response.get("auditAnnotations") or {},
        response.get("warnings") or [],
    )


def _check(uid: str, kind: str, api: str, response: Tree, *, mutating: bool) -> None:
    given = response.get("uid") or ""
    if given != uid:
        raise ReviewError(f"expected response.uid={go_quote(uid)}, got {go_quote(given)}")
    if kind != KIND or not api:
        group, _, version = api.rpartition("/")
        found = f"{group}/{version}, Kind={kind}"
        raise ReviewError(f"expected webhook response of {GROUP}/v1, Kind={KIND}, got {found}")
    patch, patch_type = response.get("patch"), response.get("patchType")
    if not mutating:
        if patch:
            raise ReviewError("validating webhook may not return response.patch")
        if patch_type is not None:
            raise ReviewError("validating webhook may not return response.patchType")
        return
    if patch and patch_type is None:
        raise ReviewError("webhook returned response.patch but not response.patchType")
    if not patch and patch_type is not None:
        raise ReviewError("webhook returned response.patchType but not response.patch")
    if patch_type == "":
        raise ReviewError('webhook returned invalid response.patchType of ""')


def _bytes(text: Any) -> bytes:
    """A bytes field; normalising has checked that it is base64."""
    from binascii import Error, a2b_base64

    try:
        return a2b_base64(text, strict_mode=True) if text else b""
    except (Error, ValueError) as error:
        raise RequestError(f"illegal base64 data in response.patch: {error}") from None


def refusal(name: str, status: Tree | None) -> APIError:
    """The error for the client of a request that a webhook refuses."""
    status = status or {}
    denied = f"admission webhook {go_quote(name)} denied the request"
    code, reason, message = status.get("code") or 0, status.get("reason") or "", status.get("message")
    if message:
        text = f"{denied}: {message}"
    elif reason:
        text = f"{denied}: {reason}"
    else:
        text = f"{denied} without explanation"
    if not 400 <= code <= 999:
        code = 400 if code < 400 else 500
    return APIError(reason, text, code=code, details=status.get("details"), metadata=status.get("metadata") or {})


def no_dry_run(name: str) -> APIError:
    return bad_request(f"admission webhook {go_quote(name)} does not support dry run")
