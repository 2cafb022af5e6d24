"""The OpenAPI 2.0 (Swagger) document of the whole server."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from functools import cache
from typing import Any

import orjson

from fastapi_core.openapi.custom import CustomKind
from fastapi_core.openapi.layout import PHRASES, by_path
from fastapi_core.openapi.operations import Operation
from fastapi_core.openapi.parameters import Parameter
from fastapi_core.openapi.schemas import SchemaWriter

Document = dict[str, Any]

#: Parameters that stay where they are: older kubectl versions look for these two to learn what the server can do, and
#: a name or a body of a kind's own type is not shared.
_IN_PLACE = frozenset({"name", "dryRun", "fieldValidation"})


def document(
    operations: list[Operation],
    everywhere: list[tuple[str, str]],
    version: str,
    custom: Iterable[CustomKind] = (),
) -> Document:
    """The document of all operations; arguments as in `v3.document`."""
    writer = SchemaWriter(v2=True, everywhere=everywhere, custom=custom)
    shared_parameters = _Shared()
    paths: dict[str, Any] = {}
    for path, shared, found in by_path(operations):
        item: dict[str, Any] = {
            operation.method: _operation(operation, own, writer, shared_parameters) for operation, own in found
        }
        if shared:
            item["parameters"] = [shared_parameters.place(_parameter(parameter)) for parameter in shared]
        paths[path] = item
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": paths,
        "definitions": writer.collect(),
        "parameters": dict(sorted(shared_parameters.found.items())),
        "securityDefinitions": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}},
        "security": [{"BearerToken": []}],
    }


def _operation(operation: Operation, own: list[Parameter], writer: SchemaWriter, shared: _Shared) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if operation.consumes:
        out["consumes"] = list(operation.consumes)
    out["produces"] = list(operation.produces)
    out["schemes"] = ["https"]
    out["tags"] = [operation.tag]
    out["operationId"] = operation.id
    found = [_parameter(parameter) for parameter in own]
    if operation.body:
        body: dict[str, Any] = {"name": "body", "in": "body"}
        if operation.body_required:
            body["required"] = True
        body["schema"] = writer.reference(operation.body)
        found.append(body)
        found.sort(key=_name)
    if found:
        out["parameters"] = [shared.place(parameter) for parameter in found]
    responses: dict[str, Any] = {}
    for code, ref in operation.responses:
        schema = writer.reference(ref) if ref else {"type": "string"}
        responses[code] = {"description": PHRASES[code], "schema": schema}
    responses["401"] = {"description": PHRASES["401"]}
    out["responses"] = responses
    if operation.action:
        out["x-kubernetes-action"] = operation.action
    if operation.gvk:
        group, version, kind = operation.gvk
        out["x-kubernetes-group-version-kind"] = {"group": group, "kind": kind, "version": version}
    return out


def _name(parameter: dict[str, Any]) -> str:
    name: str = parameter["name"]
    return name


@cache
def _parameter(parameter: Parameter) -> dict[str, Any]:
    out: dict[str, Any] = {"uniqueItems": True, "type": parameter.type, "name": parameter.name, "in": parameter.place}
    if parameter.place == "path":
        out["required"] = True
    return out


class _Shared:
    """Parameters written once and referred to, each under its name and a hash of what it is."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, Any]] = {}
        self._references: dict[bytes, dict[str, Any]] = {}

    def place(self, parameter: dict[str, Any]) -> dict[str, Any]:
        """What to write where the parameter is used."""
        if parameter["name"] in _IN_PLACE:
            return parameter
        if parameter["in"] == "body" and ".apimachinery." not in parameter["schema"]["$ref"]:
            return parameter
        text = orjson.dumps(parameter)
        reference = self._references.get(text)
        if reference is None:
            name = f"{parameter['name']}-{base64.urlsafe_b64encode(_fnv(text)[:6]).decode()}"
            self.found[name] = parameter
            reference = self._references[text] = {"$ref": f"#/parameters/{name}"}
        return reference


def _fnv(data: bytes) -> bytes:
    """FNV-1, 64 bits: short, stable and the same on every machine."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF) ^ byte
    return value.to_bytes(8, "big")
