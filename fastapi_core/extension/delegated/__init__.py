"""Who is asking and what they may do, as the API server in front says: delegated authentication and authorization.

`Delegated` is what the composition of an extension server takes; `connect` makes it from the flags of `options`. Tests
and special servers may hand the composition any other pair of an Authenticator and an Authorizer instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fastapi_core.authn.base import Authenticator
    from fastapi_core.authz.base import Authorizer
    from fastapi_core.extension.delegated.options import DelegatedOptions
    from fastapi_core.http.tls import Authorities
    from fastapi_core.obs.catalog import Metrics
    from fastapi_core.obs.files import FileWatcher
    from fastapi_core.server.generic import GenericServer


class Delegated(Protocol):
    """Both sides of it, before the server starts."""

    @property
    def authenticator(self) -> Authenticator: ...
    @property
    def authorizer(self) -> Authorizer: ...
    @property
    def client_ca_files(self) -> tuple[str, ...]:
        """PEM files with CAs client certificates are verified with, for `TLSFiles.client_cas`: those of the flags."""
        ...

    @property
    def authorities(self) -> Authorities:
        """Further such CAs, for `TLSFiles.authorities`: those of the ConfigMap, which change while the server runs."""
        ...

    def install(self, server: GenericServer) -> None:
        """Add hooks (following the ConfigMap), health checks and what is to be closed at the end."""


async def connect(options: DelegatedOptions, *, agent: str, files: FileWatcher, metrics: Metrics) -> Delegated:
    """Ask the API server for what is needed before the first request; `agent` is how it knows us in its logs.

    Raises OptionsError when the server cannot be reached or refuses and the flags do not tolerate that.
    """
    from fastapi_core.extension.delegated.delegation import connected

    return await connected(options, agent=agent, files=files, metrics=metrics)
