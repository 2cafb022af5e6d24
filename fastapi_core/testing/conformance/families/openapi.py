"""OpenAPI, both versions: what `kubectl explain`, client-side validation and apply are made from."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi_core.testing.conformance.client import Answer
from fastapi_core.testing.conformance.schemas import index, of_kind, references, resolve
from fastapi_core.testing.conformance.subject import Subject, success
from fastapi_core.testing.conformance.verdicts import SHOULD, Scope, Skipped, check, demand

_V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_V3_PROTOBUF = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
_METHODS = {"create": "post", "update": "put", "patch": "patch", "delete": "delete", "get": "get"}


def _document(t: Subject) -> Answer:
    where = index(t.client, t.resource)
    if not where:
        raise Skipped("the server has no OpenAPI v3 of this version")
    return success(t.client.request("GET", where), "the document the index names")


@check("openapi.v3-index", scope=Scope.SERVER)
def v3_index(t: Subject) -> None:
    """/openapi/v3 names the document of the version with a hash in its address; clients keep documents by it."""
    answer = success(t.client.request("GET", "/openapi/v3"), "the index")
    entry = (answer.tree().get("paths") or {}).get(t.resource.root[1:])
    demand(isinstance(entry, dict), f"paths has {t.resource.root[1:]}", answer)
    demand("hash=" in str((entry or {}).get("serverRelativeURL")), "a serverRelativeURL with a hash", answer)


@check("openapi.v3-hash", SHOULD, scope=Scope.SERVER)
def v3_hash(t: Subject) -> None:
    """Under its hash a document never changes and says so; another hash is not answered for good."""
    answer = _document(t)
    demand("immutable" in answer.header("Cache-Control"), "Cache-Control: immutable", answer)
    other = t.client.request("GET", answer.path.split("?")[0], query={"hash": "0" * 128})
    demand("immutable" not in other.header("Cache-Control"), "no immutable answer under a hash that is wrong", other)


@check("openapi.v3-etag", SHOULD, scope=Scope.SERVER)
def v3_etag(t: Subject) -> None:
    """Documents have an ETag and answer 304 to whoever has them; aggregators ask again every minute."""
    _not_modified(t, _document(t))


def _not_modified(t: Subject, answer: Answer) -> None:
    tag = answer.header("ETag")
    demand(tag, "an ETag", answer)
    again = t.client.request("GET", answer.path, headers={"If-None-Match": tag})
    demand(again.status == 304 and not again.body, "304 without a body", again)


@check("openapi.v3-kind")
def v3_kind(t: Subject) -> None:
    """The document has a schema that names the kind as its own; explain and apply find it by that."""
    answer = _document(t)
    schemas = (answer.tree().get("components") or {}).get("schemas")
    found = of_kind(schemas, t.resource)
    demand(found, f"a schema with x-kubernetes-group-version-kind {t.resource.kind}", answer)


@check("openapi.v3-references", scope=Scope.SERVER)
def v3_references(t: Subject) -> None:
    """Every reference in the document resolves; one that does not breaks explain for all of it."""
    _resolved(_document(t))


def _resolved(answer: Answer) -> None:
    document = answer.tree()
    broken = sorted({ref for ref in references(document) if not isinstance(resolve(document, ref), dict)})
    demand(not broken, f"references resolve; these do not: {', '.join(broken[:4])}", answer)


@check("openapi.v3-paths", SHOULD)
def v3_paths(t: Subject) -> None:
    """The verbs of the resource are operations of the document; generated clients are made from these."""
    answer = _document(t)
    paths = answer.tree().get("paths") or {}
    scope = "/namespaces/{namespace}" if t.resource.namespaced else ""
    many = f"{t.resource.root}{scope}/{t.resource.name}"
    for verb in sorted(t.resource.verbs & (_METHODS.keys() | {"list"})):
        path = many if verb in ("list", "create") else f"{many}/{{name}}"
        operations = paths.get(path) or paths.get(f"{path}/") or {}
        demand(_METHODS.get(verb, "get") in operations, f"{_METHODS.get(verb, 'get')} of {path} for {verb}", answer)


@check("openapi.v3-protobuf", SHOULD, scope=Scope.SERVER)
def v3_protobuf(t: Subject) -> None:
    """Asked for protobuf, the document comes as protobuf or not at all (406); never as something else."""
    _protobuf(t.client.request("GET", _document(t).path, headers={"Accept": _V3_PROTOBUF}))


def _protobuf(answer: Answer) -> None:
    if answer.status == 406:
        raise Skipped("protobuf is not offered")
    success(answer, "the document as protobuf")
    demand("protobuf" in answer.media, "a Content-Type of protobuf", answer)
    demand(answer.body and all(number < 20 for number, _ in _fields(answer)), "a protobuf message", answer)


def _fields(answer: Answer) -> Iterator[tuple[int, bytes]]:
    """The members of a message (number, content); a failed check when it is none."""
    data, at = answer.body, 0
    while at < len(data):
        tag, at = _varint(data, at)
        demand(tag & 7 == 2, "a message made of texts and messages", answer)
        size, at = _varint(data, at)
        demand(at + size <= len(data), "a whole message", answer)
        yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data):
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128 or shift > 63:
            break
    return value, at


def _v2(t: Subject) -> Answer:
    answer = t.client.request("GET", "/openapi/v2")
    if answer.status != 200:
        raise Skipped("the server has no OpenAPI v2")
    return answer


@check("openapi.v2", SHOULD)
def v2(t: Subject) -> None:
    """/openapi/v2 has a definition that names the kind as its own; older clients know no other document."""
    answer = success(t.client.request("GET", "/openapi/v2"), "the document")
    demand(of_kind(answer.tree().get("definitions"), t.resource), f"a definition that is {t.resource.kind}", answer)


@check("openapi.v2-references", scope=Scope.SERVER)
def v2_references(t: Subject) -> None:
    """Every reference in the v2 document resolves; aggregators join it with those of others and would carry it on."""
    _resolved(_v2(t))


@check("openapi.v2-etag", SHOULD, scope=Scope.SERVER)
def v2_etag(t: Subject) -> None:
    """The v2 document has an ETag and answers 304 to whoever has it; aggregators ask again every minute."""
    _not_modified(t, _v2(t))


@check("openapi.v2-protobuf", SHOULD, scope=Scope.SERVER)
def v2_protobuf(t: Subject) -> None:
    """The v2 document is offered as protobuf: clients written in Go ask for nothing else."""
    _v2(t)
    answer = t.client.request("GET", "/openapi/v2", headers={"Accept": _V2_PROTOBUF})
    demand(answer.status == 200, "200: the document as protobuf", answer)
    _protobuf(answer)
