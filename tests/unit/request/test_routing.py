"""Routes of resources: which endpoint a path reaches, and the built-in ones against the recorded OpenAPI documents."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from fastapi_core._ext.router import Router
from fastapi_core.errors import APIError
from fastapi_core.registry.definition import ResourceDefinition, Subresource
from fastapi_core.request.routing import ANY, resource_routes

FACTS = Path(__file__).parents[4] / "shared" / "facts"
VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


def definition(plural: str, group: str = "", *, namespaced: bool = True, **more: Any) -> ResourceDefinition:
    more = {"verbs": VERBS, "version": "v1", "custom": False, **more}
    return ResourceDefinition(
        group=group, kind="K", plural=plural, singular="k", namespaced=namespaced, type=None, storage_group=group,
        storage_version="v1", key_prefix=f"/registry/{plural}/", **more,
    )  # fmt: skip


def endpoint(name: str) -> Any:
    def answer(ctx: Any) -> str:
        return name

    return answer


def endpoints(*keys: str) -> dict[str, Any]:
    return {key: endpoint(key) for key in (*VERBS, *keys)}


class Info:
    def __init__(self, verb: str) -> None:
        self.info = self
        self.verb = verb


def answers(router: Router[Any], method: str, path: str, verb: str = "") -> Any:
    """Name of the endpoint that answers, 405 for a wrong method, None when there is no route."""
    match = router.lookup(path)
    if match is None:
        return None
    endpoint = match.methods.get(method) or match.methods.get(ANY)
    return endpoint(Info(verb)) if endpoint else 405


SUB = {
    "status": Subresource("status", ("get", "patch", "update"), "K"),
    "proxy": Subresource("proxy", ("get", "create"), "O"),
}
PODS = definition("pods", subresources=SUB)
NODES = definition("nodes", namespaced=False)
TABLE: Router[Any] = Router(
    [
        *resource_routes(PODS, endpoints("status:get", "status:update", "proxy:connect")),
        *resource_routes(NODES, endpoints()),
        *resource_routes(definition("widgets", "example.com", custom=True), endpoints()),
        ("/version{/}", {"GET": endpoint("version")}),
        ("/healthz", {ANY: endpoint("healthz")}),
        ("/openapi/v3/{path...}", {ANY: endpoint("openapi")}),
    ],
)


@pytest.mark.parametrize(
    ("method", "path", "want"),
    [
        ("GET", "/api/v1/pods", "list"),
        ("POST", "/api/v1/pods", 405),
        ("DELETE", "/api/v1/pods", 405),
        ("POST", "/api/v1/namespaces/a/pods", "create"),
        ("DELETE", "/api/v1/namespaces/a/pods/", "deletecollection"),
        ("HEAD", "/api/v1/namespaces/a/pods", 405),
        ("PATCH", "/api/v1/namespaces/a/pods/p", "patch"),
        ("GET", "/api/v1/namespaces/a/pods/..", "get"),
        ("OPTIONS", "/api/v1/namespaces/a/pods/p", 405),
        ("GET", "/api/v1/pods/p", None),
        ("GET", "/api/v1/namespaces/a/nodes", None),
        ("DELETE", "/api/v1/nodes", "deletecollection"),
        ("GET", "/api/v1/namespaces/a/pods/p/status", "status:get"),
        ("PATCH", "/api/v1/namespaces/a/pods/p/status", 405),
        ("GET", "/api/v1/namespaces/a/pods/p/nope", None),
        ("OPTIONS", "/api/v1/namespaces/a/pods/p/proxy", "proxy:connect"),
        ("GET", "/api/v1/namespaces/a/pods/p/proxy/", "proxy:connect"),
        ("DELETE", "/api/v1/namespaces/a/pods/p/proxy/x//y/", "proxy:connect"),
        ("GET", "/api/v1/watch/pods", "watch"),
        ("GET", "/api/v1/watch/namespaces/a/pods/p", "watch"),
        ("POST", "/api/v1/watch/namespaces/a/pods", 405),
        ("GET", "/api/v1/watch/nodes", "watch"),
        ("GET", "/apis/example.com/v1/watch/widgets", "watch"),
        ("GET", "/apis/example.com/v1/nopes", None),
        ("GET", "/apis/apps/v9/deployments", None),
        ("GET", "/apis/apps", None),
        ("GET", "/apis/appsx", None),
        ("GET", "/api/v2/pods", None),
        ("GET", "/api//v1/pods", None),
        ("GET", "//api/v1/pods", None),
        ("GET", "/api/v1/namespaces//pods", None),
        ("DELETE", "/api/v1/namespaces/a/pods/%2F", None),
        ("GET", "/api/v1/namespaces/a/pods/../secrets", None),
        ("GET", "/api/../version", None),
        ("GET", "/version/", "version"),
        ("POST", "/version", 405),
        ("GET", "/version/x", None),
        ("PUT", "/healthz", "healthz"),
        ("GET", "/healthz/", None),
        ("GET", "/openapi/v3/", "openapi"),
        ("GET", "/nothing", None),
        ("GET", "/", None),
    ],
)
def test_what_answers_a_path(method: str, path: str, want: Any) -> None:
    assert answers(TABLE, method, path) == want


def test_a_list_endpoint_decides_itself_about_a_watch() -> None:
    assert answers(TABLE, "GET", "/api/v1/namespaces/a/pods", "watch") == "list"


def test_a_collection_that_cannot_be_watched_says_so() -> None:
    table: Router[Any] = Router(resource_routes(definition("things", "g", verbs=("get", "list")), endpoints()))
    assert answers(table, "GET", "/apis/g/v1/things", "list") == "list"
    with pytest.raises(APIError) as caught:
        answers(table, "GET", "/apis/g/v1/things", "watch")
    assert caught.value.message == 'watch is not supported on resources of kind "things.g"'
    assert caught.value.details == {"group": "g", "kind": "things"}


def recorded_resources() -> list[dict[str, Any]]:
    if not FACTS.is_dir():
        pytest.skip("no facts")
    records = json.loads((FACTS / "resources.json").read_text())["resources"].values()
    return [r for r in records if r["served"] == "default"]


def test_routes_equal_the_recorded_openapi_paths() -> None:
    records = recorded_resources()
    wanted: dict[str, set[str]] = {}
    for path in {f"api/{r['version']}" if not r["group"] else f"apis/{r['group']}/{r['version']}" for r in records}:
        with gzip.open(FACTS / "openapi" / (path.replace("/", "__") + ".json.gz")) as f:
            for route, item in json.load(f)["paths"].items():
                wanted[route] = {m.upper() for m in item if m != "parameters"}
    got: dict[str, set[str]] = {}
    for r in records:
        subs = {name: Subresource(name, tuple(s["verbs"]), s["kind"]) for name, s in r.get("subresources", {}).items()}
        made = definition(
            r["plural"],
            r["group"],
            namespaced=r["scope"] == "Namespaced",
            version=r["version"],
            verbs=tuple(r["verbs"]),
            subresources=subs,
        )
        keys = endpoints(*(f"{name}:connect" for name in subs))
        for pattern, methods in resource_routes(made, keys):
            got[pattern.removesuffix("{/}").replace("...}", "}")] = set(methods)
    bodies = {p: m for p, m in wanted.items() if p.strip("/").count("/") >= (2 if p.startswith("/api/") else 3)}
    assert got == bodies
