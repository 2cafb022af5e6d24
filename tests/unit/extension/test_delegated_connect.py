"""From flags to delegation: what is asked at the start, what is refused, what is tolerated, and in which words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest

from fastapi_core.authn.base import WrongCredential
from fastapi_core.authn.outbound import OutboundError
from fastapi_core.authz.base import Decision
from fastapi_core.extension.delegated import connect, patience
from fastapi_core.extension.delegated.delegation import Delegation
from fastapi_core.extension.delegated.options import DelegatedOptions
from fastapi_core.obs.catalog import Metrics
from fastapi_core.obs.files import FileWatcher
from fastapi_core.options.flags import OptionsError
from tests.fixtures.https import ScriptedServer, kubeconfig
from tests.unit.extension.test_delegated_authenticator import HEADERS, PROXY, config_map, context, shown, who
from tests.unit.extension.test_delegated_authorizer import attributes
from tests.unit.extension.test_delegated_published import CLIENTS, PROXIES

CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
TOKENS, ACCESS = "/apis/authentication.k8s.io/v1/tokenreviews", "/apis/authorization.k8s.io/v1/subjectaccessreviews"
FORBIDDEN = {
    "kind": "Status",
    "message": 'configmaps "extension-apiserver-authentication" is forbidden: User "ext" cannot get it',
    "reason": "Forbidden",
    "code": 403,
}


@pytest.fixture
async def core(tmp_path: Path) -> AsyncIterator[ScriptedServer]:
    server = ScriptedServer(tmp_path / "core")
    server.answers[CONFIG_MAP] = lambda _: (200, config_map())
    server.answers[TOKENS] = lambda r: (
        201,
        {"status": {"authenticated": r["spec"]["token"] == "t", "user": {"username": "tess"}}},
    )
    server.answers[ACCESS] = lambda r: (201, {"status": {"allowed": r["spec"]["user"] == "tess"}})
    yield server
    await asyncio.to_thread(server.close)


def options(core: ScriptedServer, tmp_path: Path, **more: Any) -> DelegatedOptions:
    file = tmp_path / "kubeconfig"
    file.write_text(kubeconfig(core, token="sesame"))
    return DelegatedOptions(kubeconfig=str(file), **more)


async def connected(given: DelegatedOptions, metrics: Metrics | None = None) -> Delegation:
    found = await connect(given, agent="ext", files=FileWatcher(), metrics=metrics or Metrics())
    assert isinstance(found, Delegation)
    return found


async def test_everything_is_asked_of_one_server(core: ScriptedServer, tmp_path: Path) -> None:
    metrics = Metrics()
    found = await connected(options(core, tmp_path), metrics)
    assert found.authorities.pem == CLIENTS.pem + PROXIES.pem
    user = await who(found.authenticator, context(HEADERS, shown(PROXY, PROXIES)))
    assert user is not None
    assert user.name == "alice"
    user = await who(found.authenticator, context([("Authorization", "Bearer t")]))
    assert user is not None
    assert user.name == "tess"
    for name, decision in (("tess", Decision.ALLOW), ("eve", Decision.NO_OPINION)):
        answer = found.authorizer.authorize(attributes(name))
        assert isinstance(answer, Awaitable)
        assert (await answer).decision is decision
    assert {path for path, _ in core.asked} == {CONFIG_MAP, TOKENS, ACCESS}
    assert {headers["authorization"] for headers in core.headers} == {"Bearer sesame"}
    assert {headers["user-agent"] for headers in core.headers} == {"ext"}
    exposed = metrics.registry.expose().decode()
    assert 'apiserver_delegated_authn_request_total{code="201"} 1' in exposed
    assert 'apiserver_delegated_authz_request_total{code="201"} 2' in exposed
    assert 'apiserver_delegated_authz_request_duration_seconds_count{code="201"} 2' in exposed
    await found.close()


async def test_a_config_map_that_may_not_be_read(core: ScriptedServer, tmp_path: Path) -> None:
    core.answers[CONFIG_MAP] = lambda _: (403, FORBIDDEN)
    with pytest.raises(OptionsError) as caught:
        await connected(options(core, tmp_path))
    assert caught.value.errors == [
        f"unable to read configmap/extension-apiserver-authentication in kube-system: {FORBIDDEN['message']}: bind the role "
        "(`register` does), or serve without it by --authentication-tolerate-lookup-failure"
    ]
    found = await connected(options(core, tmp_path, authentication_tolerate_lookup_failure=True))
    with pytest.raises(WrongCredential):
        await who(found.authenticator, context(HEADERS, shown(PROXY, PROXIES)))
    nobody = await who(found.authenticator, context())
    assert nobody is not None
    assert nobody.name == "system:anonymous"
    await found.close()


async def test_a_config_map_that_is_not_there_yet(core: ScriptedServer, tmp_path: Path) -> None:
    core.answers[CONFIG_MAP] = lambda _: (404, {"kind": "Status", "reason": "NotFound", "message": "no", "code": 404})
    found = await connected(options(core, tmp_path))
    assert found.authorities.pem == b""
    await found.close()


async def test_a_server_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = ScriptedServer(tmp_path / "gone")
    given = options(server, tmp_path)
    await asyncio.to_thread(server.close)
    monkeypatch.setattr(patience, "SECONDS", 0.0)
    with pytest.raises(OptionsError, match=r"unable to read configmap/.*connection refused"):
        await connected(given)
    # Nothing has to be read from it: whoever asks later is told.
    given.authentication_skip_lookup = True
    found = await connected(given)
    answer = found.authorizer.authorize(attributes("tess"))
    assert isinstance(answer, Awaitable)
    assert "connection refused" in (await answer).error
    await found.close()


async def test_without_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "SECONDS", 0.0)
    for name in ("KUBERNETES_SERVICE_HOST", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(OptionsError) as caught:
        await connected(DelegatedOptions())
    assert caught.value.errors[0].startswith(
        "--kubeconfig: is not given, and this is no pod (unable to load in-cluster"
    )
    assert "by --kubeconfig or $KUBECONFIG" in caught.value.errors[0]
    found = await connected(DelegatedOptions(authentication_skip_lookup=True))
    answer = found.authorizer.authorize(attributes("tess"))
    assert not isinstance(answer, Awaitable)
    assert answer.decision is Decision.NO_OPINION
    with pytest.raises(OptionsError, match=r"^--kubeconfig: '/nowhere'"):
        await connected(DelegatedOptions(kubeconfig="/nowhere"))


async def test_the_environment_names_it_as_for_kubectl(
    core: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", f"/nowhere:{options(core, tmp_path).kubeconfig}")
    found = await connected(DelegatedOptions())
    assert [path for path, _ in core.asked] == [CONFIG_MAP]
    await found.close()


@pytest.mark.timeout(20)
async def test_a_server_that_is_being_started_is_waited_for(
    core: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(patience, "SECONDS", 600.0)
    monkeypatch.setattr(patience, "PAUSE", 0.0)
    later = tmp_path / "later"
    asked = 0

    def look(path: str) -> bool:
        nonlocal asked
        asked += path == str(later)
        if asked == 5:
            later.write_text(kubeconfig(core, token="sesame"))
        return Path(path).exists()

    monkeypatch.setattr("os.path.exists", look)
    found = await connected(DelegatedOptions(kubeconfig=str(later)))
    assert asked >= 5
    await found.close()


async def test_refused_connections_are_tried_again() -> None:
    told: list[str] = []
    errors = [OutboundError("dial tcp: connection refused"), OutboundError("connection refused"), OutboundError("no")]

    async def attempt() -> None:
        raise errors.pop(0)

    with pytest.raises(OutboundError, match="no"):
        await patience.patiently(attempt, told.append)
    assert told == ["dial tcp: connection refused"]


async def test_two_ways(core: ScriptedServer, tmp_path: Path) -> None:
    other = ScriptedServer(tmp_path / "other")
    other.answers[ACCESS] = lambda _: (201, {"status": {"allowed": True}})
    file = tmp_path / "second"
    file.write_text(kubeconfig(other))
    found = await connected(options(core, tmp_path, authorization_kubeconfig=str(file)))
    answer = found.authorizer.authorize(attributes("eve"))
    assert isinstance(answer, Awaitable)
    assert (await answer).decision is Decision.ALLOW
    assert [path for path, _ in other.asked] == [ACCESS]
    await found.close()
    await asyncio.to_thread(other.close)


async def test_reviews_that_are_refused_say_why(
    core: ScriptedServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    refusal = {"kind": "Status", "message": "subjectaccessreviews is forbidden", "reason": "Forbidden", "code": 403}
    core.answers[ACCESS] = lambda _: (403, refusal)
    found = await connected(options(core, tmp_path))
    answer = found.authorizer.authorize(attributes("tess"))
    assert isinstance(answer, Awaitable)
    assert (await answer).error == (
        "subjectaccessreviews is forbidden (usually fixed by a ClusterRoleBinding of this server's account to "
        "system:auth-delegator, which `register` makes)"
    )
    await found.close()


def test_files_of_the_flags_that_are_wrong(core: ScriptedServer, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text(json.dumps({}))
    with pytest.raises(OptionsError, match="--client-ca-file, --requestheader-client-ca-file: no certificates found"):
        asyncio.run(connected(options(core, tmp_path, client_ca_file=str(file))))
