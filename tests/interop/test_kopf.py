"""Operators written with kopf, each a process of its own, against a running server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fastapi_core.testing.server import RunningServer
from tests.fixtures.server import Api
from tests.interop.test_kubectl import Kubectl

pytest.importorskip("kopf")
pytest.importorskip("kubernetes")
pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

OPERATORS = Path(__file__).resolve().parents[1] / "fixtures" / "operators"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "shop.example.test"
FINALIZER = "kopf.zalando.org/KopfFinalizerMarker"
MERGE = {"Content-Type": "application/merge-patch+json"}
Tree = dict[str, Any]
PATIENCE = 30.0


class Operator:
    """`kopf run` with the server's admin credentials; `said` is everything it has logged."""

    def __init__(self, server: RunningServer, folder: Path, module: str, name: str, *flags: str) -> None:
        self._path = folder / f"{name}.log"
        environment = {**os.environ, "KUBECONFIG": str(server.kubeconfig), "POD_ID": name}
        command = [sys.executable, "-m", "kopf", "run", str(OPERATORS / f"{module}.py"), "--verbose", *flags]
        with self._path.open("wb") as log:
            self._process = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)

    @property
    def said(self) -> str:
        return self._path.read_text()

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            assert self._process.wait(PATIENCE) in (0, -signal.SIGTERM)
        finally:
            self._process.kill()


Run = Callable[..., Operator]


@pytest.fixture
def run(server: RunningServer, tmp_path: Path) -> Iterator[Run]:
    """Starts operators, which end with the test."""
    started: list[Operator] = []

    def start(module: str, name: str, *flags: str) -> Operator:
        started.append(Operator(server, tmp_path, module, name, *flags))
        return started[-1]

    yield start
    for operator in started:
        if operator._process.poll() is None:
            operator.stop()


def eventually(what: Callable[[], Any], *operators: Operator) -> Any:
    """The first true answer; what the operators have said where none comes."""
    end = time.monotonic() + PATIENCE
    while True:
        found = what()
        if found:
            return found
        if time.monotonic() > end:
            pytest.fail("\n".join(operator.said[-6000:] for operator in operators))
        time.sleep(0.02)


@pytest.fixture
def define(api: Api) -> Iterator[Callable[[], None]]:
    """Creates the definitions; they go with the test."""
    trees = list(yaml.safe_load_all((OPERATORS / "definitions.yaml").read_text()))

    def create() -> None:
        for tree in trees:
            assert api("POST", DEFINITIONS, tree)[0] == 201

    yield create
    for tree in trees:
        api("DELETE", f"{DEFINITIONS}/{tree['metadata']['name']}")
        eventually(lambda name=tree["metadata"]["name"]: api("GET", f"{DEFINITIONS}/{name}")[0] == 404)


class Widgets:
    """Widgets of one namespace."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api = api
        self.path = f"/apis/{GROUP}/v1/namespaces/{namespace}/widgets"

    def create(self, name: str, **spec: Any) -> tuple[int, Tree]:
        tree = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}
        return self.api("POST", self.path, tree)

    def get(self, name: str) -> Tree:
        return self.api("GET", f"{self.path}/{name}")[1]

    def patch(self, name: str, spec: Tree) -> tuple[int, Tree]:
        return self.api("PATCH", f"{self.path}/{name}", {"spec": spec}, MERGE)

    def status(self, name: str) -> Tree:
        return self.get(name).get("status") or {}


@pytest.fixture
def widgets(api: Api, namespace: str) -> Widgets:
    return Widgets(api, namespace)


def hooks(api: Api) -> list[Tree]:
    """What kopf has asked to be called for."""
    base = "/apis/admissionregistration.k8s.io/v1"
    kinds = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    answers = [api("GET", f"{base}/{kind}/auto.{GROUP}") for kind in kinds]
    return [hook for code, tree in answers if code == 200 for hook in tree.get("webhooks") or () if hook.get("rules")]


def watches_of_definitions(api: Api) -> float:
    """How many watches of definitions are open."""
    lines = api("GET", "/metrics")[1].splitlines()
    start = "apiserver_longrunning_requests{"
    found = (line for line in lines if line.startswith(start) and 'resource="customresourcedefinitions"' in line)
    return sum(float(line.rpartition(" ")[2]) for line in found)


def test_an_operator_works(
    run: Run,
    define: Callable[[], None],
    widgets: Widgets,
    api: Api,
    namespace: str,
    server: RunningServer,
    tmp_path: Path,
) -> None:
    before = watches_of_definitions(api)
    operator = run("widgets", "builder", "--standalone", "-n", namespace)
    # It starts without the definition, and finds it when it comes, once it watches for any.
    eventually(lambda: watches_of_definitions(api) > before, operator)
    assert "Unresolved resources" in operator.said
    define()
    eventually(lambda: len(hooks(api)) == 2, operator)
    admission(widgets, Kubectl(server, namespace, tmp_path))

    core = f"/api/v1/namespaces/{namespace}"
    assert widgets.create("one", size=3)[0] == 201
    eventually(lambda: widgets.status("one").get("ticks") == 3, operator)
    one = eventually(lambda: "created" in widgets.status("one") and widgets.get("one"), operator)
    assert one["spec"] == {"asks": False, "color": "grey", "size": 3}
    assert one["status"]["created"] == {"settings": "one"}
    assert one["status"]["phase"] == "Built"
    assert FINALIZER in one["metadata"]["finalizers"]
    # Only what is not status counts as a generation: nothing so far.
    assert one["metadata"]["generation"] == 1
    settings = api("GET", f"{core}/configmaps/one")[1]
    assert settings["data"] == {"size": "3"}
    assert [owner["uid"] for owner in settings["metadata"]["ownerReferences"]] == [one["metadata"]["uid"]]
    eventually(lambda: api("GET", f"{core}/configmaps/one-companion")[0] == 200, operator)

    assert widgets.patch("one", {"size": 5})[0] == 200
    eventually(lambda: widgets.status("one").get("resizes") == [{"from": 3, "to": 5}], operator)
    assert widgets.patch("one", {"size": 7})[0] == 200
    eventually(lambda: widgets.status("one").get("resizes", [None])[-1] == {"from": 5, "to": 7}, operator)
    assert api("GET", f"{core}/configmaps/one")[1]["data"] == {"size": "7"}

    assert widgets.create("two", size=1, color="red")[0] == 201
    assert widgets.create("three", size=1, color="grey")[0] == 201
    eventually(lambda: all(widgets.status(name).get("phase") for name in ("two", "three")), operator)
    assert widgets.patch("three", {"asks": True})[0] == 200
    eventually(lambda: widgets.status("three").get("alike") == ["one", "three"], operator)

    def events() -> set[tuple[str, str, str]]:
        found = api("GET", f"{core}/events")[1]["items"]
        return {(event["involvedObject"]["kind"], event["reason"], event["message"]) for event in found}

    eventually(lambda: {("Widget", "Built", "of size 3"), ("ConfigMap", "Seen", "7")} <= events(), operator)

    assert api("DELETE", f"{widgets.path}/one")[0] == 200
    eventually(lambda: widgets.get("one").get("code") == 404, operator)
    for name in ("one", "one-companion"):
        eventually(lambda name=name: api("GET", f"{core}/configmaps/{name}")[0] == 404, operator)
    for name in ("two", "three"):
        assert api("DELETE", f"{widgets.path}/{name}")[0] == 200
        eventually(lambda name=name: widgets.get(name).get("code") == 404, operator)
    operator.stop()
    # Managed configurations are emptied by an operator that ends.
    assert hooks(api) == []
    assert "Traceback" not in operator.said
    assert widgets.create("unwatched", size=1000)[0] == 201


def admission(widgets: Widgets, kubectl: Kubectl) -> None:
    """What the operator's webhooks do to requests."""
    code, refused = widgets.create("huge", size=1000)
    assert (code, "no widget of size 1000 has ever been built" in refused["message"]) == (451, True)
    code, refused = widgets.create("none", size=0)
    assert (code, refused["reason"]) == (422, "Invalid")
    told = kubectl(
        "create", "--dry-run=server", "-o", "jsonpath={.spec.color}", "-f", "-",
        stdin=f"{{apiVersion: {GROUP}/v1, kind: Widget, metadata: {{name: large}}, spec: {{size: 60}}}}",
    )  # fmt: skip
    assert told == "greyWarning: size 60 is a lot (dry run)\n"


@pytest.mark.parametrize("clusterwide", [True, False])
def test_an_operator_pauses_for_a_more_important_one(
    run: Run, define: Callable[[], None], widgets: Widgets, api: Api, namespace: str, clusterwide: bool
) -> None:
    define()
    place = "" if clusterwide else f"namespaces/{namespace}/"
    kind = "ClusterKopfPeering" if clusterwide else "KopfPeering"
    peerings = f"/apis/kopf.dev/v1/{place}{kind.lower()}s"
    tree = {"apiVersion": "kopf.dev/v1", "kind": kind, "metadata": {"name": "shop"}}
    eventually(lambda: api("POST", peerings, tree)[0] in (201, 409))
    flags = ("--peering=shop", *(("-A",) if clusterwide else ("-n", namespace)))

    def peers() -> Tree:
        return {
            name: peer["priority"] for name, peer in (api("GET", f"{peerings}/shop")[1].get("status") or {}).items()
        }

    def claimed_by(name: str, operator: Operator) -> None:
        assert widgets.create(name, size=1)[0] == 201
        assert eventually(lambda: widgets.status(name).get("phase"), *running) == operator

    low = run("claims", "low", "--priority=1", *flags)
    running = [low]
    eventually(lambda: peers() == {"low": 1}, *running)
    claimed_by("first", "low")
    high = run("claims", "high", "--priority=10", *flags)
    running.append(high)
    eventually(lambda: peers() == {"low": 1, "high": 10}, *running)
    eventually(lambda: "Pausing operations in favour of" in low.said, *running)
    claimed_by("second", "high")
    high.stop()
    eventually(lambda: peers() == {"low": 1}, *running)
    eventually(lambda: "Resuming operations after the pause" in low.said, *running)
    claimed_by("third", "low")
    low.stop()
    assert peers() == {}
    for name in ("first", "second", "third"):
        assert FINALIZER not in widgets.get(name)["metadata"].get("finalizers", ())
