"""An extension as a server: its kinds over their sources, behind the generic server."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi_core.authn.base import Authenticator
    from fastapi_core.authz.base import Authorizer
    from fastapi_core.extension.app import Extension
    from fastapi_core.extension.options import Options
    from fastapi_core.server.generic import GenericServer


async def compose(
    app: Extension,
    options: Options,
    *,
    authenticator: Authenticator | None = None,
    authorizer: Authorizer | None = None,
) -> GenericServer:
    """Storage open, routes made, certificates there. Raises OptionsError, OSError, StorageError."""
    raise SystemExit("not there yet")
