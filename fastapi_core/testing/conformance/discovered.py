"""What a server says it serves, read from its discovery documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fastapi_core.testing.conformance.client import Answer, Client, Tree
from fastapi_core.testing.conformance.target import TargetError

#: What a client asks for that takes either form of discovery, the aggregated one first.
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
EITHER = f"{AGGREGATED},application/json"


@dataclass(frozen=True)
class Resource:
    """One resource of one version, with its subresources (name -> verbs)."""

    group: str
    version: str
    name: str
    kind: str
    namespaced: bool
    verbs: frozenset[str]
    singular: str = ""
    short_names: tuple[str, ...] = ()
    subresources: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """The path of the version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    @property
    def title(self) -> str:
        """How errors and people call it: `leases.coordination.k8s.io`."""
        return f"{self.name}.{self.group}" if self.group else self.name

    @property
    def offers(self) -> frozenset[str]:
        """What a check may need: verbs, and the subresources that can be read and written."""
        whole = {name for name, verbs in self.subresources.items() if {"get", "update"} <= verbs}
        return self.verbs | whole | ({"namespaced"} if self.namespaced else set())


def discover(client: Client, group: str, version: str = "", names: Iterable[str] = ()) -> list[Resource]:
    """The resources of a version (the preferred one unless named), all or those named; TargetError without any."""
    chosen = version or preferred(client, group)
    root = f"/apis/{group}/{chosen}" if group else f"/api/{chosen}"
    answer = client.request("GET", root)
    entries = (_tree(answer).get("resources") if answer.status == 200 else None) or []
    if not isinstance(entries, list):
        raise TargetError(f"GET {root}: resources is no list")
    found = resources(group, chosen, entries)
    wanted = set(names)
    missing = wanted - {resource.name for resource in found}
    if missing or not found:
        named = f"no {', '.join(sorted(missing))}" if missing else "no resources"
        raise TargetError(f"GET {root} answers {answer.status}: {named}")
    return [resource for resource in found if not wanted or resource.name in wanted]


def preferred(client: Client, group: str) -> str:
    """The version a group prefers."""
    if not group:
        return "v1"
    answer = client.request("GET", "/apis")
    for entry in _tree(answer).get("groups") or ():
        if entry.get("name") == group:
            chosen = entry.get("preferredVersion") or (entry.get("versions") or [{}])[0]
            return str(chosen.get("version", ""))
    raise TargetError(f"GET /apis answers {answer.status}: no group {group}")


def resources(group: str, version: str, entries: Iterable[Tree]) -> list[Resource]:
    """The resources of a legacy list; entries of other forms are left to the checks."""
    known = [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("name"), str)]
    subresources: dict[str, dict[str, frozenset[str]]] = {}
    for entry in known:
        parent, slash, name = entry["name"].partition("/")
        if slash:
            subresources.setdefault(parent, {})[name] = _verbs(entry)
    return [
        Resource(
            group,
            version,
            entry["name"],
            str(entry.get("kind", "")),
            bool(entry.get("namespaced")),
            _verbs(entry),
            str(entry.get("singularName", "")),
            tuple(entry.get("shortNames") or ()),
            subresources.get(entry["name"], {}),
        )
        for entry in known
        if "/" not in entry["name"]
    ]


def _verbs(entry: Tree) -> frozenset[str]:
    return frozenset(verb for verb in entry.get("verbs") or () if isinstance(verb, str))


def _tree(answer: Answer) -> Tree:
    if answer.status in (401, 403):
        raise TargetError(f"{answer.method} {answer.path} answers {answer.status}: the credential may not do that")
    try:
        value = answer.json()
    except Exception:
        value = None
    if not isinstance(value, dict):
        raise TargetError(f"{answer.method} {answer.path} answers {answer.status} and no JSON object")
    return value
