"""Extension servers behind the front server: who is known, who decides, restarts and renewed certificates under load."""

from __future__ import annotations

import http.client
import json
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fastapi_core.authn.base import MASTERS
from tests.fixtures.pki import authority
from tests.integration.stage import PATIENCE, PROXY, Process, Service, Stage, own_address, replace, until

pytestmark = [
    pytest.mark.adversity,
    pytest.mark.skipif(not own_address(), reason="endpoints need an address that is not the loopback one"),
]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    made = Stage(tmp_path_factory.mktemp("stage"))
    try:
        made.open()
        yield made
    finally:
        made.close()


def grant(stage: Stage, user: str, group: str) -> None:
    """Let a user read the things of a group."""
    root, name = "/apis/rbac.authorization.k8s.io/v1", f"things-{user}"
    rules = [{"apiGroups": [group], "resources": ["things"], "verbs": ["get", "list", "watch"]}]
    assert stage.api("POST", f"{root}/clusterroles", {"metadata": {"name": name}, "rules": rules})[0] == 201
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
    }
    assert stage.api("POST", f"{root}/clusterrolebindings", binding)[0] == 201


def seen(service: Service) -> list[str]:
    """What the servers of an extension were asked."""
    lines: list[str] = []
    for tag in service.ports:
        status, found = service.direct(tag, f"/apis/{service.group}/v1/logs/x", {"Authorization": "Bearer admintoken"})
        assert status == 200, found
        lines += found.get("lines", ())
    return lines


def test_the_front_decides_before_a_server_is_reached(stage: Stage) -> None:
    status, refusal = stage.two.get("secret", "usertoken")
    assert status == 403
    assert refusal["message"] == (
        'things.two.example.test "secret" is forbidden: User "alice" cannot get resource "things" in API group '
        '"two.example.test" at the cluster scope'
    )
    assert not [line for line in seen(stage.two) if "secret" in line]
    grant(stage, "alice", stage.two.group)
    status, told = stage.two.get("secret", "usertoken")
    assert status == 200, told
    assert (told["user"], told["groups"]) == ("alice", ["devs", "system:authenticated"])
    assert told["server"] in stage.two.ports
    assert "get secret alice" in seen(stage.two)


def test_who_asks_a_server_itself_has_to_prove_it(stage: Stage) -> None:
    two, path = stage.two, f"/apis/{stage.two.group}/v1/things/x"
    claimed = {"X-Remote-User": "root", "X-Remote-Group": MASTERS}
    # Words without a certificate are nothing; neither are those of a client, or of a proxy with another name.
    status, refusal = two.direct("two-a", path, claimed)
    assert (status, refusal["message"].split(" cannot ")[0].split(": ")[1]) == (403, 'User "system:anonymous"')
    assert two.direct("two-a", path, claimed, stage.proxies.issue("somebody"))[0] == 401
    status, told = two.direct("two-a", path, claimed, stage.proxies.issue(PROXY))
    assert (status, told["user"], told["groups"]) == (200, "root", [MASTERS, "system:authenticated"])
    # Tokens are judged by the front, and so is what their users may do.
    assert two.direct("two-a", path, {"Authorization": "Bearer admintoken"})[1]["user"] == "admin"
    assert two.direct("two-a", path, {"Authorization": "Bearer wrong"})[0] == 401
    status, refusal = two.direct("two-a", f"/apis/{two.group}/v1/things", {"Authorization": "Bearer nobody"})
    assert status == 401
    assert two.direct("two-a", "/readyz")[0] == 200
    assert two.direct("two-a", "/metrics")[0] == 403


def test_a_client_certificate_of_the_front_is_known_to_servers(stage: Stage) -> None:
    import ssl
    from socket import create_connection

    pki = stage.front.data_dir / "pki"
    context = ssl.create_default_context(cadata=stage.two.bundle.read_text())
    context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    with (
        create_connection((stage.address, stage.two.ports["two-a"]), PATIENCE) as plain,
        context.wrap_socket(plain, server_hostname="two.default.svc") as secured,
    ):
        client = http.client.HTTPConnection("two.default.svc")
        client.sock = secured
        client.request("GET", f"/apis/{stage.two.group}/v1/things/x", headers={"X-Remote-User": "somebody-else"})
        told = json.loads(client.getresponse().read())
    assert told["user"] == "kubernetes-admin"


def ended(load: Process) -> dict[str, Any]:
    code, rest = load.end()
    assert code == 0, load.log.read_text()
    found: dict[str, Any] = json.loads(rest.splitlines()[-1])
    return found


def served_by(service: Service, tag: str) -> bool:
    status, told = service.get()
    assert status == 200, told
    return bool(told["server"] == tag)


def test_a_rolling_restart_under_load_loses_nothing(stage: Stage) -> None:
    load = stage.load()
    for service in (stage.one, stage.two):
        for tag in service.ports:
            service.ready(tag, False)
            assert service.servers[tag].end()[0] == 0, service.servers[tag].log.read_text()[-3000:]
            service.start(tag)
            service.ready(tag, True)
            until(lambda service=service, tag=tag: served_by(service, tag), f"{tag} serving again")
    found = ended(load)
    assert found["wrong"] == []
    assert set(found["servers"]) == {"one-a", "one-b", "two-a", "two-b"}
    assert found["good"] > 100


@pytest.mark.parametrize("name", ["one", "two"])
def test_a_crash_under_load_loses_nothing_that_can_be_asked_again(stage: Stage, name: str) -> None:
    service: Service = getattr(stage, name)
    load = stage.load()
    for tag in service.ports:
        # Nobody has told the front: it finds connections closed, and the port with nobody behind.
        service.servers[tag].end(signal.SIGKILL)
        other = next(other for other in service.ports if other != tag)
        for _ in range(10):
            assert served_by(service, other)
        service.start(tag)
        until(lambda tag=tag: served_by(service, tag), f"{tag} serving again")
    found = ended(load)
    assert found["wrong"] == []


def test_an_address_that_has_passed_to_another_service_is_never_mistaken(stage: Stage) -> None:
    one, two = stage.one, stage.two
    load = stage.load()
    one.servers["one-a"].end(signal.SIGKILL)
    stranger = two.start("two-stranger", port=one.ports["one-a"])
    # The front still believes that a server of the first one is there.
    for _ in range(20):
        assert served_by(one, "one-b")
    assert stranger.end()[0] == 0
    del two.servers["two-stranger"]
    one.start("one-a")
    until(lambda: served_by(one, "one-a"))
    assert ended(load)["wrong"] == []


def watched(stage: Stage, service: Service) -> tuple[http.client.HTTPSConnection, http.client.HTTPResponse, str]:
    """A watch through the front, behind its first event, and the tag of the server that sends it."""
    client = http.client.HTTPSConnection(
        "127.0.0.1", stage.front.port, context=stage.front.ssl_context(), timeout=PATIENCE
    )
    client.request("GET", f"/apis/{service.group}/v1/things?watch=1")
    answer = client.getresponse()
    event = json.loads(answer.readline())
    assert event["type"] == "ADDED"
    return client, answer, event["object"]["server"]


@pytest.mark.parametrize("name", ["one", "two"])
def test_a_stream_of_a_killed_server_ends(stage: Stage, name: str) -> None:
    service: Service = getattr(stage, name)
    client, answer, tag = watched(stage, service)
    service.servers[tag].end(signal.SIGKILL)
    start = time.monotonic()
    with pytest.raises(http.client.IncompleteRead) as caught:
        answer.read()
    # Nothing but what had come, and at once.
    assert (caught.value.partial, time.monotonic() - start < 5) == (b"", True)
    client.close()
    client, _, other = watched(stage, service)
    assert other != tag
    client.close()
    service.start(tag)
    until(lambda: served_by(service, tag), f"{tag} serving again")


def test_a_stream_of_a_server_that_stops_is_finished(stage: Stage) -> None:
    two = stage.two
    client, answer, tag = watched(stage, two)
    assert two.servers[tag].end()[0] == 0
    assert answer.read() == b""
    client.close()
    two.start(tag)
    until(lambda: served_by(two, tag), f"{tag} serving again")


def test_certificates_of_servers_are_renewed_under_load(stage: Stage) -> None:
    fresh = authority("serving-2")
    load = stage.load()
    for service in (stage.one, stage.two):
        old = service.bundle.read_bytes()
        replace(service.bundle, old + fresh.pem)
        assert "configured" in service.register("--timeout=0")
        service.mount(fresh)
        for server in service.servers.values():
            server.tell(signal.SIGHUP)
        replace(service.bundle, fresh.pem)
        for tag in service.servers:
            until(lambda service=service, tag=tag: trusted(service, tag), f"the new certificate of {tag}")
        assert "is available" in service.register()
    for tag in stage.one.servers:
        until(lambda tag=tag: served_by(stage.one, tag))
    stage.serving = fresh
    found = ended(load)
    assert found["wrong"] == []
    assert set(found["servers"]) == {"one-a", "one-b", "two-a", "two-b"}


def trusted(service: Service, tag: str) -> bool:
    import ssl

    try:
        return service.direct(tag, "/readyz")[0] == 200
    except ssl.SSLCertVerificationError:
        return False


def test_the_certificate_of_the_front_is_renewed_under_load(stage: Stage) -> None:
    old, fresh = stage.proxies, authority("proxies-2")
    load = stage.load()
    replace(stage.proxy_bundle, old.pem + fresh.pem)
    stage.front.process.send_signal(signal.SIGHUP)
    servers = [(service, tag) for service in (stage.one, stage.two) for tag in service.servers]
    for service, tag in servers:
        until(lambda s=service, t=tag: knows(s, t, fresh), f"{tag} knowing the new CA")
    peer = stage.show(fresh)
    for tag in stage.one.servers:
        until(lambda tag=tag: peers(stage.one).get(tag) == peer, f"the new certificate at {tag}")
    replace(stage.proxy_bundle, fresh.pem)
    stage.front.process.send_signal(signal.SIGHUP)
    for service, tag in servers:
        until(lambda s=service, t=tag: not knows(s, t, old), f"{tag} forgetting the old CA")
    stage.proxies = fresh
    found = ended(load)
    assert found["wrong"] == []
    # Both have been in use, as far as servers tell.
    assert {peer, ""} < set(found["peers"])
    assert len(found["peers"]) == 3


def knows(service: Service, tag: str, ca: Any) -> bool:
    """Whether a proxy of this CA is believed."""
    claimed = {"X-Remote-User": "root", "X-Remote-Group": MASTERS}
    try:
        return service.direct(tag, f"/apis/{service.group}/v1/things/x", claimed, ca.issue(PROXY))[0] == 200
    except OSError:
        return False


def peers(service: Service) -> dict[str, str]:
    """The certificate each server was shown last."""
    found = {}
    for _ in range(10):
        status, told = service.get()
        assert status == 200, told
        found[told["server"]] = told["peer"]
    return found


def test_unregistering_leaves_nothing(stage: Stage) -> None:
    before = stage.api("GET", "/api/v1/namespaces/default/services")[1]
    assert {item["metadata"]["name"] for item in before["items"]} == {"kubernetes", "one", "two"}
    said = stage.two.unregister()
    assert "apiservice.apiregistration.k8s.io/v1.two.example.test deleted" in said
    assert stage.two.get()[0] == 404
    assert stage.one.get()[0] == 200
    for path, name in (
        ("/api/v1/namespaces/default/services", "two"),
        ("/api/v1/namespaces/default/serviceaccounts", "two"),
        ("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "default:two:auth-delegator"),
        ("/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings", "default:two:auth-reader"),
        ("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", f"two-ipv4-{stage.two.ports['two-a']}"),
    ):
        assert stage.api("GET", f"{path}/{name}")[0] == 404
    assert stage.two.unregister() == "Nothing is registered as default/two\n"
