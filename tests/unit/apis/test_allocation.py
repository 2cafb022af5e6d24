"""Service addresses and node ports: what is given, kept and refused."""

from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from fastapi_core.apis.allocation import ServiceAllocator
from fastapi_core.apis.claims import claims_of
from fastapi_core.apis.defaults import apply_defaults
from fastapi_core.apis.resources import builtin
from fastapi_core.errors import APIError
from fastapi_core.schema.normalize import normalize

SERVICE = next(d for d in builtin() if d.kind == "Service")
Tree = dict[str, Any]


class Cluster:
    """Services as a store would hold them."""

    def __init__(self, *networks: str, first: int = 30000, last: int = 30009) -> None:
        self.allocator = ServiceAllocator(networks or ("10.0.0.0/24",), first, last)
        self.revision = 0
        self.definition = self.allocator.bind(SERVICE)

    def write(self, name: str, spec: Tree, old: Tree | None = None, *, commit: bool = True) -> Tree:
        ports = {} if spec.get("type") == "ExternalName" else {"ports": [{"port": 80}]}
        whole = {"metadata": {"name": name, "namespace": "n"}, "spec": {**ports, **spec}}
        tree = normalize(SERVICE.type, whole).tree
        apply_defaults(self.definition, tree)
        strategy = self.definition.strategy
        strategy.prepare(tree, old)
        assert strategy.validate(tree, old) == []
        strategy.canonicalize(tree, old)
        if commit:
            self.revision += 1
            self.allocator.claims.commit(f"n/{name}", self.revision, claims_of(tree))
        return tree

    def delete(self, name: str) -> None:
        self.revision += 1
        self.allocator.claims.remove(f"n/{name}", self.revision)

    def refused(self, name: str, spec: Tree) -> str:
        with pytest.raises(APIError) as raised:
            self.write(name, spec)
        return raised.value.message


def test_each_service_gets_its_own_address() -> None:
    cluster = Cluster("10.0.0.0/28")
    found = [cluster.write(f"s{i}", {})["spec"]["clusterIP"] for i in range(14)]
    assert len(set(found)) == 14
    assert not {"10.0.0.0", "10.0.0.15"} & set(found)
    assert cluster.refused("more", {}) == "Internal error occurred: failed to allocate a serviceIP: range is full"
    cluster.delete("s3")
    assert cluster.write("more", {})["spec"]["clusterIP"] == found[3]


def test_chosen_addresses_come_from_another_part() -> None:
    cluster = Cluster()
    last = [int(cluster.write(f"s{i}", {})["spec"]["clusterIP"].rpartition(".")[2]) for i in range(40)]
    assert min(last) >= 16


def test_families_and_policy() -> None:
    cluster = Cluster()
    plain = cluster.write("a", {})["spec"]
    assert (plain["ipFamilies"], plain["ipFamilyPolicy"], plain["clusterIPs"]) == (
        ["IPv4"],
        "SingleStack",
        [plain["clusterIP"]],
    )
    headless = cluster.write("b", {"clusterIP": "None", "selector": {"a": "b"}})["spec"]
    assert (headless["clusterIPs"], headless["ipFamilyPolicy"]) == (["None"], "SingleStack")
    bare = cluster.write("c", {"clusterIP": "None"})["spec"]
    assert (bare["ipFamilies"], bare["ipFamilyPolicy"]) == (["IPv4", "IPv6"], "RequireDualStack")
    external = cluster.write("d", {"type": "ExternalName", "externalName": "a.b"})["spec"]
    assert not {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} & set(external)
    assert "not configured for dual-stack" in cluster.refused("e", {"ipFamilyPolicy": "RequireDualStack"})
    assert "spec.ipFamilies[0]: Invalid value" in cluster.refused("f", {"ipFamilies": ["IPv6"]})


def test_a_chosen_address() -> None:
    cluster = Cluster()
    assert cluster.write("a", {"clusterIP": "10.0.0.11"})["spec"]["clusterIPs"] == ["10.0.0.11"]
    assert cluster.refused("b", {"clusterIP": "10.0.0.11"}) == (
        'Service "b" is invalid: spec.clusterIPs: Invalid value: ["10.0.0.11"]: '
        "failed to allocate IP 10.0.0.11: provided IP is already allocated"
    )
    assert 'spec.clusterIPs[0]: Invalid value: ["fd00::1"]: IPv6 is not configured on this cluster' in cluster.refused(
        "b", {"clusterIP": "fd00::1"}
    )
    for outside in ("10.9.0.11", "10.0.0.0", "10.0.0.255"):
        assert cluster.refused("b", {"clusterIP": outside}).endswith(
            "the provided network does not match the current range"
        )


def test_a_dry_run_does_not_stand_in_its_own_way() -> None:
    cluster = Cluster()
    spec = {"type": "NodePort", "clusterIP": "10.0.0.11", "ports": [{"port": 80, "nodePort": 30001}]}
    cluster.write("a", dict(spec), commit=False)
    cluster.write("a", dict(spec))


def test_what_was_just_given_is_held() -> None:
    cluster = Cluster("10.0.0.0/28")
    found = [cluster.write(f"s{i}", {}, commit=False)["spec"]["clusterIP"] for i in range(14)]
    assert len(set(found)) == 14


def test_node_ports() -> None:
    cluster = Cluster()
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81, "nodePort": 30005}]
    given = cluster.write("a", {"type": "NodePort", "ports": ports})["spec"]["ports"]
    assert given[1]["nodePort"] == 30005
    assert given[0]["nodePort"] in set(range(30000, 30010)) - {30005}
    refused = cluster.refused("b", {"type": "NodePort", "ports": [{"port": 1, "nodePort": 30005}]})
    assert refused.endswith("spec.ports[0].nodePort: Invalid value: 30005: provided port is already allocated")
    outside = cluster.refused("b", {"type": "NodePort", "ports": [{"port": 1, "nodePort": 1}]})
    assert outside.endswith("The range of valid ports is 30000-30009")
    free = 30008 if given[0]["nodePort"] == 30007 else 30007
    both = [
        {"name": "t", "port": 1, "nodePort": free},
        {"name": "u", "port": 1, "nodePort": free, "protocol": "UDP"},
    ]
    assert cluster.write("c", {"type": "NodePort", "ports": both})["spec"]["ports"][1]["nodePort"] == free


def test_balancers_may_do_without_node_ports() -> None:
    cluster = Cluster()
    spec = {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False, "ports": [{"port": 1}]}
    assert "nodePort" not in cluster.write("a", spec)["spec"]["ports"][0]
    local = {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"port": 1}]}
    assert cluster.write("b", local)["spec"]["healthCheckNodePort"]


def test_updates_keep_what_they_leave_out() -> None:
    cluster = Cluster()
    old = cluster.write("a", {"type": "NodePort", "ports": [{"port": 80}]})
    new = cluster.write("a", {"type": "NodePort", "ports": [{"port": 81}]}, old)
    for member in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        assert new["spec"][member] == old["spec"][member]
    assert new["spec"]["ports"][0]["nodePort"] == old["spec"]["ports"][0]["nodePort"]


def test_a_change_of_type_drops_and_gives() -> None:
    cluster = Cluster()
    old = cluster.write("a", {"type": "NodePort", "ports": [{"port": 80}]})
    plain = cluster.write("a", {**old["spec"], "type": "ClusterIP"}, old)
    assert "nodePort" not in plain["spec"]["ports"][0]
    assert "externalTrafficPolicy" not in plain["spec"]
    external = cluster.write("a", {**plain["spec"], "type": "ExternalName", "externalName": "a.b"}, plain)
    assert not {"clusterIP", "internalTrafficPolicy"} & set(external["spec"])
    again = cluster.write("a", {"ports": [{"port": 80}]}, external)
    assert again["spec"]["clusterIP"].startswith("10.0.0.")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"clusterIPs": ["10.0.0.12"]}, "must be empty when `clusterIP` is not specified"),
        ({"clusterIP": "10.0.0.12", "clusterIPs": ["10.0.0.13"]}, "first value must match `clusterIP`"),
        ({"clusterIP": "10.0.0.999"}, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
        ({"type": "ExternalName"}, "spec.externalName: Required value"),
        ({"type": "ExternalName", "externalName": "a.b", "clusterIP": "10.0.0.1"}, "may not be set for ExternalName"),
    ],
)
def test_address_members_agree(spec: Tree, expected: str) -> None:
    tree = {"metadata": {"name": "x"}, "spec": dict(spec)}
    SERVICE.strategy.prepare(tree, None)
    assert any(expected in str(error) for error in SERVICE.strategy.validate(tree, None))


def test_addresses_do_not_change() -> None:
    old = {"metadata": {"name": "x"}, "spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]}}
    new = {"metadata": {"name": "x"}, "spec": {"clusterIP": "10.0.0.2"}}
    SERVICE.strategy.prepare(new, old)
    assert 'spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set' in [
        str(e) for e in SERVICE.strategy.validate(new, old)
    ]


DUAL = ("10.0.0.0/24", "fd00::/108")


def test_two_families_when_asked_for() -> None:
    cluster = Cluster(*DUAL)
    plain = cluster.write("a", {})["spec"]
    assert (plain["ipFamilies"], len(plain["clusterIPs"])) == (["IPv4"], 1)
    for policy in ("PreferDualStack", "RequireDualStack"):
        both = cluster.write(policy.lower(), {"ipFamilyPolicy": policy})["spec"]
        assert both["ipFamilies"] == ["IPv4", "IPv6"]
        assert [ip_address(a).version for a in both["clusterIPs"]] == [4, 6]
        assert both["clusterIP"] == both["clusterIPs"][0]
    six = cluster.write("d", {"ipFamilies": ["IPv6"]})["spec"]
    assert (ip_address(six["clusterIP"]).version, six["ipFamilyPolicy"]) == (6, "SingleStack")
    given = cluster.write("e", {"clusterIP": "fd00::5", "ipFamilyPolicy": "PreferDualStack"})["spec"]
    assert given["ipFamilies"] == ["IPv6", "IPv4"]
    assert cluster.refused("f", {"clusterIP": "fd00::5"}).endswith("provided IP is already allocated")
    assert cluster.refused("f", {"clusterIP": "fd00:0:0::5"}).endswith("provided IP is already allocated")
    assert "must be 'RequireDualStack' or 'PreferDualStack'" in cluster.refused("g", {"ipFamilies": ["IPv4", "IPv6"]})


def test_a_cluster_may_begin_with_ipv6() -> None:
    cluster = Cluster("fd00::/108", "10.0.0.0/24")
    assert cluster.allocator.first_address == "fd00::1"
    assert cluster.write("a", {})["spec"]["ipFamilies"] == ["IPv6"]


def test_up_to_two_families_and_back() -> None:
    cluster = Cluster(*DUAL)
    single = cluster.write("a", {"ports": [{"port": 80}]})
    both = cluster.write("a", {**single["spec"], "ipFamilyPolicy": "PreferDualStack"}, single)
    assert both["spec"]["clusterIPs"][0] == single["spec"]["clusterIP"]
    assert len(both["spec"]["clusterIPs"]) == 2
    second = both["spec"]["clusterIPs"][1]
    with pytest.raises(APIError, match="must be 'SingleStack' to release the secondary cluster IP"):
        cluster.write("a", {**both["spec"], "clusterIPs": both["spec"]["clusterIPs"][:1]}, both)
    again = cluster.write("a", {**both["spec"], "ipFamilyPolicy": "SingleStack"}, both)
    assert (again["spec"]["clusterIPs"], again["spec"]["ipFamilies"]) == ([single["spec"]["clusterIP"]], ["IPv4"])
    assert cluster.allocator.claims.holders(second) == ()


def test_preferring_two_families_changes_nothing_by_itself() -> None:
    """A service made when the cluster had one family stays as it is on an update."""
    before = Cluster()
    old = before.write("a", {"ipFamilyPolicy": "PreferDualStack", "ports": [{"port": 80}]})
    now = Cluster(*DUAL)
    now.allocator.claims.commit("n/a", 1, claims_of(old))
    new = now.write("a", {**old["spec"], "ports": [{"port": 81}]}, old)
    assert new["spec"]["clusterIPs"] == old["spec"]["clusterIPs"]
    assert new["spec"]["ipFamilies"] == ["IPv4"]


def test_one_node_port_serves_two_protocols() -> None:
    cluster = Cluster()
    ports = [{"name": "t", "port": 53}, {"name": "u", "port": 53, "protocol": "UDP"}, {"name": "x", "port": 54}]
    given = [p["nodePort"] for p in cluster.write("a", {"type": "NodePort", "ports": ports})["spec"]["ports"]]
    assert given[0] == given[1] != given[2]


def test_ranges_of_ready_objects_and_addresses_that_are_kept() -> None:
    cluster = Cluster("10.0.0.0/30")
    cluster.allocator.more_networks = lambda: [ip_network("10.5.0.0/24")]
    cluster.allocator.reserved = lambda address: address == "10.5.0.9"
    found = [cluster.write(f"s{i}", {})["spec"]["clusterIP"] for i in range(4)]
    assert sum(address.startswith("10.5.") for address in found) == 2
    assert cluster.refused("x", {"clusterIP": "10.5.0.9"}).endswith("provided IP is already allocated")


def test_node_ports_run_out() -> None:
    cluster = Cluster(last=30001)
    spec = {"type": "NodePort", "ports": [{"port": 80}]}
    cluster.write("a", dict(spec, ports=[{"port": 80}]))
    cluster.write("b", dict(spec, ports=[{"port": 80}]))
    text = "Internal error occurred: failed to allocate a nodePort: range is full"
    assert cluster.refused("c", dict(spec, ports=[{"port": 80}])) == text


def test_trying_again_does_not_use_the_range_up() -> None:
    cluster = Cluster("10.0.0.0/29")
    for _ in range(50):
        cluster.write("a", {"type": "NodePort", "ports": [{"port": 80}]}, commit=False)
    cluster.write("b", {"type": "NodePort", "ports": [{"port": 80}]})


def _rehearsed(cluster: Cluster, spec: Tree, old: Tree | None = None) -> Tree:
    tree = normalize(SERVICE.type, {"metadata": {"name": "dry", "namespace": "n"}, "spec": spec}).tree
    apply_defaults(cluster.definition, tree)
    assert cluster.definition.strategy.rehearse is not None
    cluster.definition.strategy.rehearse(tree, old)
    result: Tree = tree["spec"]
    return result


def test_a_dry_run_claims_nothing_and_looks_for_nothing() -> None:
    cluster = Cluster("10.0.0.0/30", first=30000, last=30000)
    taken = cluster.write("one", {"clusterIP": "10.0.0.1", "type": "NodePort"})["spec"]
    assert taken["ports"][0]["nodePort"] == 30000
    ports = [{"port": 1}, {"port": 2}]
    spec = _rehearsed(cluster, {"type": "NodePort", "clusterIP": "10.0.0.1", "ports": ports})
    assert [port["nodePort"] for port in spec["ports"]] == [32769, 32770]
    assert _rehearsed(cluster, {"ports": ports})["clusterIP"] == "10.0.0.0"
    spec = _rehearsed(cluster, {"type": "NodePort", "ports": [{"port": 1, "nodePort": 7}]})
    assert spec["ports"][0]["nodePort"] == 7
    assert cluster.write("two", {"clusterIP": "10.0.0.2"})["spec"]["clusterIP"] == "10.0.0.2"


def test_what_a_dry_run_refuses() -> None:
    cluster = Cluster(first=30000, last=30000)
    cluster.write("one", {"type": "NodePort"})
    with pytest.raises(APIError) as raised:
        _rehearsed(cluster, {"clusterIP": "10.0.1.1", "ports": [{"port": 1}]})
    assert raised.value.message.endswith(
        "the provided IP (10.0.1.1) is not in the valid range. The range of valid IPs is 10.0.0.0/24"
    )
    with pytest.raises(APIError) as raised:
        _rehearsed(cluster, {"type": "NodePort", "ports": [{"port": 1, "nodePort": 30000}]})
    assert raised.value.message.endswith("provided port is already allocated")
