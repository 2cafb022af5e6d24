"""Defaults that the tables state."""

import copy
from typing import Any

import pytest

from fastapi_core.schema import defaults, tables


@pytest.mark.parametrize(
    ("ref", "tree", "expected"),
    [
        (
            "core/v1.Pod",
            {"spec": {"containers": [{"name": "a", "ports": [{"name": "x", "containerPort": 1}]}]}},
            {"spec": {"containers": [{"name": "a", "ports": [{"name": "x", "containerPort": 1, "protocol": "TCP"}]}]}},
        ),
        (
            "core/v1.Service",
            {"spec": {"ports": [{"name": "x", "protocol": "", "port": 1}, {"protocol": "UDP", "port": 1}]}},
            {"spec": {"ports": [{"name": "x", "protocol": "TCP", "port": 1}, {"protocol": "UDP", "port": 1}]}},
        ),
        ("core/v1.ReplicationController", {"spec": {}}, {"spec": {"replicas": 1}}),
        ("core/v1.ReplicationController", {"spec": {"replicas": 0}}, {"spec": {"replicas": 0}}),
        (
            "core/v1.PersistentVolume",
            {"spec": {"rbd": {"monitors": [], "image": "i"}}},
            {
                "spec": {
                    "rbd": {
                        "monitors": [],
                        "image": "i",
                        "pool": "rbd",
                        "user": "admin",
                        "keyring": "/etc/ceph/keyring",
                    }
                }
            },
        ),
        ("core/v1.ConfigMap", {"data": {}}, {"data": {}}),
        ("core/v1.Pod", {}, {}),
        ("core/v1.Pod", {"spec": None}, {"spec": None}),
    ],
)
def test_defaults(ref: str, tree: dict[str, Any], expected: dict[str, Any]) -> None:
    tree = copy.deepcopy(tree)
    defaults.apply(tables.type_of(ref), tree)
    assert tree == expected
