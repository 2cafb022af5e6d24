"""An extension in the process of its tests: asked through its whole chain, or over a socket.

```python
async def test_quotes() -> None:
    async with serving(app) as api:
        made = await api.good("GET", "/apis/fortune.example.com/v1/quotes/gray")
        assert made["author"] == "Tim Peters"
        status, refused = await api.call("POST", "/apis/fortune.example.com/v1/quotes", {...})
        assert status == 405
```
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi_core.authn.base import AUTHENTICATED, MASTERS, Authenticator
from fastapi_core.authz.base import AlwaysAllow, Authorizer
from fastapi_core.extension import Extension, User
from fastapi_core.extension.options import Options
from fastapi_core.http.exchange import Response

if TYPE_CHECKING:
    from fastapi_core.request.context import RequestContext
    from fastapi_core.server.generic import GenericServer

Tree = dict[str, Any]
ADMIN = User("admin", groups=(MASTERS, AUTHENTICATED))


class Everybody:
    """Authenticates whoever comes over a socket as the user in X-User, or else as the admin."""

    def authenticate(self, ctx: RequestContext) -> User:
        name = ctx.request.header(b"x-user")
        return User(name.decode(), groups=(AUTHENTICATED,)) if name else ADMIN


class Served:
    """A running extension and its client, who is `system:apiserver` and may do everything."""

    def __init__(self, server: GenericServer) -> None:
        self.server = server

    @property
    def url(self) -> str:
        """Where it listens, by plain HTTP, for clients of other kinds."""
        return f"http://{self.server.config.bind_address}:{self.server.port}"

    async def ask(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Response:
        """The answer as it is. `body` is bytes, or what becomes JSON."""
        sent = {"content-type": "application/json", **(headers or {})}
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        answer = await self.server.loopback.send(
            method, path, data, [(name.encode(), value.encode()) for name, value in sent.items()]
        )
        if not isinstance(answer, Response):
            raise TypeError(f"{method} {path} answers a stream: use watch(), or a client over `url`")
        return answer

    async def call(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        """Status and document (the text where there is none)."""
        answer = await self.ask(method, path, body, headers)
        data = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
        try:
            return answer.status, json.loads(data)
        except ValueError:
            return answer.status, data.decode("utf-8", "replace")

    async def good(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Tree:
        """The document of an answer that has to be a good one; AssertionError with what was said otherwise."""
        status, found = await self.call(method, path, body, headers)
        if status >= 300 or not isinstance(found, dict):
            raise AssertionError(f"{method} {path}: {status} {found}")
        return found

    def watch(self, path: str) -> AsyncGenerator[Tree, None]:
        """The events of a watch (`...?watch=1`); APIError when it does not start."""
        return self.server.loopback.watch(path)


@asynccontextmanager
async def serving(
    app: Extension, *flags: str, authenticator: Authenticator | None = None, authorizer: Authorizer | None = None
) -> AsyncIterator[Served]:
    """Serve an extension on a free port, with the flags of its command line; objects are kept in memory by default.

    Nobody is asked who callers are and what they may do: it is `Everybody`, and everything, unless you say otherwise.
    """
    options = Options.parse(["--bind-address=127.0.0.1", "--secure-port=0", *flags])
    server = await app.compose(
        options, authenticator=authenticator or Everybody(), authorizer=authorizer or AlwaysAllow(), plain=True
    )
    try:
        await server.start()
        yield Served(server)
    finally:
        await server.stop()
