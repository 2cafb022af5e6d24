"""What proxied requests and log requests may say, and that anything else is an error of the client's."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core._ext.reqinfo import parse_query
from fastapi_core.errors import APIError
from fastapi_core.rest.kubelet import container_of, location, log_options
from fastapi_core.rest.proxy import _position, split_name
from fastapi_core.rest.upstream import KubeletAccess, passed_on

Tree = dict[str, Any]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", ("", "a", "")),
        ("a:80", ("", "a", "80")),
        ("a:http", ("", "a", "http")),
        ("https:a:443", ("https", "a", "443")),
        ("https:a:", ("https", "a", "")),
        (":a:1", ("", "a", "1")),
    ],
)
def test_names(text: str, expected: tuple[str, str, str]) -> None:
    assert tuple(split_name(text, "pod")) == expected


@pytest.mark.parametrize("text", ["", ":", ":80", "ftp:a:1", "a:b:c:d", "https::1"])
def test_names_that_are_none(text: str) -> None:
    with pytest.raises(APIError) as raised:
        split_name(text, "pod")
    assert raised.value.message.startswith("invalid pod request ")


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab:http/%0", max_size=12))
def test_any_name_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(APIError):
        scheme, name, port = split_name(text, "service")
        assert name
        assert text in (name, f"{name}:{port}", f"{scheme}:{name}:{port}")


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["tailLines", "limitBytes", "sinceSeconds", "sinceTime", "follow", "container", "previous"]),
        st.one_of(st.integers(-2, 5).map(str), st.text(alphabet="0123456789-:TZ.+ef", max_size=22)),
        max_size=4,
    )
)
def test_any_log_options_are_read_or_refused(options: dict[str, str]) -> None:
    with contextlib.suppress(APIError):
        found = log_options({name: (value,) for name, value in options.items()}, "p")
        assert found.container == options.get("container", "")
        assert not ("sinceTime" in found.passed and "sinceSeconds" in found.passed)


def test_log_options_are_passed_on() -> None:
    query = parse_query("follow=true&previous=0&tailLines=5&sinceTime=2021-01-01T01:00:00%2B01:00&container=c")
    assert log_options(query, "p").passed == {"follow": "true", "tailLines": "5", "sinceTime": "2021-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("path", "position"),
    [
        ("/api/v1/nodes/n/proxy", 5),
        ("/api/v1/nodes/namespaces/proxy/namespaces/a/b/c", 5),
        ("/api/v1/namespaces/ns/pods/p/proxy/proxy/x", 7),
        ("/api/v1/namespaces/ns/services/s:80/proxy/", 7),
    ],
)
def test_where_the_proxy_begins(path: str, position: int) -> None:
    assert path.split("/")[position] == "proxy"
    assert _position(path.split("/")) == position


def pod(*names: str, **more: list[str]) -> Tree:
    spec = {kind: [{"name": name} for name in found] for kind, found in {"containers": list(names), **more}.items()}
    return {"metadata": {"name": "p"}, "spec": spec}


def test_containers() -> None:
    assert container_of(pod("a"), "") == "a"
    assert container_of(pod("a", initContainers=["i"]), "i") == "i"
    assert container_of(pod("a", ephemeralContainers=["e"]), "e") == "e"
    with pytest.raises(APIError, match="container x is not valid for pod p"):
        container_of(pod("a"), "x")
    with pytest.raises(APIError, match=r"choose one of: \[i a b e\]"):
        container_of(pod("a", "b", initContainers=["i"], ephemeralContainers=["e"]), "")


def test_kubelets() -> None:
    addresses = [{"type": "InternalIP", "address": "10.1.1.1"}, {"type": "Hostname", "address": "h"}]
    node = {"status": {"addresses": addresses, "daemonEndpoints": {"kubeletEndpoint": {"Port": 1234}}}}
    assert location(node, KubeletAccess()) == ("h", 1234)
    assert location(node, KubeletAccess(address_types=("InternalIP",))) == ("10.1.1.1", 1234)
    assert location({"status": {"addresses": addresses}}, KubeletAccess())[1] == 10250
    with pytest.raises(APIError) as raised:
        location(node, KubeletAccess(address_types=("ExternalIP",)))
    text = "no preferred addresses found; known addresses: [{InternalIP 10.1.1.1} {Hostname h}]"
    assert (raised.value.code, raised.value.message) == (500, text)


def test_fields_for_the_next_hop() -> None:
    headers = [(b"connection", b"close, X-Mine"), (b"x-mine", b"1"), (b"te", b"x"), (b"accept", b"*/*")]
    assert passed_on(headers) == [(b"accept", b"*/*")]
