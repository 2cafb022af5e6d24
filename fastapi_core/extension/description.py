"""What an extension serves, in the words of its registration: APIServices, the Service in front of it, its account."""

from __future__ import annotations

from fastapi_core.records import dataclass

GROUP_PRIORITY = 1000
VERSION_PRIORITY = 15


@dataclass(frozen=True, slots=True)
class GroupVersion:
    """One `APIService`: `v1.db.example.com`. The priorities are its `groupPriorityMinimum` and `versionPriority`."""

    group: str
    version: str
    group_priority: int = GROUP_PRIORITY
    version_priority: int = VERSION_PRIORITY

    @property
    def name(self) -> str:
        """Name of the APIService."""
        return f"{self.version}.{self.group}"

    def __str__(self) -> str:
        return f"{self.group}/{self.version}"

    @classmethod
    def parse(cls, text: str) -> GroupVersion:
        """`db.example.com/v1`; ValueError for anything else."""
        group, slash, version = text.partition("/")
        if not slash or not version or "/" in version or "." not in group:
            raise ValueError(f"{text!r} is no group and version, use for example 'db.example.com/v1'")
        return cls(group, version)


@dataclass(frozen=True, slots=True)
class ServedResource:
    """A resource with the verbs that are served, `name` with its subresource: `databases/status`."""

    group: str
    version: str
    name: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Description:
    """All that registering an extension needs to know of it; `Extension.description` makes one."""

    name: str
    """A DNS label: name of the Service and the ServiceAccount, field manager and user agent."""
    namespace: str
    """Where the Service and the ServiceAccount are, unless a flag says otherwise."""
    versions: tuple[GroupVersion, ...]
    resources: tuple[ServedResource, ...]

    def service_names(self, namespace: str = "") -> tuple[str, ...]:
        """The host names the front server uses for the Service: what a serving certificate must be for."""
        base = f"{self.name}.{namespace or self.namespace}"
        return f"{base}.svc", f"{base}.svc.cluster.local", base
