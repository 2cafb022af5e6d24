from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.apis.resources import builtin
from fastapi_core.http.exchange import Response
from fastapi_core.openapi.accept import choose
from fastapi_core.openapi.documents import OpenAPIDocuments
from fastapi_core.openapi.endpoints import OpenAPIEndpoints

LEASES = tuple(definition for definition in builtin() if definition.plural in ("leases", "cronjobs"))


@pytest.fixture
def endpoints() -> OpenAPIEndpoints:
    return OpenAPIEndpoints(OpenAPIDocuments(LEASES))


async def ask(endpoints: OpenAPIEndpoints, url: str, method: str = "GET", **headers: str) -> Response:
    parts = urlsplit(url)
    sent = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    query = parse_qs(parts.query, keep_blank_values=True)
    ctx: Any = SimpleNamespace(
        request=SimpleNamespace(method=method, path=parts.path, query=parts.query, header=sent.get),
        info=SimpleNamespace(path=parts.path, query=query, first=lambda name: query.get(name, [""])[0]),
    )
    if parts.path == "/openapi/v2":
        answer: Any = endpoints.v2(ctx)
    elif parts.path == "/openapi/v3":
        answer = endpoints.v3_index(ctx)
    else:
        answer = endpoints.v3(ctx)
    result = await answer if isinstance(answer, Awaitable) else answer
    assert isinstance(result, Response)
    return result


def header(response: Response, name: str) -> str | None:
    found = [value.decode() for key, value in response.headers if key.decode().lower() == name.lower()]
    assert len(found) <= 1
    return found[0] if found else None


def decoded(response: Response) -> Any:
    assert isinstance(response.body, bytes)
    return json.loads(response.body)


LEASE_PATH = "/openapi/v3/apis/coordination.k8s.io/v1"


async def test_the_index_leads_to_immutable_documents(endpoints: OpenAPIEndpoints) -> None:
    index = await ask(endpoints, "/openapi/v3")
    assert index.status == 200
    assert header(index, "Content-Type") == "text/plain; charset=utf-8"
    paths = decoded(index)["paths"]
    assert {"api", "apis", "version", "apis/batch", "apis/batch/v1", "apis/coordination.k8s.io/v1"} <= set(paths)
    for entry in paths.values():
        document = await ask(endpoints, entry["serverRelativeURL"])
        assert document.status == 200
        assert header(document, "Cache-Control") == "public, immutable"
        assert header(document, "Expires") is not None
        assert header(document, "Vary") == "Accept"
        assert decoded(document)["openapi"] == "3.0.0"


async def test_another_hash_is_redirected_and_no_hash_is_not_cached(endpoints: OpenAPIEndpoints) -> None:
    moved = await ask(endpoints, f"{LEASE_PATH}?hash=1234ABCD")
    assert (moved.status, moved.body) == (301, b"")
    location = header(moved, "Location")
    assert location is not None
    assert (await ask(endpoints, location)).status == 200
    for url in (LEASE_PATH, f"{LEASE_PATH}?hash="):
        plain = await ask(endpoints, url)
        assert plain.status == 200
        assert header(plain, "Cache-Control") is None


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"if_none_match": "*"}, 304),
        ({"if_none_match": '"stale"'}, 200),
        ({"if_match": '"stale"'}, 412),
        ({"if_match": "*"}, 200),
        ({"if_modified_since": "Fri, 01 Jan 2100 00:00:00 GMT"}, 304),
        ({"if_modified_since": "Fri, 01 Jan 2010 00:00:00 GMT"}, 200),
        ({"if_modified_since": "yesterday"}, 200),
        ({"if_unmodified_since": "Fri, 01 Jan 2010 00:00:00 GMT"}, 412),
        ({"if_none_match": '"stale"', "if_modified_since": "Fri, 01 Jan 2100 00:00:00 GMT"}, 200),
    ],
)
@pytest.mark.parametrize("url", [LEASE_PATH, "/openapi/v2", "/openapi/v3"])
async def test_conditional_requests(endpoints: OpenAPIEndpoints, url: str, sent: dict[str, str], status: int) -> None:
    answer = await ask(endpoints, url, **sent)
    assert answer.status == status
    assert (header(answer, "Content-Type") is None) == (status == 304)
    assert (len(answer.body) > 0) == (status == 200)


async def test_the_tag_of_an_answer_revalidates(endpoints: OpenAPIEndpoints) -> None:
    for url in (LEASE_PATH, "/openapi/v2", "/openapi/v3"):
        tag = header(await ask(endpoints, url), "Etag")
        assert tag is not None
        assert (await ask(endpoints, url, if_none_match=f'"other", W/{tag}')).status == 304


async def test_revalidation_builds_nothing(endpoints: OpenAPIEndpoints) -> None:
    documents = endpoints.documents
    assert (await ask(endpoints, LEASE_PATH, if_none_match="*")).status == 304
    assert (await ask(endpoints, f"{LEASE_PATH}?hash=1")).status == 301
    assert not any(document.ready() for document in documents.documents.values())


async def test_unknown_documents_and_types(endpoints: OpenAPIEndpoints) -> None:
    for path in ("apis/none/v1", "", "apis/batch/v1/"):
        answer = await ask(endpoints, f"/openapi/v3/{path}")
        assert (answer.status, answer.body, answer.headers) == (404, b"", [])
    for url in (LEASE_PATH, "/openapi/v2"):
        for accept in ("text/html", "application/yaml", "application/vnd.kubernetes.protobuf"):
            answer = await ask(endpoints, url, accept=accept)
            assert (answer.status, answer.body) == (406, b"")
            assert header(answer, "Content-Type") is None


@pytest.mark.parametrize("spelling", ["spec.{}.v1.0", "spec.{}@v1.0"])
@pytest.mark.parametrize(("url", "version"), [(LEASE_PATH, "v3"), ("/openapi/v2", "v2")])
async def test_protobuf_under_either_spelling(
    endpoints: OpenAPIEndpoints, url: str, version: str, spelling: str
) -> None:
    accept = f"application/json;q=0.4, application/com.github.proto-openapi.{spelling.format(version)}+protobuf"
    answer = await ask(endpoints, url, accept=accept)
    assert header(answer, "Content-Type") == f"application/com.github.proto-openapi.spec.{version}.v1.0+protobuf"
    assert isinstance(answer.body, bytes)
    assert answer.body[:1] == b"\x0a"
    moved = await ask(endpoints, f"{LEASE_PATH}?hash=1", accept=accept.replace("v2", "v3"))
    assert (moved.status, header(moved, "Content-Type")) == (301, None)
    wrong = "v2" if version == "v3" else "v3"
    other = await ask(endpoints, url, accept=f"application/com.github.proto-openapi.spec.{wrong}@v1.0+protobuf")
    assert other.status == 406


async def test_head_has_the_headers_of_get(endpoints: OpenAPIEndpoints) -> None:
    answer = await ask(endpoints, LEASE_PATH, "HEAD")
    assert (answer.status, header(answer, "Content-Type")) == (200, "application/json")


async def test_requests_at_the_same_time_share_one_build(endpoints: OpenAPIEndpoints) -> None:
    builds = 0
    document = endpoints.documents.v2
    make = document._make

    def counted() -> Any:
        nonlocal builds
        builds += 1
        return make()

    document._make = counted
    answers = await asyncio.gather(*(ask(endpoints, "/openapi/v2") for _ in range(5)))
    assert builds == 1
    assert len({answer.body for answer in answers}) == 1


async def test_swap_serves_the_new_definitions(endpoints: OpenAPIEndpoints) -> None:
    before = await ask(endpoints, "/openapi/v3")
    endpoints.swap(OpenAPIDocuments(LEASES[:1], previous=endpoints.documents))
    after = await ask(endpoints, "/openapi/v3")
    assert len(decoded(after)["paths"]) < len(decoded(before)["paths"])


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", "a/x"),
        ("*/*", "a/x"),
        ("a/*", "a/x"),
        ("*", "a/x"),
        ("a/x;q=0.4, a/y", "a/y"),
        ("text/html, */*;q=0.1", "a/x"),
        ("*/*, a/y", "a/y"),
        ("a/x;q=0", "a/x"),
        ("a/z", ""),
        ("text", None),
        (" , ", None),
    ],
)
def test_choice_of_a_form(accept: str, chosen: str | None) -> None:
    assert choose(accept, ("a/x", "a/y")) == chosen


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40))
def test_any_accept_header_is_read(accept: str) -> None:
    assert choose(accept, ("a/x", "a/y")) in (None, "", "a/x", "a/y")
