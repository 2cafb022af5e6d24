"""Request info of the path forms clients use, the memo in front of it and the refusals."""

import pytest

from fastapi_core._ext.reqinfo import ParseError, RequestInfo, parse, parse_query
from fastapi_core.request.context import is_long_running
from fastapi_core.request.info import InfoParser, refusal


def get(path: str, query: str = "") -> RequestInfo:
    return parse("GET", path, query)


def summary(info: RequestInfo) -> tuple[str, ...]:
    group = f"{info.api_group}/{info.api_version}"
    return info.verb, group, info.namespace, info.resource, info.name, info.subresource


@pytest.mark.parametrize(
    ("method", "path", "want"),
    [
        ("GET", "/api/v1/pods", ("list", "/v1", "", "pods", "", "")),
        ("GET", "/api/v1/namespaces/a/pods", ("list", "/v1", "a", "pods", "", "")),
        ("GET", "/api/v1/namespaces/a/pods/", ("list", "/v1", "a", "pods", "", "")),
        ("HEAD", "/api/v1/namespaces/a/pods/p", ("get", "/v1", "a", "pods", "p", "")),
        ("POST", "/api/v1/namespaces/a/pods/p/exec", ("create", "/v1", "a", "pods", "p", "exec")),
        (
            "PUT",
            "/apis/apps/v1/namespaces/a/deployments/d/scale",
            ("update", "apps/v1", "a", "deployments", "d", "scale"),
        ),
        (
            "DELETE",
            "/apis/apps/v1/namespaces/a/deployments",
            ("deletecollection", "apps/v1", "a", "deployments", "", ""),
        ),
        ("DELETE", "/api/v1/nodes/n", ("delete", "/v1", "", "nodes", "n", "")),
        ("GET", "/api/v1/namespaces", ("list", "/v1", "", "namespaces", "", "")),
        ("PATCH", "/api/v1/namespaces/a", ("patch", "/v1", "a", "namespaces", "a", "")),
        ("PUT", "/api/v1/namespaces/a/finalize", ("update", "/v1", "a", "namespaces", "a", "finalize")),
        ("GET", "/api/v1/namespaces/a/status", ("get", "/v1", "a", "namespaces", "a", "status")),
        ("GET", "/api/v1/namespaces/a/status/x", ("get", "/v1", "a", "namespaces", "a", "status")),
        ("GET", "/api/v1/watch/namespaces/a/pods/p", ("watch", "/v1", "a", "pods", "p", "")),
        ("POST", "/api/v1/watch/pods", ("watch", "/v1", "", "pods", "", "")),
        ("GET", "/api/v1/proxy/namespaces/a/pods/p/q", ("proxy", "/v1", "a", "pods", "p", "")),
        ("OPTIONS", "/api/v1/pods", ("", "/v1", "", "pods", "", "")),
        ("GET", "/api/v1/namespaces/a/pods/x%2Fstatus", ("get", "/v1", "a", "pods", "x", "status")),
        (
            "GET",
            "/api/v1/namespaces/..%2fkube-system/configmaps",
            ("get", "/v1", "..", "kube-system", "configmaps", ""),
        ),
        ("GET", "//api/v1/pods", ("list", "/v1", "", "pods", "", "")),
    ],
)
def test_resource_paths(method: str, path: str, want: tuple[str, ...]) -> None:
    info = parse(method, path, "")
    assert info.is_resource_request
    assert summary(info) == want


@pytest.mark.parametrize(
    "path", ["/", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1/", "/healthz", "/a/b/c/d", "*"]
)
def test_other_paths_are_no_resource_requests(path: str) -> None:
    info = parse("PROPFIND", path, "")
    assert (info.is_resource_request, info.verb, info.resource, info.path) == (False, "propfind", "", path)


def test_parts_start_at_the_resource() -> None:
    assert get("/api/v1/namespaces/a/pods/p/proxy/x/y").parts == ("pods", "p", "proxy", "x", "y")


@pytest.mark.parametrize(
    ("query", "verb"),
    [
        ("watch=1", "watch"),
        ("watch=maybe", "watch"),
        ("watch=", "watch"),
        ("watch", "watch"),
        ("watch=0", "list"),
        ("watch=False", "list"),
        ("watch=0&watch=1", "list"),
        ("watch=1&limit=x", "watch"),
        ("", "list"),
    ],
)
def test_watch_parameter(query: str, verb: str) -> None:
    assert get("/api/v1/pods", query).verb == verb
    assert get("/api/v1/namespaces/a/pods/p", query).verb == "get"


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("fieldSelector=metadata.name%3Dx", "x"),
        ("fieldSelector=metadata.name==x,spec.a=b", "x"),
        ("fieldSelector=metadata.name!%3Dx", ""),
        ("fieldSelector=metadata.name=a/b", ""),
        ("fieldSelector=metadata.name=..", ""),
        ("fieldSelector=metadata.name=x&limit=x", ""),
        ("fieldSelector=metadata.name=x,oops", ""),
        ("fieldSelector=a=b&fieldSelector=metadata.name=x", ""),
    ],
)
def test_a_field_selector_may_carry_the_name(query: str, name: str) -> None:
    info = get("/api/v1/namespaces/a/pods", query)
    assert (info.name, info.verb) == (name, "list")
    assert info.field_selector == info.query["fieldSelector"][0]


def test_selectors_of_the_deprecated_watch_path_do_not_count() -> None:
    info = get("/api/v1/watch/pods", "fieldSelector=metadata.name=x&labelSelector=a")
    assert (info.field_selector, info.label_selector, info.name) == ("", "", "")


def test_selectors_of_an_item_do_not_count() -> None:
    assert get("/api/v1/nodes/n", "labelSelector=a").label_selector == ""


def test_a_name_from_a_selector_leaves_a_deletion_of_many_what_it_is() -> None:
    info = parse("DELETE", "/api/v1/namespaces/a/pods", "fieldSelector=metadata.name=x")
    assert (info.verb, info.name, info.field_selector) == ("deletecollection", "", "metadata.name=x")


@pytest.mark.parametrize(
    "path", ["/api/v1/pods/%zz", "/api/v1/pods/a%", "/api/v1/pods/a%4", "pods", "", "/a\x00b", "/a\x7f"]
)
def test_malformed_targets_are_refused(path: str) -> None:
    with pytest.raises(ParseError) as caught:
        get(path)
    answer = refusal(caught.value, path)
    assert (answer.status, answer.body) == (400, b"400 Bad Request")


def test_a_special_verb_without_kind_is_a_server_error() -> None:
    with pytest.raises(ParseError) as caught:
        get("/api/v1/watch")
    answer = refusal(caught.value, "/api/v1/watch?a=<b>")
    assert answer.status == 500
    assert answer.body == (
        b'Internal Server Error: "/api/v1/watch?a=&lt;b&gt;": failed to create RequestInfo: '
        b"unable to determine kind and namespace from url, /api/v1/watch?a=&lt;b&gt;\n"
    )


def test_bytes_that_are_no_text_do_not_fail() -> None:
    assert get("/api/v1/namespaces/a/pods/%ff").name == "�"


def test_query_pairs_that_do_not_decode_are_dropped() -> None:
    assert parse_query("a=%zz&b=1;c=2&=x&&d&e=a+b%20c&d=2") == {"": ["x"], "d": ["", "2"], "e": ["a b c"]}


def test_repeated_gets_share_one_result_and_the_memory_is_bounded() -> None:
    parser = InfoParser(entries=3, longest=40)
    first = parser("GET", "/api/v1/pods", "")
    assert parser("GET", "/api/v1/pods", "") is first
    assert parser("DELETE", "/api/v1/pods", "").verb == "deletecollection"
    assert parser("HEAD", "/healthz", "").verb == "head"
    for i in range(10):
        parser("GET", "/api/v1/pods", f"limit={i}")
    assert len(parser) == 3
    parser("GET", "/api/v1/pods", "x" * 40)
    assert len(parser) == 3
    with pytest.raises(ParseError):
        parser("GET", "/%", "")
    assert len(parser) == 3


@pytest.mark.parametrize(
    ("path", "query", "want"),
    [
        ("/api/v1/pods", "watch=1", True),
        ("/api/v1/watch/pods", "", True),
        ("/api/v1/pods", "", False),
        ("/debug/pprof/profile", "", True),
        ("/debug/pprof", "", False),
        ("/api/v1/namespaces/a/pods/p/log", "", True),
        ("/api/v1/namespaces/a/pods/p/exec", "", True),
        ("/api/v1/namespaces/a/pods/p/status", "", False),
        ("/api/v1/namespaces/a/services/s/proxy/x", "", True),
        ("/api/v1/nodes/n", "watch=1", False),
    ],
)
def test_long_running_requests(path: str, query: str, want: bool) -> None:
    assert is_long_running(get(path, query)) is want


def test_first_value_of_a_parameter() -> None:
    info = get("/", "a=1&a=2&b=")
    assert (info.first("a"), info.first("b", "x"), info.first("c"), info.first("c", "x")) == ("1", "", "", "x")
