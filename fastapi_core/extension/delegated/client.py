"""A client of the core API: objects in and out over connections that are kept, watches as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import orjson

from fastapi_core.authn.outbound import ANSWER_LIMIT, OutboundError
from fastapi_core.errors import REASON_CODES, APIError
from fastapi_core.extension.delegated.lines import Lines
from fastapi_core.http.asking import Whole
from fastapi_core.http.asking import ask as whole
from fastapi_core.http.client import UpstreamError, request_head
from fastapi_core.http.pool import Pool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fastapi_core.extension.delegated.access import Access
    from fastapi_core.http.exchange import Header

Tree = dict[str, Any]
TIMEOUT = 10.0
"""Seconds for one question and its answer."""
CONNECTIONS, QUEUE = 16, 1024
"""How many questions are under way at a time, and how many may wait for their turn: unknown tokens cost a question each."""
WATCH_SECONDS = 300
"""How long a watch lasts before another takes its place; a dead connection is noticed no later."""
_JSON, APPLY = "application/json", "application/apply-patch+yaml"


class CoreClient:
    """Asks the core API as `access` says; `agent` is how it knows us in its logs.

    Failures: APIError for an answer that is an error, OutboundError when there is no answer.
    """

    def __init__(self, access: Access, agent: str) -> None:
        self.access = access
        self._agent = agent
        self._pool = Pool(idle_limit=CONNECTIONS, limit=CONNECTIONS, queue=QUEUE)
        self._watches = Pool(idle_limit=0)
        """Apart: they stay, and would take the place of questions."""

    def close(self) -> None:
        """End the connections that are kept."""
        self._pool.close()
        self._watches.close()

    async def ask(
        self, method: str, path: str, body: Tree | None = None, *, kind: str = _JSON, timeout: float = TIMEOUT
    ) -> tuple[int, Tree]:
        """Status and object of the answer."""
        answer = await self.exchange(method, path, b"" if body is None else orjson.dumps(body), kind, timeout)
        tree = _tree(answer.body)
        if answer.status >= 400:
            raise failure(answer.status, tree)
        if tree is None:
            raise OutboundError(f"{method} {path}: the answer is no object")
        return answer.status, tree

    async def get(self, path: str) -> Tree:
        """One object, or a list."""
        return (await self.ask("GET", path))[1]

    async def find(self, path: str) -> Tree | None:
        """One object, None when there is none."""
        try:
            return await self.get(path)
        except APIError as error:
            if error.code == 404:
                return None
            raise

    async def apply(self, path: str, tree: Tree, manager: str, *, force: bool = True) -> tuple[int, Tree]:
        """Server-side apply: 201 when it made the object, 200 when there was one."""
        asked = urlencode({"fieldManager": manager, "force": str(force).lower()})
        return await self.ask("PATCH", f"{path}?{asked}", tree, kind=APPLY)

    async def exchange(self, method: str, path: str, body: bytes, kind: str, timeout: float) -> Whole:
        """The answer whatever it is. Raises OutboundError."""
        more = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())] if body else []
        question = self._head(method, path, more) + body
        try:
            async with asyncio.timeout(timeout):
                return await whole(self._pool, self.access.target, question, limit=ANSWER_LIMIT)
        except TimeoutError:
            raise OutboundError(f'{method} "{self._url(path)}": context deadline exceeded') from None
        except UpstreamError as error:
            broken = isinstance(error.__cause__, ConnectionResetError | BrokenPipeError | EOFError)
            raise OutboundError(f'{method} "{self._url(path)}": {error}', again=broken) from None

    async def watch(self, path: str, *, seconds: int = WATCH_SECONDS) -> AsyncGenerator[Tree, None]:
        """The events of a watch, the frames as they are, until it ends. `path` has a query with `watch=true`."""
        try:
            async with asyncio.timeout(seconds + 30):
                connection = await self._watches.connect(self.access.target)
                lines = Lines(connection)
                try:
                    connection.start(lines, self._head("GET", path))
                    async for line in lines.all():
                        tree = _tree(line)
                        if lines.status >= 400:
                            raise failure(lines.status, tree)
                        if tree is not None:
                            yield tree
                finally:
                    connection.abort()
        except TimeoutError:
            return
        except UpstreamError as error:
            raise OutboundError(f'GET "{self._url(path)}": {error}', again=True) from None

    def reviews(self, path: str, hint: str, told: Callable[[str, float], None] | None = None) -> Reviews:
        """Who answers the reviews posted to `path`."""
        return Reviews(self, path, hint, told)

    def _url(self, path: str) -> str:
        remote = self.access.remote
        return f"{remote.url.rstrip('/')}{path}"

    def _head(self, method: str, path: str, more: Sequence[Header] = ()) -> bytes:
        access = self.access
        own = [
            (b"host", access.authority.encode()), (b"user-agent", self._agent.encode()), (b"accept", _JSON.encode()),
            *more, *access.remote.headers, *access.remote.authorization(),
        ]  # fmt: skip
        return request_head(method, access.prefix + path, own)


class Reviews:
    """One kind of review (`outbound.Asked`): TokenReview, SubjectAccessReview.

    `hint` is how a refusal is usually mended; `told` hears the code of every answer (`<error>` without one) and how long
    it took, in seconds.
    """

    def __init__(
        self, client: CoreClient, path: str, hint: str, told: Callable[[str, float], None] | None = None
    ) -> None:
        self._client = client
        self._path = path
        self._hint = hint
        self._told = told

    async def post(self, body: bytes, *, timeout: float) -> Whole:
        code, start = "<error>", monotonic()
        try:
            answer = await self._client.exchange("POST", self._path, body, _JSON, timeout)
            code = str(answer.status)
        finally:
            if self._told is not None:
                self._told(code, monotonic() - start)
        if answer.status in (401, 403):
            error = failure(answer.status, _tree(answer.body))
            raise OutboundError(f"{error.message} ({self._hint})" if answer.status == 403 else error.message)
        return answer


def _tree(data: bytes) -> Tree | None:
    try:
        tree = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return tree if isinstance(tree, dict) else None


def failure(code: int, status: Tree | None) -> APIError:
    """The error that an answer is, by its Status or without one."""
    told = status if status is not None and status.get("kind") == "Status" else {}
    message, reason, details = told.get("message"), told.get("reason"), told.get("details")
    return APIError(
        reason if isinstance(reason, str) and reason in REASON_CODES else "",
        message if isinstance(message, str) and message else f"the server answered {code}",
        code=code,
        details=details if isinstance(details, dict) else None,
    )


def segment(text: str) -> str:
    """A name as a part of a path."""
    return quote(text, safe="-._~:")
