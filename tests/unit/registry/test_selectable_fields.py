"""Selectable fields: accepted names and the text of their values."""

from typing import Any

import pytest

from fastapi_core._ext.objects import CachedObject
from fastapi_core.apis.resources import builtin
from fastapi_core.codec.json import encode
from fastapi_core.registry.selectable import accepts, extractor, values

BUILTIN = {(d.group, d.kind): d for d in builtin()}


@pytest.mark.parametrize(
    ("key", "field", "accepted"),
    [
        (("", "ConfigMap"), "metadata.namespace", True),
        (("", "Node"), "metadata.namespace", False),
        (("", "PersistentVolume"), "metadata.namespace", True),
        (("", "Pod"), "spec.nodeName", True),
        (("apps", "ReplicaSet"), "status.replicas", False),
        (("events.k8s.io", "Event"), "involvedObject.name", False),
    ],
)
def test_accepted_names(key: tuple[str, str], field: str, accepted: bool) -> None:
    assert accepts(BUILTIN[key], field) is accepted
    assert accepts(BUILTIN[key], "metadata.name")


def read(group: str, kind: str, **tree: Any) -> dict[str, str]:
    return values(BUILTIN[group, kind], tree)


def test_pods() -> None:
    found = read("", "Pod", spec={"nodeName": "n", "hostNetwork": True}, status={"podIPs": [{"ip": "1.1.1.1"}]})
    assert (found["spec.nodeName"], found["spec.host"], found["spec.hostNetwork"]) == ("n", "n", "true")
    assert (found["status.podIP"], found["status.podIPs"]) == ("1.1.1.1", "")
    assert read("", "Pod")["spec.hostNetwork"] == "false"


def test_absent_numbers_are_zero() -> None:
    assert read("", "ReplicationController", status={})["status.replicas"] == "0"
    assert read("batch", "Job", status={"succeeded": 2})["status.successful"] == "2"
    assert read("", "Node")["spec.unschedulable"] == "false"


def test_both_event_resources_read_the_stored_event() -> None:
    event = {"involvedObject": {"name": "p"}, "reportingComponent": "c", "source": {}, "type": "Normal"}
    found = read("", "Event", **event)
    assert (found["involvedObject.name"], found["source"], found["reportingComponent"]) == ("p", "c", "c")
    found = read("events.k8s.io", "Event", **event)
    assert (found["regarding.name"], found["reportingController"]) == ("p", "c")


def test_one_extractor_serves_all_versions() -> None:
    tree = {"kind": "Event", "apiVersion": "v1", "metadata": {"name": "e", "namespace": "n", "uid": "u"}, "reason": "R"}
    obj = CachedObject("/registry/events/n/e", "n", "e", encode(tree), 1, 1)
    found = extractor(BUILTIN["", "Event"], BUILTIN["events.k8s.io", "Event"])(obj)
    assert found["metadata.name"] == "e"
    assert found["reason"] == "R"
    assert {"involvedObject.name", "regarding.name"} <= set(found)
