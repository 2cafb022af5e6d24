"""What every API server has beside its resources: health, version, and a clear no for what it does not have."""

from __future__ import annotations

from fastapi_core.testing.conformance.subject import Subject, success
from fastapi_core.testing.conformance.verdicts import SHOULD, Scope, Skipped, check, demand


@check("server.health", scope=Scope.SERVER)
def health(t: Subject) -> None:
    """/livez and /readyz answer 200 when all is well; kubelets and load balancers probe them."""
    for path in ("/livez", "/readyz"):
        success(t.client.request("GET", path, headers={"Accept": "*/*"}), f"{path} says the server is well")


@check("server.health-verbose", SHOULD, scope=Scope.SERVER)
def health_verbose(t: Subject) -> None:
    """/readyz?verbose names each check on a line of its own; people look there for what is wrong."""
    answer = success(t.client.request("GET", "/readyz", query={"verbose": ""}, headers={"Accept": "*/*"}), "the checks")
    demand(b"[+]" in answer.body and b"\n" in answer.body, "lines such as [+]ping ok", answer)


@check("server.version", SHOULD, scope=Scope.SERVER)
def server_version(t: Subject) -> None:
    """/version tells major, minor and gitVersion; clients choose what they do by them."""
    answer = success(t.client.request("GET", "/version"), "the version")
    tree = answer.tree()
    for name in ("major", "minor", "gitVersion"):
        demand(isinstance(tree.get(name), str), f"{name} is a text", answer)


@check("server.unknown-paths", scope=Scope.SERVER)
def unknown_paths(t: Subject) -> None:
    """Paths that do not exist are 404; clients find out by it what a server has."""
    for path in ("/conformance-nothing", f"{t.resource.root}/conformance-nothing"):
        answer = t.client.request("GET", path)
        demand(answer.status == 404, "404: there is no such path", answer)


@check("server.metrics", SHOULD, scope=Scope.SERVER)
def metrics(t: Subject) -> None:
    """/metrics is in the text format of Prometheus; that is how servers are watched."""
    answer = t.client.request("GET", "/metrics", headers={"Accept": "text/plain"})
    if answer.status in (401, 403):
        raise Skipped("the credential may not read /metrics")
    success(answer, "the metrics")
    demand(b"\n# TYPE " in b"\n" + answer.body, "lines that begin with # TYPE", answer)
