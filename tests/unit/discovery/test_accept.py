"""Negotiation of discovery documents."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.discovery.accept import JSON, YAML, Form, check_service, choose
from fastapi_core.errors import APIError

V2 = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2BETA1 = ";g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    ("accept", "want"),
    [
        ("", Form()),
        ("*/*", Form()),
        ("*", Form()),
        ("application/*", Form()),
        ("application/json", Form()),
        ("application/yaml", Form(YAML)),
        ("application/yaml, application/json", Form(YAML)),
        ("application/json;q=0.1,application/yaml", Form(YAML)),
        ("*/*,application/yaml", Form(YAML)),
        ("application/*;q=0.9, application/yaml;q=0.8", Form(JSON)),
        ("application/json;q=0", Form()),
        ("application/json;q=abc", Form()),
        ("application/json;pretty=1", Form(JSON, pretty=True)),
        ("application/vnd.kubernetes.protobuf,application/json;q=0.5", Form()),
        ("text/html, application/xml;q=0.9, */*;q=0.8", Form()),
        ("application/json;stream=watch", Form()),
        ("application/json;stream=x", None),
        ("application/json;sv=v1", None),
        ("application/vnd.kubernetes.protobuf", None),
        ("text/html", None),
        ("json", None),
        ("application/json;as=Table;g=meta.k8s.io;v=v1", None),
        ("application/json;as=Table;g=meta.k8s.io;v=v1,application/json", Form()),
        ("application/json" + V2, None),
        (f"application/json{V2},application/json", Form()),
        (",;,", None),
    ],
)
def test_paths_without_aggregated_document(accept: str, want: Form | None) -> None:
    assert choose(accept, nested=False) == want


@pytest.mark.parametrize(
    ("accept", "want"),
    [
        ("application/json" + V2, Form(aggregated=True)),
        (f"application/json{V2};profile=nopeer", Form(aggregated=True)),
        ("application/yaml" + V2, Form(YAML, aggregated=True)),
        (f"application/json, application/json{V2};q=0.1", Form(aggregated=True)),
        (f"application/vnd.kubernetes.protobuf{V2},application/json{V2},application/json", Form(aggregated=True)),
        (f"application/json{V2};pretty=1", Form(pretty=True, aggregated=True)),
        (f"application/vnd.kubernetes.protobuf{V2},application/json", Form()),
        (f"application/json{V2BETA1},application/json", Form()),
        ("application/json" + V2BETA1, None),
        ("application/json;as=APIGroupDiscoveryList", None),
        ("", Form()),
    ],
)
def test_paths_with_aggregated_document(accept: str, want: Form | None) -> None:
    assert choose(accept, nested=True) == want


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
    form = choose(accept, nested=nested)
    if form is not None:
        assert form.media in (JSON, YAML)
        assert nested or not form.aggregated


def test_long_headers_are_answered_too() -> None:
    assert choose("text/html," * 1000 + "application/yaml", nested=False) == Form(YAML)
