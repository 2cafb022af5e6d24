"""Conversion webhooks: what they are asked, what they may change, and how their failures are told."""

from __future__ import annotations

import ssl
from base64 import b64decode
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from fastapi_core.admission.webhooks.answers import check_review
from fastapi_core.codec import json as json_codec
from fastapi_core.crd.client import RequestError
from fastapi_core.errors import APIError, FieldError, go_quote
from fastapi_core.registry import lifecycle
from fastapi_core.registry.metadata import validate_annotations, validate_labels

Tree = dict[str, Any]
KNOWN = ("v1", "v1beta1")
GROUP, KIND = "apiextensions.k8s.io", "ConversionReview"
#: Metadata that a conversion may change; the path of annotations is the reference's.
_CHANGEABLE: dict[str, Callable[[Tree], list[FieldError]]] = {
    "labels": validate_labels,
    "annotations": partial(validate_annotations, field="metadata.annotation"),
}
_IDENTITY = (("name", "name"), ("namespace", "namespace"), ("uid", "UID"))


class Caller(Protocol):
    """Who carries questions to webhooks."""

    async def ask(self, config: Tree, body: bytes) -> Tree:
        """The document that the webhook of a client configuration answers; RequestError when there is none."""


class InvalidError(Exception):
    """An answer that does not do as a conversion."""


class WebhookConverter:
    """A `crd.scope.Converter`."""

    def __init__(self, conversion: Tree, caller: Caller) -> None:
        hook: Tree = conversion.get("webhook") or {}
        self._config: Tree = hook.get("clientConfig") or {}
        versions = hook.get("conversionReviewVersions") or ()
        self._version = next((version for version in versions if version in KNOWN), "")
        self._caller = caller

    async def convert(self, trees: Sequence[Tree], kind: str, source: str, target: str) -> list[Tree]:
        """The objects in version `target`; 500 when the webhook fails, which names the object of a list."""
        several = len(trees) > 1
        start = f"conversion webhook for {source}, Kind={kind}{'List' if several else ''} "
        try:
            found = await self._ask(trees, target)
        except RequestError as error:
            raise failure(f"{start}failed: {error}") from error
        if len(found) != len(trees):
            raise failure(f"{start}returned {len(found)} objects, expected {len(trees)}")
        made = []
        for index, (tree, converted) in enumerate(zip(trees, found, strict=True)):
            try:
                made.append(checked(tree, converted, kind, target))
            except InvalidError as error:
                raise failure(start + _told(tree, index, str(error), several=several)) from error
        return made

    async def _ask(self, trees: Sequence[Tree], target: str) -> list[Any]:
        uid = lifecycle.new_uid()
        group_version = f"apiextensions.k8s.io/{self._version}"
        request = {"uid": uid, "desiredAPIVersion": target, "objects": [_sent(tree) for tree in trees]}
        body = json_codec.encode({"kind": "ConversionReview", "apiVersion": group_version, "request": request})
        answer = await self._caller.ask(self._config, body)
        return _objects(answer, uid, group_version)


def _sent(tree: Tree) -> Tree:
    """As it is stored: without its version in the store, which it has again afterwards."""
    metadata = {name: value for name, value in tree["metadata"].items() if name != "resourceVersion"}
    return {**tree, "metadata": metadata}


def _objects(answer: Tree, uid: str, group_version: str) -> list[Any]:
    """The converted objects of a ConversionReview; RequestError for one that is none or says no."""
    kind, version = check_review(answer, GROUP, KIND, group_version.rpartition("/")[2])
    response = answer.get("response")
    if response is not None and not isinstance(response, dict):
        raise RequestError(_mistyped(response, "ConversionReview.response", "v1.ConversionResponse"))
    result = (response or {}).get("result")
    if result is not None and not isinstance(result, dict):
        raise RequestError(_mistyped(result, "ConversionResponse.response.result", "v1.Status"))
    if kind != KIND or not version:
        raise RequestError(
            f"expected webhook response of {group_version}, Kind={KIND}, got {version or '/'}, Kind={kind}"
        )
    if response is None:
        raise RequestError("no response provided")
    given = response.get("uid") or ""
    if group_version.endswith("/v1") and given != uid:
        raise RequestError(f"expected response.uid={go_quote(uid)}, got {go_quote(str(given))}")
    result = result or {}
    if result.get("status") != "Success":
        raise RequestError(
            result.get("message") or f"response.result.status was '{result.get('status') or ''}', not 'Success'"
        )
    objects = response.get("convertedObjects")
    return objects if isinstance(objects, list) else []


def _mistyped(value: Any, field: str, wanted: str) -> str:
    noun = {str: "string", list: "array", bool: "bool"}.get(type(value), "number")
    return f"json: cannot unmarshal {noun} into Go struct field {field} of type {wanted}"


def checked(tree: Tree, converted: Any, kind: str, target: str) -> Tree:
    """The converted object with all metadata of the original but labels and annotations. Raises InvalidError."""
    if not isinstance(converted, dict):
        raise InvalidError("index: invalid type, expected an object")
    version = converted.get("apiVersion") or ""
    if version != target:
        raise InvalidError(f"index: invalid groupVersion (expected {target}, received {version})")
    if converted.get("kind") != kind:
        raise InvalidError(f"index: invalid kind (expected {kind}, received {converted.get('kind') or ''})")
    metadata, original = converted.get("metadata"), tree["metadata"]
    known: Tree = metadata if isinstance(metadata, dict) else {}
    for member, word in _IDENTITY:
        before, after = original.get(member) or "", known.get(member) or ""
        if before != after:
            raise InvalidError(f"object: must have the same {word}: {before} != {after}")
    if not isinstance(metadata, dict):
        raise InvalidError("metadata: missing metadata in converted object")
    kept = {name: value for name, value in original.items() if name not in _CHANGEABLE}
    for member, check in _CHANGEABLE.items():
        texts = metadata.get(member)
        if texts is None:
            continue
        _check_texts(member, texts, original.get(member), check)
        if texts:
            kept[member] = texts
    return {**converted, "metadata": kept}


def _check_texts(member: str, texts: Any, before: Any, check: Callable[[Tree], list[FieldError]]) -> None:
    """Labels or annotations as a webhook returns them; what it has not changed may be anything."""
    if not isinstance(texts, dict):
        raise InvalidError(f"metadata: invalid metadata.{member} of type {_go_type(texts)} in converted object")
    for key, text in texts.items():
        if not isinstance(text, str):
            told = f"metadata.{member}[{key}] must be a string, but is {_go_type(text)} in converted object"
            raise InvalidError(f"metadata: {told}")
    problems = [str(problem) for problem in check(texts)] if texts != (before or {}) else []
    if problems:
        raise InvalidError("metadata: " + (problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"))


def _go_type(value: Any) -> str:
    names = {bool: "bool", int: "int64", float: "float64", str: "string", list: "[]interface {}"}
    return names.get(type(value), "<nil>" if value is None else "map[string]interface {}")


def _told(tree: Tree, index: int, problem: str, *, several: bool) -> str:
    """What is wrong with an answer, and with which object where there are several."""
    what, _, text = problem.partition(": ")
    if not several:
        place = {"index": "object at index 0", "object": "object", "metadata": "metadata"}[what]
        return f"returned invalid {place}: {text}"
    metadata = tree["metadata"]
    name = f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else metadata["name"]
    place = "metadata in object" if what == "metadata" else "converted object"
    return f"returned invalid {place} at index {index} ({name}): {text}"


def failure(text: str) -> APIError:
    return APIError("", text, code=500)


def sound_bundle(bundle: str) -> bool:
    """Whether a caBundle holds certificates."""
    try:
        ssl.create_default_context(cadata=b64decode(bundle, validate=True).decode("ascii"))
    except (ssl.SSLError, ValueError):
        return False
    return True
