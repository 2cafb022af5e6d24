"""Two servers on one etcd: what is written through one is there through the other, and nothing is given away twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fastapi_core.testing.server import RunningServer
from tests.fixtures.etcd import Etcd
from tests.fixtures.server import TOKENS, Api

FLAGS = ["--service-cluster-ip-range=10.0.0.0/26", "--service-node-port-range=30000-30039"]
MAPS = "/api/v1/namespaces/default/configmaps"
SERVICES = "/api/v1/namespaces/default/services"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RunningServer]]:
    """Started together, so that both want to make the same objects first."""
    root = tmp_path_factory.mktemp("replicas")
    etcd = Etcd(root / "etcd")
    etcd.start()

    def start(number: int) -> RunningServer:
        flags = [*FLAGS, f"--etcd-servers={etcd.url}", f"--advertise-address=10.9.0.{number}"]
        return RunningServer(root / f"server-{number}", tokens=TOKENS, flags=flags)

    with ThreadPoolExecutor() as pool:
        running = list(pool.map(start, (1, 2)))
    yield running
    codes = [server.stop() for server in running]
    etcd.kill()
    assert codes == [0, 0]


@pytest.fixture
def apis(servers: list[RunningServer]) -> Iterator[list[Api]]:
    clients = [Api(server) for server in servers]
    yield clients
    for client in clients:
        client.connection.close()


def version(obj: Any) -> int:
    return int(obj["metadata"]["resourceVersion"])


def configmap(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


def test_a_write_is_there_at_once_everywhere(apis: list[Api]) -> None:
    for number in range(20):
        one, other = apis[number % 2], apis[1 - number % 2]
        status, made = one("POST", MAPS, configmap(f"m{number}"))
        assert status == 201
        assert other("GET", f"{MAPS}/m{number}") == (200, made)
        status, listing = other("GET", MAPS)
        assert version(listing) >= version(made)
        assert f"m{number}" in [item["metadata"]["name"] for item in listing["items"]]
        assert other("DELETE", f"{MAPS}/m{number}")[0] == 200
        assert one("GET", f"{MAPS}/m{number}")[0] == 404


def test_writes_in_turns_are_never_refused_for_what_one_has_not_seen_yet(apis: list[Api]) -> None:
    status, obj = apis[0]("POST", MAPS, configmap("turns"))
    assert status == 201
    last = version(obj)
    for number in range(30):
        obj["data"] = {"n": str(number)}
        status, obj = apis[number % 2]("PUT", f"{MAPS}/turns", obj)
        assert status == 200, obj
        assert version(obj) > last, "the revision went back"
        last = version(obj)
        patch = {"Content-Type": "application/merge-patch+json"}
        status, obj = apis[1 - number % 2]("PATCH", f"{MAPS}/turns", {"data": {"p": str(number)}}, patch)
        assert (status, obj["data"]) == (200, {"n": str(number), "p": str(number)})
        last = version(obj)
    stale = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(last - 1)}}
    assert apis[1]("PUT", f"{MAPS}/turns", stale)[0] == 409
    assert apis[0]("POST", MAPS, configmap("turns"))[0] == 409
    assert apis[1]("DELETE", f"{MAPS}/turns")[0] == 200
    assert apis[0]("PUT", f"{MAPS}/turns", obj)[0] in (404, 409)


def test_a_watch_on_one_sees_the_writes_of_both(servers: list[RunningServer], apis: list[Api]) -> None:
    since = version(apis[0]("GET", MAPS)[1])
    seen: list[tuple[str, str, int]] = []

    def follow() -> None:
        import json

        client = Api(servers[1])
        client.connection.request(
            "GET",
            f"{MAPS}?watch=1&resourceVersion={since}&timeoutSeconds=60",
            headers={"Authorization": "Bearer admintoken"},
        )
        answer = client.connection.getresponse()
        while len(seen) < 41:
            event = json.loads(answer.readline())
            seen.append((event["type"], event["object"]["metadata"]["name"], version(event["object"])))
        client.connection.close()

    thread = threading.Thread(target=follow)
    thread.start()
    written = []
    for number in range(40):
        written.append(("ADDED", f"w{number}", version(apis[number % 2]("POST", MAPS, configmap(f"w{number}"))[1])))
    status, collection = apis[0]("DELETE", f"{MAPS}/w0")
    assert status == 200, collection
    thread.join(30)
    assert not thread.is_alive()
    assert seen[:40] == written
    assert seen[40][:2] == ("DELETED", "w0")


def test_addresses_and_ports_are_given_once(servers: list[RunningServer], apis: list[Api]) -> None:
    """Both servers give out of ranges that just suffice, at the same time."""

    def create(number: int) -> tuple[int, Any]:
        client = Api(servers[number % 2])
        spec = {"type": "NodePort", "ports": [{"port": 80}]}
        answer = client("POST", SERVICES, {"metadata": {"name": f"s{number}"}, "spec": spec})
        client.connection.close()
        return answer

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(create, range(36)))
    assert [status for status, _ in answers] == [201] * 36, [body for status, body in answers if status != 201]
    services = [body["spec"] for _, body in answers]
    assert len({spec["clusterIP"] for spec in services}) == 36
    assert len({spec["ports"][0]["nodePort"] for spec in services}) == 36
    taken = services[0]
    for wanted in ({"clusterIP": taken["clusterIP"]}, {"type": "NodePort", "ports": taken["ports"]}):
        spec = {"ports": [{"port": 80}], **wanted}
        for api in apis:
            status, body = api("POST", SERVICES, {"metadata": {"name": "late"}, "spec": spec})
            assert (status, "already allocated" in body["message"]) == (422, True), body
    addresses = {
        item["metadata"]["name"] for item in apis[1]("GET", "/apis/networking.k8s.io/v1/ipaddresses")[1]["items"]
    }
    assert addresses == {spec["clusterIP"] for spec in services} | {"10.0.0.1"}
    for number in range(36):
        assert apis[number % 2]("DELETE", f"{SERVICES}/s{number}")[0] == 200
    left = apis[0]("GET", "/apis/networking.k8s.io/v1/ipaddresses")[1]["items"]
    assert [item["metadata"]["name"] for item in left] == ["10.0.0.1"]
    with ThreadPoolExecutor(12) as pool:
        assert [status for status, _ in pool.map(create, range(36))] == [201] * 36


def test_a_definition_made_through_one_is_served_by_the_other(apis: list[Api]) -> None:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition = {
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    assert apis[0]("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)[0] == 201
    path, thing = "/apis/example.com/v1/things", {"apiVersion": "example.com/v1", "kind": "Thing"}
    for number, api in enumerate(apis):
        _until(lambda api=api: api("GET", path)[0] == 200)  # type: ignore[misc]
        assert api("POST", path, {**thing, "metadata": {"name": f"t{number}"}})[0] == 201
    for api in apis:
        assert [item["metadata"]["name"] for item in api("GET", path)[1]["items"]] == ["t0", "t1"]


def test_the_kubernetes_service_leads_to_both(apis: list[Api]) -> None:
    def known(api: Api) -> list[str]:
        subsets = api("GET", "/api/v1/namespaces/default/endpoints/kubernetes")[1].get("subsets") or []
        return [address["ip"] for subset in subsets for address in subset["addresses"]]

    for api in apis:
        _until(lambda api=api: known(api) == ["10.9.0.1", "10.9.0.2"])  # type: ignore[misc]


def _until(condition: Any, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
