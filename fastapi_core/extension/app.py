"""`Extension`: what an author makes first, declares kinds on, and runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi_core.extension.columns import Column
from fastapi_core.extension.description import GROUP_PRIORITY, VERSION_PRIORITY, Description, GroupVersion
from fastapi_core.extension.kinds import Resource, Storage, Stored

if TYPE_CHECKING:
    from fastapi_core.authn.base import Authenticator
    from fastapi_core.authz.base import Authorizer
    from fastapi_core.extension.options import Options
    from fastapi_core.server.generic import GenericServer

T = TypeVar("T")


class Extension:
    """An API server of your own kinds.

    `group_version` (`db.example.com/v1`) is that of its kinds unless they say otherwise. `name` is a DNS label for the
    Service it stands behind (default: the group with dashes), `namespace` that of the Service.
    """

    def __init__(
        self,
        group_version: str,
        *,
        name: str = "",
        namespace: str = "default",
        group_priority: int = GROUP_PRIORITY,
        version_priority: int = VERSION_PRIORITY,
    ) -> None:
        given = GroupVersion.parse(group_version)
        self.group_version = GroupVersion(given.group, given.version, group_priority, version_priority)
        self.name = name or given.group.replace(".", "-")
        self.namespace = namespace

    def kind(
        self,
        model: type[T],
        plural: str,
        *,
        kind: str = "",
        namespaced: bool = True,
        short_names: Sequence[str] = (),
        categories: Sequence[str] = (),
        columns: Sequence[Column] = (),
        selectable: Sequence[str] = (),
        group_version: str = "",
        storage: Storage[T] | None = None,
    ) -> Resource[T]:
        """Declare a kind that your functions answer for, or your `Storage`."""
        return Resource()

    def stored(
        self,
        model: type[T],
        plural: str,
        *,
        kind: str = "",
        namespaced: bool = True,
        short_names: Sequence[str] = (),
        categories: Sequence[str] = (),
        columns: Sequence[Column] = (),
        selectable: Sequence[str] = (),
        group_version: str = "",
        status: bool = False,
    ) -> Stored[T]:
        """Declare a kind whose objects the framework keeps (`--data-dir`, else in memory)."""
        return Stored()

    def background(self, task: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
        """Decorator: run `task` while the server runs, from when it listens on; it is cancelled at the end."""
        return task

    @property
    def description(self) -> Description:
        """What is served, for the registration."""
        return Description(self.name, self.namespace, (self.group_version,), ())

    async def compose(
        self,
        options: Options,
        *,
        authenticator: Authenticator | None = None,
        authorizer: Authorizer | None = None,
    ) -> GenericServer:
        """A server ready to `start()`. Given an authenticator and an authorizer, nothing is delegated (tests)."""
        from fastapi_core.extension.composition import compose

        return await compose(self, options, authenticator=authenticator, authorizer=authorizer)

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """The command line: `[serve] [flags]`, `register [flags]`, `unregister [flags]`. Answers the exit code."""
        from fastapi_core.extension.cli import main

        return main(self, arguments)


Tree = Mapping[str, Any]
