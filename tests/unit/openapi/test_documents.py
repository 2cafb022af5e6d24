"""The documents against the recorded ones of a default server (without descriptions), and their hashes."""

from __future__ import annotations

import dataclasses
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from fastapi_core.apis.resources import builtin
from fastapi_core.openapi.documents import OpenAPIDocuments

SHARED = Path(__file__).parents[4] / "shared"
RECORDED = SHARED / "facts" / "openapi"
GOLDEN = SHARED / "golden" / "openapi"
INDEX: dict[str, str] = json.loads((RECORDED / "index.json").read_text()) if RECORDED.is_dir() else {}

DOCUMENTS = OpenAPIDocuments(builtin())


def plain(value: Any) -> Any:
    """Without descriptions; `required` is a set."""
    if isinstance(value, dict):
        out = {key: plain(item) for key, item in value.items() if not (key == "description" and isinstance(item, str))}
        if isinstance(out.get("required"), list):
            out["required"] = sorted(out["required"])
        return out
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def differences(want: Any, got: Any, path: str = "") -> list[str]:
    if isinstance(want, dict) and isinstance(got, dict):
        keys = sorted(set(want) | set(got))
        return [text for key in keys for text in differences(want.get(key, "-"), got.get(key, "-"), f"{path}/{key}")]
    return [] if want == got else [f"{path}: want {str(want)[:200]} got {str(got)[:200]}"]


def missing(want: Any, got: Any, path: str = "") -> list[str]:
    """What of `want` is not in `got`."""
    if isinstance(want, dict) and isinstance(got, dict):
        return [text for key, item in want.items() for text in missing(item, got.get(key, "-"), f"{path}/{key}")]
    if isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        return [text for pair in zip(want, got, strict=True) for text in missing(*pair, path)]
    return [] if want == got else [f"{path}: want {str(want)[:200]} got {str(got)[:200]}"]


@pytest.mark.golden
@pytest.mark.skipif(not INDEX, reason="no recordings here")
@pytest.mark.parametrize("name", INDEX)
def test_v3_document_equals_the_recorded_one(name: str) -> None:
    want = json.loads(gzip.decompress((RECORDED / INDEX[name]).read_bytes()))
    got = json.loads(DOCUMENTS.documents[name].body())
    assert differences(plain(want), plain(got)) == []


@pytest.mark.golden
@pytest.mark.skipif(not INDEX, reason="no recordings here")
def test_the_index_lists_the_recorded_documents() -> None:
    assert set(json.loads(DOCUMENTS.index)["paths"]) == set(INDEX)


def _cases() -> list[Any]:
    cases = []
    for file in sorted(GOLDEN.glob("*.json")):
        if not file.name.startswith("crd-"):
            for number, step in enumerate(json.loads(file.read_text())["steps"]):
                path = step["path"]
                body = step["expect"].get("body")
                if step.get("compare") == "subset" and (path == "/openapi/v2" or path.startswith("/openapi/v3/")):
                    cases.append(pytest.param(path, body, id=f"{file.stem}-{number}"))
    return cases


@pytest.mark.golden
@pytest.mark.skipif(not GOLDEN.is_dir(), reason="no recordings here")
@pytest.mark.parametrize(("path", "body"), _cases())
def test_recorded_parts_of_documents(path: str, body: Any) -> None:
    name = path.removeprefix("/openapi/v3/")
    document = DOCUMENTS.v2 if path == "/openapi/v2" else DOCUMENTS.documents[name]
    assert missing(body, json.loads(document.body())) == []


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*(references(item) for item in value.values()))
    if isinstance(value, list):
        return set().union(*(references(item) for item in value))
    return set()


@pytest.mark.parametrize("name", ["v2", *DOCUMENTS.documents])
def test_every_reference_leads_somewhere_and_operation_ids_are_unique(name: str) -> None:
    document = json.loads((DOCUMENTS.v2 if name == "v2" else DOCUMENTS.documents[name]).body())
    for reference in references(document):
        at = document
        for part in reference.removeprefix("#/").split("/"):
            at = at[part]
    ids = [
        operation["operationId"]
        for item in document["paths"].values()
        for method, operation in item.items()
        if method != "parameters"
    ]
    assert len(ids) == len(set(ids))
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method == "parameters":
                continue
            listed = [*item.get("parameters", []), *operation.get("parameters", [])]
            resolved = [
                document["parameters"][entry["$ref"].rpartition("/")[2]] if "$ref" in entry else entry
                for entry in listed
            ]
            in_path = {entry["name"] for entry in resolved if entry["in"] == "path"}
            assert in_path == set(re.findall(r"{(\w+)}", path)), f"{method} {path}"


def test_v2_has_no_defaults_and_no_alternatives() -> None:
    definitions = json.loads(DOCUMENTS.v2.body())["definitions"]
    for schema in definitions.values():
        for one in (schema, *schema.get("properties", {}).values()):
            assert not {"default", "allOf", "oneOf"} & {key for key, item in one.items() if key != "properties"}


def test_hashes_are_stable_and_need_no_document() -> None:
    again = OpenAPIDocuments(builtin())
    assert again.index == DOCUMENTS.index
    assert not any(document.ready() for document in again.documents.values())
    for document in (again.v2, *again.documents.values()):
        assert re.fullmatch("[0-9A-F]{128}", document.hash)


def test_a_changed_definition_changes_its_own_documents_only() -> None:
    definitions = list(builtin())
    place = next(index for index, definition in enumerate(definitions) if definition.plural == "leases")
    definitions[place] = dataclasses.replace(definitions[place], verbs=("get",))
    DOCUMENTS.documents["apis/batch/v1"].body()
    changed = OpenAPIDocuments(definitions, previous=DOCUMENTS)
    name = "apis/coordination.k8s.io/v1"
    differing = [key for key, document in changed.documents.items() if document.hash != DOCUMENTS.documents[key].hash]
    assert differing == [name]
    assert changed.v2.hash != DOCUMENTS.v2.hash
    assert changed.documents["apis/batch/v1"].ready()
    paths = json.loads(changed.documents[name].body())["paths"]
    assert list(paths["/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"]) == ["get", "parameters"]
