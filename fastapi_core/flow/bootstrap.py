"""Flow schemas and priority levels every server starts with.

Mandatory ones hold the system together and are put back whatever users do. Suggested ones are kept as given here
until a user takes them over with the annotation `apf.kubernetes.io/autoupdate-spec: "false"`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Tree = dict[str, Any]

AUTO_UPDATE = "apf.kubernetes.io/autoupdate-spec"


class Bootstrap(NamedTuple):
    mandatory: bool
    tree: Tree


def _object(kind: str, name: str, spec: Tree) -> Tree:
    return {
        "kind": kind,
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "metadata": {"name": name, "annotations": {AUTO_UPDATE: "true"}},
        "spec": spec,
    }


def _limited(name: str, shares: int, lendable: int, queuing: tuple[int, int] | None) -> Tree:
    """`queuing` is (queues, hand size); without it requests are rejected."""
    response: Tree = {"type": "Reject"}
    if queuing is not None:
        queues, hand = queuing
        response = {"type": "Queue", "queuing": {"queues": queues, "handSize": hand, "queueLengthLimit": 50}}
    limited = {"nominalConcurrencyShares": shares, "limitResponse": response, "lendablePercent": lendable}
    return _object("PriorityLevelConfiguration", name, {"type": "Limited", "limited": limited})


def _schema(name: str, level: str, precedence: int, method: str, subjects: list[Tree], **rules: list[Tree]) -> Tree:
    spec: Tree = {"priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence}
    if method:
        spec["distinguisherMethod"] = {"type": method}
    return _object("FlowSchema", name, {**spec, "rules": [{"subjects": subjects, **rules}]})


def _group(name: str) -> Tree:
    return {"kind": "Group", "group": {"name": name}}


def _user(name: str) -> Tree:
    return {"kind": "User", "user": {"name": name}}


def _resources(groups: str, resources: list[str], verbs: list[str], cluster: bool) -> Tree:
    scope = {"clusterScope": True} if cluster else {}
    return {"verbs": verbs, "apiGroups": [groups], "resources": resources, **scope, "namespaces": ["*"]}


_ANYTHING: dict[str, list[Tree]] = {
    "resourceRules": [_resources("*", ["*"], ["*"], True)],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
}
_EVERYBODY = [_group("system:unauthenticated"), _group("system:authenticated")]
_SYSTEM_ACCOUNTS = {"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": "*"}}
_MANAGER, _SCHEDULER = _user("system:kube-controller-manager"), _user("system:kube-scheduler")
_LEASES = "coordination.k8s.io"

LEVELS: tuple[Bootstrap, ...] = (
    Bootstrap(
        True,
        _object(
            "PriorityLevelConfiguration",
            "exempt",
            {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}},
        ),
    ),
    Bootstrap(True, _limited("catch-all", 5, 0, None)),
    Bootstrap(False, _limited("system", 30, 33, (64, 6))),
    Bootstrap(False, _limited("node-high", 40, 25, (64, 6))),
    Bootstrap(False, _limited("leader-election", 10, 0, (16, 4))),
    Bootstrap(False, _limited("workload-high", 40, 50, (128, 6))),
    Bootstrap(False, _limited("workload-low", 100, 90, (128, 6))),
    Bootstrap(False, _limited("global-default", 20, 50, (128, 6))),
)

SCHEMAS: tuple[Bootstrap, ...] = (
    Bootstrap(True, _schema("exempt", "exempt", 1, "", [_group("system:masters")], **_ANYTHING)),
    Bootstrap(True, _schema("catch-all", "catch-all", 10000, "ByUser", _EVERYBODY, **_ANYTHING)),
    Bootstrap(
        False,
        _schema(
            "probes",
            "exempt",
            2,
            "",
            _EVERYBODY,
            nonResourceRules=[{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}],
        ),
    ),
    Bootstrap(
        False,
        _schema(
            "system-leader-election",
            "leader-election",
            100,
            "ByUser",
            [_MANAGER, _SCHEDULER, _SYSTEM_ACCOUNTS],
            resourceRules=[_resources(_LEASES, ["leases"], ["get", "create", "update"], False)],
        ),
    ),
    Bootstrap(
        False,
        _schema(
            "system-node-high",
            "node-high",
            400,
            "ByUser",
            [_group("system:nodes")],
            resourceRules=[
                _resources("", ["nodes", "nodes/status"], ["*"], True),
                _resources(_LEASES, ["leases"], ["*"], False),
            ],
        ),
    ),
    Bootstrap(False, _schema("system-nodes", "system", 500, "ByUser", [_group("system:nodes")], **_ANYTHING)),
    Bootstrap(False, _schema("kube-controller-manager", "workload-high", 800, "ByNamespace", [_MANAGER], **_ANYTHING)),
    Bootstrap(False, _schema("kube-scheduler", "workload-high", 800, "ByNamespace", [_SCHEDULER], **_ANYTHING)),
    Bootstrap(
        False,
        _schema("kube-system-service-accounts", "workload-high", 900, "ByNamespace", [_SYSTEM_ACCOUNTS], **_ANYTHING),
    ),
    Bootstrap(
        False,
        _schema("service-accounts", "workload-low", 9000, "ByUser", [_group("system:serviceaccounts")], **_ANYTHING),
    ),
    Bootstrap(False, _schema("global-default", "global-default", 9900, "ByUser", _EVERYBODY, **_ANYTHING)),
)


def fixed(objects: tuple[Bootstrap, ...]) -> dict[str, Tree]:
    """Name -> spec of those nobody may change."""
    return {one.tree["metadata"]["name"]: one.tree["spec"] for one in objects if one.mandatory}


def revised(current: Tree, wanted: Bootstrap) -> Tree | None:
    """What an existing object has to become; None when it may stay as it is.

    A mandatory object follows always, except that users may set the numbers of the exempt level; a suggested one
    when its annotation says so, or says nothing and nobody has changed its spec.
    """
    annotations = current["metadata"].get("annotations") or {}
    told = parse_bool(annotations.get(AUTO_UPDATE, ""))
    follows = told if told is not None else current["metadata"].get("generation") == 1
    spec = wanted.tree["spec"]
    if wanted.mandatory:
        if spec.get("type") == "Exempt":
            follows = told is not False
            if not follows:
                spec = {**spec, "exempt": (current.get("spec") or {}).get("exempt") or spec["exempt"]}
        else:
            follows = True
    else:
        spec = spec if follows else current.get("spec")
    if told is follows and current.get("spec") == spec:
        return None
    if told is not follows:
        annotations = {**annotations, AUTO_UPDATE: "true" if follows else "false"}
    return {**current, "metadata": {**current["metadata"], "annotations": annotations}, "spec": spec}


def is_left_over(current: Tree, names: frozenset[str]) -> bool:
    """Whether an object was a server's own (of another version) and is none of its `names` any more."""
    metadata = current["metadata"]
    if metadata["name"] in names:
        return False
    return parse_bool((metadata.get("annotations") or {}).get(AUTO_UPDATE, "")) is True


def parse_bool(text: str) -> bool | None:
    """A boolean as Go reads it; None for anything else."""
    if text in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    return False if text in ("0", "f", "F", "FALSE", "false", "False") else None
