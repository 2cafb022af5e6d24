"""Negotiation of discovery documents."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.codec.negotiate import JSON, PROTOBUF, YAML
from fastapi_core.discovery.accept import check_service, choose
from fastapi_core.errors import APIError

Form = tuple[str, bool, bool]


def form(accept: str, *, nested: bool) -> Form | None:
    """Content type, whether pretty, whether aggregated; None for a 406."""
    try:
        media = choose(accept, nested=nested)
    except APIError as error:
        if error.reason != "NotAcceptable":
            raise
        return None
    return media.content_type, media.pretty, bool(media.as_kind)


V2 = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2BETA1 = ";g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    ("accept", "want"),
    [
        ("", (JSON, False, False)),
        ("*/*", (JSON, False, False)),
        ("*", (JSON, False, False)),
        ("application/*", (JSON, False, False)),
        ("application/json", (JSON, False, False)),
        ("application/yaml", (YAML, False, False)),
        ("application/yaml, application/json", (YAML, False, False)),
        ("application/json;q=0.1,application/yaml", (YAML, False, False)),
        ("*/*,application/yaml", (YAML, False, False)),
        ("application/*;q=0.9, application/yaml;q=0.8", (YAML, False, False)),
        ("application/json;q=0", (JSON, False, False)),
        ("application/json;q=abc", (JSON, False, False)),
        ("application/json;pretty=1", (JSON, True, False)),
        ("application/vnd.kubernetes.protobuf,application/json;q=0.5", (PROTOBUF, False, False)),
        ("text/html, application/xml;q=0.9, */*;q=0.8", (JSON, False, False)),
        ("application/json;stream=watch", (JSON, False, False)),
        ("application/json;stream=x", None),
        ("application/vnd.kubernetes.protobuf", (PROTOBUF, False, False)),
        ("text/html", None),
        ("json", None),
        ("application/json;as=Table;g=meta.k8s.io;v=v1", None),
        ("application/json;as=Table;g=meta.k8s.io;v=v1,application/json", (JSON, False, False)),
        ("application/json" + V2, None),
        (f"application/json{V2},application/json", (JSON, False, False)),
        (",;,", None),
    ],
)
def test_paths_without_aggregated_document(accept: str, want: Form | None) -> None:
    assert form(accept, nested=False) == want


@pytest.mark.parametrize(
    ("accept", "want"),
    [
        ("application/json" + V2, (JSON, False, True)),
        (f"application/json{V2};profile=nopeer", (JSON, False, True)),
        ("application/yaml" + V2, (YAML, False, True)),
        (f"application/json, application/json{V2};q=0.1", (JSON, False, True)),
        (f"application/vnd.kubernetes.protobuf{V2},application/json{V2},application/json", (PROTOBUF, False, True)),
        (f"application/json{V2};pretty=1", (JSON, True, True)),
        (f"application/vnd.kubernetes.protobuf{V2},application/json", (PROTOBUF, False, True)),
        (f"application/json{V2BETA1},application/json", (JSON, False, False)),
        ("application/json" + V2BETA1, None),
        ("application/json;as=APIGroupDiscoveryList", None),
        ("", (JSON, False, False)),
    ],
)
def test_paths_with_aggregated_document(accept: str, want: Form | None) -> None:
    assert form(accept, nested=True) == want


@pytest.mark.parametrize(
    "accept", ["", "*/*;q=0.1", "text/html, application/yaml;q=0", "application/json" + V2, " application/json ;x"]
)
def test_services_let_named_media_types_pass(accept: str) -> None:
    check_service(accept)


@pytest.mark.parametrize("accept", ["text/html", "application/*", "*", "application/jsonx", ","])
def test_services_refuse_before_they_look_closer(accept: str) -> None:
    with pytest.raises(APIError) as caught:
        check_service(accept)
    assert caught.value.to_status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
        "application/vnd.kubernetes.protobuf",
        "reason": "NotAcceptable",
        "details": {},
        "code": 406,
    }


pieces = st.sampled_from(
    ["application", "json", "yaml", "*", "/", ";", ",", "q=", "0.5", "as=", "Table", "=", " ", "nan", "inf", V2]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(pieces, max_size=12).map("".join) | st.text(max_size=40), st.booleans())
def test_no_header_breaks_it(accept: str, nested: bool) -> None:
    found = form(accept, nested=nested)
    assert found is None or found[0] in (JSON, YAML)
    assert found is None or nested or not found[2]


def test_long_headers_are_answered_too() -> None:
    assert form("text/html," * 1000 + "application/yaml", nested=False) == (YAML, False, False)
