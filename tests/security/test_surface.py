"""Everything a composed server serves, asked by a stranger, by somebody without rights, and by tricks with paths."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any, cast

import pytest
import pytest_asyncio

from fastapi_core.controlplane.compose import compose
from fastapi_core.controlplane.delegation import Snapshot
from fastapi_core.http.exchange import Stream
from fastapi_core.options.complete import complete
from fastapi_core.options.options import Options
from fastapi_core.server.generic import GenericServer
from tests.fixtures.exchange import FakeRequest

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
#: What probes and clients without credentials need, opened by the role system:public-info-viewer.
PUBLIC = {"/healthz", "/livez", "/readyz", "/version", "/version/"}
#: What everybody who is known may read: the roles system:discovery and system:public-info-viewer.
DISCOVERY = re.compile(r"/(api|apis|openapi)(/|$)|/(healthz|livez|readyz|version)/?$|/\.well-known/|/openid/")
#: What everybody who is known may ask about himself: the role system:basic-user.
SELF = re.compile(r"/self\w+$")
SECRET = "c2VjcmV0LW1hcmtlcg=="


class Surface:
    """A composed server without a socket in between."""

    def __init__(self, server: GenericServer) -> None:
        self.server = server

    async def ask(self, method: str, target: str, token: str = "", **headers: str) -> tuple[int, bytes]:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            given["Authorization"] = f"Bearer {token}"
        answer: Any = self.server.handler(cast("Any", FakeRequest(method, target, given)))
        if isinstance(answer, Awaitable):
            answer = await answer
        if isinstance(answer, Stream):
            return answer.status, b""
        return answer.status, answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)

    def paths(self) -> list[str]:
        """Every route with its parameters filled in."""
        snapshot = cast("Snapshot", self.server.router())
        return [re.sub(r"\{\w+(\.\.\.)?\}", "x", pattern) for pattern in snapshot.builtin.paths()]


@pytest_asyncio.fixture
async def surface(tmp_path: Path) -> AsyncIterator[Surface]:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('admintoken,admin,1,"system:masters"\nusertoken,alice,2,"devs"\n')
    flags = ["--bind-address=127.0.0.1", "--secure-port=0", "--enable-logs-handler", "--contention-profiling"]
    completed = complete(Options.parse([*flags, f"--token-auth-file={tokens}"]))
    server = await compose(completed)
    await server.start()
    try:
        yield Surface(server)
    finally:
        await server.stop()
        completed.close()


async def test_strangers_get_the_public_paths_and_nothing_else(surface: Surface) -> None:
    open_to_all = set()
    for path in [*surface.paths(), "/", "/nothing", "/debug/pprof/profile?seconds=1", "/logs/syslog"]:
        for method in METHODS:
            status, _ = await surface.ask(method, path)
            if status not in (401, 403):
                open_to_all.add(path)
    assert {path for path in open_to_all if not DISCOVERY_KEYS.match(path)} <= PUBLIC


#: The issuer's public keys, for those who check tokens elsewhere: only if a binding opens them.
DISCOVERY_KEYS = re.compile(r"/\.well-known/openid-configuration|/openid/v1/jwks")


async def test_somebody_without_rights_gets_discovery_and_himself(surface: Surface) -> None:
    for path in [*surface.paths(), "/", "/nothing", "/logs/syslog"]:
        resource = re.match(r"/api/v1/.|/apis/[^/]+/[^/]+/.", path)
        for method in METHODS:
            status, _ = await surface.ask(method, path, "usertoken")
            if SELF.search(path) and method == "POST":
                assert status not in (401, 403), path
            elif resource:
                assert status == 403, (method, path, status)
            elif method in ("GET", "HEAD") and DISCOVERY.match(path):
                assert status != 401, (method, path, status)
            else:
                assert status == 403, (method, path, status)


async def test_administrators_reach_every_route(surface: Surface) -> None:
    for path in surface.paths():
        if path.startswith("/debug/pprof/profile"):
            continue
        assert (await surface.ask("GET", path, "admintoken"))[0] not in (401, 403), path


@pytest.mark.parametrize(
    "headers",
    [
        {"X_Remote_User": "admin", "X_Remote_Group": "system:masters"},
        {"Impersonate_User": "admin", "Impersonate_Group": "system:masters"},
        {"User_Agent": "fastapi-core/loopback"},
        {"User_Agent": "kube-apiserver/v1.36.2", "X_Remote_User": "system:apiserver"},
        {"Authorization": "Bearer "}, {"Authorization": "Basic YWRtaW46YWRtaW4="},
    ],
)  # fmt: skip
@pytest.mark.parametrize("token", ["", "usertoken"])
async def test_headers_alone_make_nobody_somebody_else(surface: Surface, headers: dict[str, str], token: str) -> None:
    if "Authorization" in headers and token:
        pytest.skip("one header")
    status, body = await surface.ask("GET", "/api/v1/namespaces/kube-system/secrets", token, **headers)
    assert status in (401, 403), body


TRICKS = [
    "/api/v1/namespaces/a/configmaps/../secrets", "/api/v1/namespaces/a/configmaps/%2e%2e/secrets",
    "/api/v1/namespaces/a/configmaps/..%2fsecrets", "/api/v1/namespaces/a/configmaps%2f..%2fsecrets",
    "/api/v1/namespaces/a/./secrets", "/api/v1/namespaces/a/secrets", "/api/v1/namespaces/a/secrets/s",
    "/api/v1/namespaces/a%2fsecrets", "/api/v1/namespaces/a%2Fsecrets%2Fs", "/api/v1//namespaces/a/secrets/s",
    "//api/v1/namespaces/a/secrets/s", "/api//v1/namespaces/a/secrets/s", "/api/v1/namespaces//a/secrets/s",
    "/api/v1/namespaces/a//secrets/s", "/api/v1/namespaces/a/secrets//s", "/api/v1/namespaces/a/secrets/s/",
    "/API/v1/namespaces/a/secrets/s", "/api/V1/namespaces/a/secrets/s", "/api/v1/Namespaces/a/secrets/s",
    "/api/v1/namespaces/a/Secrets/s", "/api/v1/watch/namespaces/a/secrets", "/api/v1/watch/namespaces/a/secrets/s",
    "/api/v1/secrets", "/api/v1/namespaces/b/../a/secrets/s", "/api/v1/namespaces/a/configmaps/;/secrets/s",
    "/healthz/../api/v1/namespaces/a/secrets/s", "/healthz/%2e%2e/api/v1/namespaces/a/secrets/s",
    "/version/..%2fapi/v1/namespaces/a/secrets/s", "/api/v1/proxy/namespaces/a/secrets/s",
    "/api/v1/namespaces/a/secrets/s?fieldSelector=metadata.name=c", "/api/v1/namespaces/a/%73ecrets/s",
    "/api/v1/namespaces/a/secrets/s%00", "/api/v1/namespaces/a/configmaps?resource=secrets", "/apis//v1/namespaces/a/secrets/s",
    "/apis/%2e%2e/api/v1/namespaces/a/secrets/s", "/api%2fv1/namespaces/a/secrets/s", "/api/v1%2fnamespaces/a/secrets/s",
]  # fmt: skip


async def test_spelling_a_path_otherwise_opens_nothing(surface: Surface) -> None:
    loopback = surface.server.loopback
    await loopback.call("POST", "/api/v1/namespaces", {"metadata": {"name": "a"}})
    await loopback.call("POST", "/api/v1/namespaces/a/secrets", {"metadata": {"name": "s"}, "data": {"k": SECRET}})
    await loopback.call("POST", "/api/v1/namespaces/a/configmaps", {"metadata": {"name": "c"}})
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/a"
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}
    await loopback.call("POST", f"{rbac}/roles", {"metadata": {"name": "r"}, "rules": [rule]})
    binding = {
        "metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
    }
    await loopback.call("POST", f"{rbac}/rolebindings", binding)
    status, body = await surface.ask("GET", "/api/v1/namespaces/a/configmaps/c", "usertoken")
    assert status == 200, body
    for token in ("", "usertoken"):
        for target in TRICKS:
            for method in ("GET", "HEAD"):
                status, body = await surface.ask(method, target, token)
                assert SECRET.encode() not in body, target
                if "configmaps" not in target:
                    assert status in (400, 401, 403, 404, 500), (target, status)
    status, body = await surface.ask("GET", "/api/v1/namespaces/a/secrets/s", "admintoken")
    assert json.loads(body)["data"] == {"k": SECRET}, "the secret was there all the time"
