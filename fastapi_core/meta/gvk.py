"""Group, version and kind: parsed from and written as `apiVersion` texts."""

from __future__ import annotations

from typing import NamedTuple


class GroupVersion(NamedTuple):
    """An API group in one version; `group` is empty for the core group."""

    group: str
    version: str

    def __str__(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


class GroupVersionKind(NamedTuple):
    """A kind in one version of its group."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        """As the reference prints it inside messages."""
        return f"{self.api_version}, Kind={self.kind}"


def parse(api_version: str) -> GroupVersion:
    """`apps/v1`, `v1`; empty gives an empty pair. ValueError with the reference's text otherwise."""
    if api_version in ("", "/"):
        return GroupVersion("", "")
    group, slash, version = api_version.partition("/")
    if not slash:
        return GroupVersion("", group)
    if "/" in version:
        raise ValueError(f"unexpected GroupVersion string: {api_version}")
    return GroupVersion(group, version)
