"""Discovery, index and version endpoints: routes, headers, conditional requests, replacement."""

import json
from typing import Any

import pytest
import yaml

from fastapi_core._ext.reqinfo import parse
from fastapi_core._ext.router import Router
from fastapi_core.discovery.documents import DiscoveryDocuments
from fastapi_core.discovery.endpoints import DiscoveryEndpoints
from fastapi_core.discovery.index import index_routes, listed_paths
from fastapi_core.errors import APIError
from fastapi_core.http.exchange import Response
from fastapi_core.registry.definition import ResourceDefinition
from fastapi_core.request.routing import ANY

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class FakeRequest:
    def __init__(self, query: str, headers: dict[str, str]) -> None:
        self.query = query
        self.headers = headers

    def header(self, name: bytes) -> bytes | None:
        value = self.headers.get(name.decode())
        return None if value is None else value.encode()


class Context:
    def __init__(self, method: str, path: str, query: str, headers: dict[str, str]) -> None:
        self.info = parse(method, path, query)
        self.request = FakeRequest(query, headers)


def definition(plural: str, group: str, version: str = "v1", **more: Any) -> ResourceDefinition:
    return ResourceDefinition(
        group=group,
        version=version,
        kind="K",
        plural=plural,
        singular="k",
        namespaced=True,
        verbs=("get",),
        type=None,
        storage_group=group,
        storage_version=version,
        key_prefix=f"/registry/{plural}/",
        **more,
    )


def dump(tree: Any) -> bytes:
    return yaml.safe_dump(tree).encode()


DOCUMENTS = DiscoveryDocuments(
    [definition("pods", ""), definition("deployments", "apps"), definition("widgets", "x.com", custom=True)]
)


def ask(method: str, target: str, endpoints: DiscoveryEndpoints | None = None, **headers: str) -> Any:
    path, _, query = target.partition("?")
    endpoints = endpoints or DiscoveryEndpoints(DOCUMENTS, dump)
    routes = endpoints.routes()
    router: Router[Any] = Router([*routes, *index_routes(routes, "0.1.0")])
    match = router.lookup(path)
    if match is None:
        return None
    endpoint = match.methods.get(method) or match.methods.get(ANY)
    if endpoint is None:
        return 405
    return endpoint(Context(method, path, query, {k.replace("_", "-"): v for k, v in headers.items()}))


def header(answer: Response, name: bytes) -> bytes | None:
    return next((v for k, v in answer.headers if k.lower() == name), None)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/api", "APIVersions"),
        ("/api/", "APIVersions"),
        ("/apis", "APIGroupList"),
        ("/apis/", "APIGroupList"),
        ("/api/v1", "APIResourceList"),
        ("/apis/apps", "APIGroup"),
        ("/apis/apps/", "APIGroup"),
        ("/apis/apps/v1/", "APIResourceList"),
        ("/apis/x.com", "APIGroup"),
        ("/apis/x.com/v1", "APIResourceList"),
        ("/apis/x.com/v1/", "APIResourceList"),
    ],
)
def test_every_document_has_its_path(path: str, kind: str) -> None:
    answer = ask("GET", path)
    assert (answer.status, header(answer, b"content-type")) == (200, b"application/json")
    assert json.loads(answer.body)["kind"] == kind
    assert header(answer, b"cache-control") is None
    assert answer.compress


@pytest.mark.parametrize(
    ("method", "path", "want"),
    [
        ("POST", "/api", 405),
        ("HEAD", "/api/v1", 405),
        ("POST", "/apis/apps/v1", 405),
        ("HEAD", "/apis", 200),
        ("POST", "/apis/apps", 200),
        ("POST", "/apis/x.com/v1", 200),
        ("DELETE", "/version", 405),
        ("POST", "/", 200),
    ],
)
def test_services_take_get_only_and_plain_paths_any_method(method: str, path: str, want: int) -> None:
    answer = ask(method, path)
    assert (answer if answer == 405 else answer.status) == want


@pytest.mark.parametrize(
    "path", ["/apis/nope", "/apis/apps/v2", "/apis/apps//", "/apis//", "/api/v2", "/apis/x.com/v2"]
)
def test_other_paths_have_no_route(path: str) -> None:
    assert ask("GET", path) is None


def test_yaml_and_pretty() -> None:
    answer = ask("GET", "/apis/apps/v1", accept="application/yaml")
    assert header(answer, b"content-type") == b"application/yaml"
    assert answer.body.startswith(
        b"apiVersion: v1\ngroupVersion: apps/v1\nkind: APIResourceList\nresources:\n- kind: K\n"
    )
    compact = ask("GET", "/api/v1").body
    for indented in (
        ask("GET", "/api/v1?pretty=true"),
        ask("GET", "/api/v1", user_agent="curl/8"),
        ask("GET", "/api/v1", accept="application/json;pretty=1"),
    ):
        assert b'\n  "kind"' in indented.body
        assert json.loads(indented.body) == json.loads(compact)
    assert ask("GET", "/api/v1?pretty=0", user_agent="curl/8").body == compact


@pytest.mark.parametrize("path", ["/api", "/apis"])
def test_aggregated_document_and_its_tag(path: str) -> None:
    answer = ask("GET", path, accept=V2 + ",application/json")
    assert json.loads(answer.body)["kind"] == "APIGroupDiscoveryList"
    assert header(answer, b"content-type") == V2.encode()
    assert (header(answer, b"vary"), header(answer, b"cache-control")) == (b"Accept", b"public")
    tag = header(answer, b"etag")
    assert tag is not None
    again = ask("GET", path, accept=V2, if_none_match=tag.decode())
    assert (again.status, again.body, header(again, b"etag")) == (304, b"", tag)
    assert ask("GET", path, accept=V2, if_none_match="*").status == 200
    assert ask("GET", path, accept="application/json", if_none_match=tag.decode()).status == 200


def test_what_cannot_be_had_is_not_acceptable() -> None:
    offered = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    for path, accept, want in [
        ("/apis", "text/html", f"only the following media types are accepted: {offered}"),
        ("/api", "text/html", f"406: Not Acceptable\n\nAvailable representations: {offered}"),
        ("/apis/apps/v1", "text/html", f"406: Not Acceptable\n\nAvailable representations: {offered}"),
        ("/apis/x.com/v1", "text/html", f"only the following media types are accepted: {offered}"),
        ("/apis/apps/v1", V2, f"only the following media types are accepted: {offered}"),
        ("/version", "application/yaml", "406: Not Acceptable\n\nAvailable representations: application/json"),
    ]:
        with pytest.raises(APIError) as caught:
            ask("GET", path, accept=accept)
        assert (caught.value.code, caught.value.message) == (406, want), path


def test_new_documents_are_served_at_once_and_removed_groups_are_gone() -> None:
    endpoints = DiscoveryEndpoints(DOCUMENTS, dump)
    group = dict(endpoints.routes())["/apis/x.com"][ANY]
    version = dict(endpoints.routes())["/apis/x.com/v1{/}"][ANY]
    context: Any = Context("GET", "/apis/x.com", "", {})
    endpoints.documents = DiscoveryDocuments([definition("gadgets", "x.com", custom=True)])
    answer: Any = version(context)
    assert json.loads(answer.body)["resources"][0]["name"] == "gadgets"
    endpoints.documents = DiscoveryDocuments([])
    for gone in (group(context), version(context)):
        assert isinstance(gone, Response)
        assert (gone.status, gone.body) == (404, b"404 page not found\n")


def test_index_is_sorted_indented_json() -> None:
    for path in ("/", "/index.html"):
        answer = ask("GET", path, accept="text/html")
        assert answer.body.startswith(b'{\n  "paths": [\n    "/api",\n    "/api/v1",\n    "/apis",\n    "/apis/",\n')
        assert json.loads(answer.body)["paths"][-1] == "/version"
        assert header(answer, b"content-type") == b"application/json"
    assert ask("GET", "//") is None


def test_the_index_lists_documents_and_folders_only() -> None:
    patterns = [
        "/api/v1/pods{/}",
        "/apis/apps/v1/deployments{/}",
        "/apis/apps/v1{/}",
        "/api{/}",
        "/apis/apps/",
        "/apis/",
        "/openapi/v3",
        "/openapi/v3/{path...}",
        "/apis/{group}",
        "/healthz/a/b/c",
        "/",
        "/openid/v1/jwks{/}",
    ]
    want = ["/api", "/apis/", "/apis/apps/v1", "/healthz/a/b/c", "/openapi/v3", "/openapi/v3/", "/openid/v1/jwks"]
    assert listed_paths([(pattern, {}) for pattern in patterns]) == want


def test_version_document() -> None:
    answer = ask("GET", "/version/")
    tree = json.loads(answer.body)
    assert " ".join(tree) == (
        "major minor emulationMajor emulationMinor minCompatibilityMajor minCompatibilityMinor gitVersion gitCommit "
        "gitTreeState buildDate goVersion compiler platform"
    )
    assert (tree["major"], tree["minor"], tree["minCompatibilityMinor"]) == ("1", "36", "35")
    assert tree["gitVersion"] == "v1.36.2+fastapi-core.0.1.0"
    assert answer.body.startswith(b'{\n  "major": "1",\n')
    assert header(answer, b"content-type") == b"application/json"
