"""A patch shares with the old object what it leaves alone: preparing the new one must not reach into the old."""

from __future__ import annotations

import copy
from typing import Any

from fastapi_core.apis.strategies import kinds, services

Tree = dict[str, Any]


def test_ports_of_a_service_that_gets_others() -> None:
    old: Tree = {"spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30000}], "clusterIP": "10.0.0.1"}}
    kept = copy.deepcopy(old)
    new: Tree = {**old, "spec": {**old["spec"], "type": "ClusterIP"}}
    services.prepare(new, old)
    assert old == kept
    assert new["spec"]["ports"] == [{"port": 80}]


def test_annotations_of_a_daemon_set() -> None:
    annotations = {"deprecated.daemonset.template.generation": "1"}
    old: Tree = {"metadata": {"annotations": annotations}, "spec": {"template": {"a": 1}}}
    kept = copy.deepcopy(old)
    new: Tree = {"metadata": dict(old["metadata"]), "spec": {"template": {"a": 2}}}
    kinds.prepare_daemon_set(new, old)
    assert old == kept
    assert new["metadata"]["annotations"]["deprecated.daemonset.template.generation"] == "2"
