"""What objects use of a quota: evaluators by resource.

Every resource is counted as `count/PLURAL[.GROUP]`; pods, services, claims and device claims use more than that.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import time
from typing import Final

from fastapi_core.admission.amounts import Amounts, amounts, parse, pod_amounts
from fastapi_core.admission.chain import CREATE, UPDATE, Attributes
from fastapi_core.admission.plugins.storage import class_of
from fastapi_core.admission.quota import scopes
from fastapi_core.errors import qualified
from fastapi_core.meta.quantity import DECIMAL_SI, NANO, Quantity
from fastapi_core.meta.time import to_timestamp
from fastapi_core.registry.definition import Tree

ONE: Final = parse("1")
#: Resources of the core group that may be counted by their bare name.
ALIASES: Final = frozenset({"configmaps", "resourcequotas", "replicationcontrollers", "secrets"})
#: Never counted: reviews and bindings are not stored, events come and go.
IGNORED: Final = frozenset(
    {
        ("", "bindings"),
        ("", "events"),
        ("events.k8s.io", "events"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "localsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
    }
)
#: The most devices a request for all of them can get.
MOST_DEVICES: Final = 32


class Evaluator:
    """Counts objects of a resource."""

    names: frozenset[str]
    updates = False
    """Whether an update may use more than before."""

    def __init__(self, group: str, plural: str) -> None:
        count = "count/" + qualified(plural, group)
        self.names = frozenset({count, plural} if not group and plural in ALIASES else {count})

    def handles(self, attributes: Attributes) -> bool:
        return attributes.operation == CREATE and not attributes.subresource

    def covers(self, name: str) -> bool:
        """Whether the use of this resource counts for a hard limit of that name."""
        return name in self.names

    def usage(self, tree: Tree) -> Amounts:
        return dict.fromkeys(self.names, ONE)

    def in_scope(self, selector: Tree, tree: Tree) -> bool:
        """Whether an object is in a scope of a quota."""
        return False

    def lacking(self, required: Iterable[str], tree: Tree) -> str:
        """What the object must say to be counted, as a text; empty when it does."""
        return ""


_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
#: Where a quota limits these, pods must state them.
_STATED: Final = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})


class Pods(Evaluator):
    def __init__(self) -> None:
        forms = [form + name for name in _COMPUTE for form in ("", "requests.", "limits.")]
        self.names = frozenset({"count/pods", "pods", *forms})

    def handles(self, attributes: Attributes) -> bool:
        return (attributes.operation, attributes.subresource) in ((CREATE, ""), (UPDATE, "resize"))

    def covers(self, name: str) -> bool:
        if name in self.names or name.startswith(("hugepages-", "requests.hugepages-")):
            return True
        return name.startswith("requests.") and "/" in name and "kubernetes.io/" not in name

    def usage(self, tree: Tree) -> Amounts:
        used: Amounts = {"count/pods": ONE}
        if counts(tree):
            spec = tree.get("spec") or {}
            requests = pod_amounts(spec, "requests", overhead=True)
            used.update(computed(requests, pod_amounts(spec, "limits", overhead=True)))
        return used

    def in_scope(self, selector: Tree, tree: Tree) -> bool:
        return scopes.pod_in_scope(selector, tree)

    def lacking(self, required: Iterable[str], tree: Tree) -> str:
        spec = tree.get("spec") or {}
        whole = spec.get("resources") or {}
        wanted = _STATED.intersection(required)
        wanted -= computed(amounts(whole.get("requests")), amounts(whole.get("limits"))).keys()
        missing: dict[str, set[str]] = {}
        for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
            resources = container.get("resources") or {}
            stated = computed(amounts(resources.get("requests")), amounts(resources.get("limits")))
            for name in wanted - stated.keys():
                missing.setdefault(name, set()).add(container["name"])
        texts = [f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing)]
        return f"must specify {'; '.join(texts)}" if texts else ""


def computed(requests: Amounts, limits: Amounts) -> Amounts:
    """Requests and limits under the names quotas have for them."""
    used: Amounts = {"pods": ONE}
    for name, amount in requests.items():
        if name in _COMPUTE or name.startswith("hugepages-"):
            used[name] = used[f"requests.{name}"] = amount
        elif "/" in name and "kubernetes.io/" not in name:
            used[f"requests.{name}"] = amount
    for name in _COMPUTE:
        if name in limits:
            used[f"limits.{name}"] = limits[name]
    return used


def counts(pod: Tree) -> bool:
    """A pod uses computing resources until it has ended, or should have been gone by now."""
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return False
    metadata = pod["metadata"]
    deleted, grace = metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")
    if not deleted or grace is None:
        return True
    return bool(time() <= to_timestamp(deleted) + grace)


class Services(Evaluator):
    updates = True

    def __init__(self) -> None:
        self.names = frozenset({"count/services", "services", "services.nodeports", "services.loadbalancers"})

    def handles(self, attributes: Attributes) -> bool:
        return attributes.operation in (CREATE, UPDATE) and not attributes.subresource

    def usage(self, tree: Tree) -> Amounts:
        spec = tree.get("spec") or {}
        ports = spec.get("ports") or ()
        nodes = balancers = 0
        if spec.get("type") == "NodePort":
            nodes = len(ports)
        elif spec.get("type") == "LoadBalancer":
            balancers = 1
            given = spec.get("allocateLoadBalancerNodePorts") is False
            nodes = sum(1 for port in ports if port.get("nodePort")) if given else len(ports)
        return {
            "count/services": ONE,
            "services": ONE,
            "services.nodeports": Quantity(nodes * NANO),
            "services.loadbalancers": Quantity(balancers * NANO),
        }


_BY_CLASS: Final = ".storageclass.storage.k8s.io/"
_CLAIMS: Final = ("persistentvolumeclaims", "requests.storage")


class Claims(Evaluator):
    updates = True

    def __init__(self) -> None:
        self.names = frozenset({"count/persistentvolumeclaims", *_CLAIMS})

    def handles(self, attributes: Attributes) -> bool:
        if not attributes.subresource:
            return attributes.operation in (CREATE, UPDATE)
        if attributes.subresource != "status" or attributes.object is None or attributes.old is None:
            return False
        new, old = attributes.object, attributes.old
        states = [(tree.get("status") or {}).get("allocatedResources") for tree in (new, old)]
        return states[0] != states[1] or scopes.attribute_classes(new) != scopes.attribute_classes(old)

    def covers(self, name: str) -> bool:
        return name in self.names or name.endswith(tuple(_BY_CLASS + claim for claim in _CLAIMS))

    def usage(self, tree: Tree) -> Amounts:
        used: Amounts = {"count/persistentvolumeclaims": ONE, "persistentvolumeclaims": ONE}
        storage_class = class_of(tree)
        if storage_class:
            used[f"{storage_class}{_BY_CLASS}persistentvolumeclaims"] = ONE
        storage = _storage(tree)
        if storage is not None:
            used["requests.storage"] = storage
            if storage_class:
                used[f"{storage_class}{_BY_CLASS}requests.storage"] = storage
        return used

    def in_scope(self, selector: Tree, tree: Tree) -> bool:
        return scopes.claim_in_scope(selector, tree)


def _storage(claim: Tree) -> Quantity | None:
    """Whole bytes of what is asked for, or of what is allocated where that is more."""
    asked = amounts(((claim.get("spec") or {}).get("resources") or {}).get("requests")).get("storage")
    if asked is None:
        return None
    given = amounts((claim.get("status") or {}).get("allocatedResources")).get("storage")
    more = asked if given is None or given <= asked else given
    return more.round_up(0)


class DeviceClaims(Evaluator):
    """Claims for devices are counted by class, as many as they could get."""

    updates = True

    def __init__(self) -> None:
        super().__init__("resource.k8s.io", "resourceclaims")

    def handles(self, attributes: Attributes) -> bool:
        return attributes.operation in (CREATE, UPDATE) and not attributes.subresource

    def covers(self, name: str) -> bool:
        return name in self.names or name.endswith(_DEVICES)

    def usage(self, tree: Tree) -> Amounts:
        totals: dict[str, int] = {}
        for request in (((tree.get("spec") or {}).get("devices")) or {}).get("requests") or ():
            for name, number in _devices(request).items():
                totals[name] = totals.get(name, 0) + number
        used = super().usage(tree)
        used.update({name + _DEVICES: Quantity(number * NANO, DECIMAL_SI) for name, number in totals.items()})
        return used


_DEVICES: Final = ".deviceclass.resource.k8s.io/devices"


def _devices(request: Tree) -> dict[str, int]:
    """Devices by class a request may get: of alternatives the one that takes most."""
    most: dict[str, int] = {}
    for option in request.get("firstAvailable") or [request.get("exactly") or {}]:
        name = option.get("deviceClassName")
        if name:
            number = MOST_DEVICES if option.get("allocationMode") == "All" else option.get("count") or 1
            most[name] = max(most.get(name, 0), number)
    return most


_SPECIAL: Final = {
    ("", "pods"): Pods,
    ("", "services"): Services,
    ("", "persistentvolumeclaims"): Claims,
    ("resource.k8s.io", "resourceclaims"): DeviceClaims,
}


def evaluator(group: str, plural: str) -> Evaluator:
    special = _SPECIAL.get((group, plural))
    return Evaluator(group, plural) if special is None else special()
