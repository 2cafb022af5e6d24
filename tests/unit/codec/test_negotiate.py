"""Accept and Content-Type against what the reference was seen to answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastapi_core.codec.negotiate import (
    DISCOVERY_TRANSFORMS,
    LIST_TYPES,
    NO_TRANSFORMS,
    RESOURCE_TYPES,
    MediaType,
    acceptable,
    check_consumed,
    check_produced,
    content_type,
    negotiate,
)
from fastapi_core.errors import APIError


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", "json"),
        ("*/*", "json"),
        ("*", "json"),
        ("text/html,application/json", "json"),
        ("application/json;q=0.1,application/yaml", "yaml"),
        ("application/yaml;q=0.1,application/json;q=0.9", "json"),
        ("application/json;q=0", "json"),
        ("application/json;q=abc", "json"),
        ("text/html;q=0.9,*/*;q=0.1", "json"),
        ("application/yaml, application/json", "yaml"),
        ("*/*, application/yaml", "yaml"),
        ("application/*", "json"),
        ("*/*;q=0.9,application/yaml;q=0.8", "yaml"),
        ("application/*;q=0.9,application/yaml;q=0.8", "yaml"),
        ("application/yaml;q=0.8,application/*", "json"),
        ("application/json;as=;g=;v=", "json"),
        ("application/vnd.kubernetes.protobuf;q=0.9,application/yaml;q=0.5", "protobuf"),
        ("application/vnd.kubernetes.protobuf;q=0.2,application/yaml;q=0.5", "yaml"),
        ("application/vnd.kubernetes.protobuf", "protobuf"),
        ("application/vnd.kubernetes.protobuf,application/json", "protobuf"),
        ("application/vnd.kubernetes.protobuf;stream=watch,application/json", "protobuf"),
        ("application/json,application/vnd.kubernetes.protobuf", "json"),
        ("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json", "json"),
        ("application/json;as=Foo;v=v1;g=meta.k8s.io,application/json", "json"),
        ("application/yaml;pretty=1", "yaml"),
        ("application/json;charset=utf-8", "json"),
        ("application/yaml;stream=watch,application/json", "json"),
    ],
)
def test_served(accept: str, form: str) -> None:
    chosen = negotiate(accept)
    assert chosen is not None
    assert (chosen.format, chosen.as_kind) == (form, "")


@pytest.mark.parametrize(
    "accept",
    [
        "text/html",
        "application/json;as=Table;v=v2;g=meta.k8s.io",
        "application/json;as=Table;v=v1;g=other.k8s.io",
        "application/json;as=Table",
        "application/json;g=meta.k8s.io",
        "application/json;stream=other",
        "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io",
        ",;=",
    ],
)
def test_refused(accept: str) -> None:
    assert negotiate(accept) is None
    with pytest.raises(APIError) as caught:
        acceptable(accept)
    assert caught.value.message == (
        "only the following media types are accepted: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )


def test_custom_resources_have_metadata_only_in_protobuf() -> None:
    assert negotiate("application/vnd.kubernetes.protobuf", custom=True) is None
    fallback = negotiate("application/vnd.kubernetes.protobuf,application/json", custom=True)
    assert fallback is not None
    assert fallback.format == "json"
    partial = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    chosen = negotiate(partial, custom=True)
    assert chosen is not None
    assert (chosen.format, chosen.as_kind) == ("protobuf", "PartialObjectMetadata")
    with pytest.raises(APIError):
        acceptable("application/vnd.kubernetes.protobuf", custom=True)


def test_parameters_are_read() -> None:
    assert negotiate("application/json;as=Table;v=v1;g=meta.k8s.io;pretty=1;stream=watch") == MediaType(
        "json", True, "Table", "meta.k8s.io", "v1", "watch", ""
    )
    aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer"
    chosen = negotiate(aggregated, DISCOVERY_TRANSFORMS)
    assert chosen is not None
    assert (chosen.as_kind, chosen.profile) == ("APIGroupDiscoveryList", "nopeer")
    assert negotiate(aggregated) is None
    assert negotiate("application/json;as=Table;v=v1;g=meta.k8s.io", NO_TRANSFORMS) is None


@pytest.mark.parametrize(
    ("header", "form"),
    [
        ("", "json"),
        ("application/json", "json"),
        ("Application/JSON; charset=utf-8", "json"),
        ("application/yaml", "yaml"),
        ("application/json; broken", None),
        ("text/plain", None),
        ("application/merge-patch+json", None),
        ("json", None),
    ],
)
def test_content_type(header: str, form: str | None) -> None:
    assert content_type(header) == form


@given(st.text(alphabet="aplicton/jsy*mq=0.19;, vgz", max_size=600))
def test_any_header_gets_an_answer(header: str) -> None:
    for chosen in (negotiate(header), negotiate(header + ",*/*")):
        assert chosen is None or chosen.format in ("json", "yaml")
    assert content_type(header) in ("json", "yaml", None)


@pytest.mark.parametrize(
    "accept", ["", "*/*", "application/json;as=Nope", "text/html, application/yaml;q=0.1", " application/json ,"]
)
def test_services_look_at_bare_types(accept: str) -> None:
    check_produced(accept, RESOURCE_TYPES)


@pytest.mark.parametrize("accept", ["*", "application/*", "APPLICATION/JSON", "json", "text/plain;q=1"])
def test_services_know_no_other_wildcards(accept: str) -> None:
    with pytest.raises(APIError) as caught:
        check_produced(accept, LIST_TYPES)
    assert caught.value.message.startswith("406: Not Acceptable\n\nAvailable representations: application/json, ")
    assert caught.value.message.endswith("application/vnd.kubernetes.protobuf;stream=watch")
    assert caught.value.to_status()["details"] == {}


@pytest.mark.parametrize("header", ["text/plain", "", "APPLICATION/JSON", "application/*"])
def test_services_name_what_they_take(header: str) -> None:
    with pytest.raises(APIError, match=r"^415: Unsupported Media Type$"):
        check_consumed(header, ("application/json",))
    check_consumed("text/plain, application/json;charset=utf-8", ("application/json",))
