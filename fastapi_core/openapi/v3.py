"""OpenAPI 3.0 documents, one per group version, group or generic path."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any

from fastapi_core.openapi.custom import CustomKind
from fastapi_core.openapi.layout import PHRASES, by_path
from fastapi_core.openapi.operations import Operation
from fastapi_core.openapi.parameters import Parameter
from fastapi_core.openapi.schemas import SchemaWriter

Document = dict[str, Any]


def document(
    operations: list[Operation],
    everywhere: list[tuple[str, str]],
    version: str,
    custom: Collection[CustomKind] = (),
) -> Document:
    """The document of some operations.

    `everywhere` lists the (group, version) pairs under which types of every group are known; `version` is the
    Kubernetes version told in `info`.
    """
    writer = SchemaWriter(v2=False, everywhere=everywhere, custom=custom)
    paths: dict[str, Any] = {}
    for path, shared, found in by_path(operations):
        item: dict[str, Any] = {operation.method: _operation(operation, own, writer) for operation, own in found}
        if shared:
            item["parameters"] = [_parameter(parameter) for parameter in shared]
        paths[path] = item
    components: dict[str, Any] = {}
    schemas = writer.collect()
    if schemas:
        components["schemas"] = schemas
    info = {"title": "Kubernetes", "version": version}
    if custom:
        info = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
    else:
        components["securitySchemes"] = {"BearerToken": {"type": "apiKey", "in": "header", "name": "authorization"}}
    return {
        "openapi": "3.0.0",
        "info": info,
        "paths": paths,
        "components": components,
    }


def _operation(operation: Operation, own: list[Parameter], writer: SchemaWriter) -> dict[str, Any]:
    out: dict[str, Any] = {"tags": [operation.tag], "operationId": operation.id}
    if own:
        out["parameters"] = [_parameter(parameter) for parameter in own]
    if operation.body:
        schema = writer.reference(operation.body)
        out["requestBody"] = {"content": {kind: {"schema": schema} for kind in operation.consumes}}
        if operation.body_required:
            out["requestBody"]["required"] = True
    responses: dict[str, Any] = {}
    for code, ref in operation.responses:
        schema = writer.reference(ref) if ref else {"type": "string"}
        responses[code] = {
            "description": PHRASES[code],
            "content": {kind: {"schema": schema} for kind in operation.produces},
        }
    responses["401"] = {"description": PHRASES["401"]}
    out["responses"] = responses
    if operation.action:
        out["x-kubernetes-action"] = operation.action
    if operation.gvk:
        group, version, kind = operation.gvk
        out["x-kubernetes-group-version-kind"] = {"group": group, "version": version, "kind": kind}
    return out


@cache
def _parameter(parameter: Parameter) -> dict[str, Any]:
    out: dict[str, Any] = {"name": parameter.name, "in": parameter.place}
    if parameter.place == "path":
        out["required"] = True
    out["schema"] = {"type": parameter.type, "uniqueItems": True}
    return out
