"""Bearer tokens: reading the Authorization header, and the static token file."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING

from fastapi_core.authn.base import with_authenticated
from fastapi_core.errors import unauthorized
from fastapi_core.request.context import User

if TYPE_CHECKING:
    from fastapi_core.request.context import RequestContext

EXTRA_SPACE = "the provided Authorization header contains extra space before the bearer token, and is ignored"
#: Header values remembered; a client that sends ever new garbage only clears the memory.
_MEMORY = 1024
_LONGEST = 4096


def bearer_token(header: bytes) -> tuple[bytes, bool]:
    """The token of an Authorization value (empty: none) and whether extra space hides it.

    One space separates scheme and token; what follows the token is ignored, as the reference ignores it.
    """
    parts = header.strip().split(b" ", 2)
    if len(parts) < 2 or parts[0].lower() != b"bearer":
        return b"", False
    return parts[1], not parts[1] and len(parts) == 3 and bool(parts[2].strip())


class StaticTokens:
    """Tokens that are known from the start (`--token-auth-file`, the generated admin token)."""

    def __init__(self, users: Mapping[str, User]) -> None:
        # Tokens are kept hashed: the look-up then tells nothing about how much of a guess was right.
        self._users = {sha256(token.encode()).digest(): with_authenticated(user) for token, user in users.items()}
        self._memory: dict[bytes, User] = {}

    def authenticate(self, ctx: RequestContext) -> User | None:
        header = ctx.request.header(b"authorization")
        if header is None:
            return None
        user = self._memory.get(header)
        if user is not None:
            return user
        token, hidden = bearer_token(header)
        if not token:
            if hidden:
                ctx.warn(EXTRA_SPACE)
            return None
        user = self._users.get(sha256(token).digest())
        if user is None:
            raise unauthorized()
        if len(header) <= _LONGEST:
            if len(self._memory) >= _MEMORY:
                self._memory.clear()
            self._memory[header] = user
        return user


def load_token_file(text: str) -> dict[str, User]:
    """Users of a token file: `token,user,uid[,"group1,group2"]` a line; ValueError names the line.

    As in the reference a later line with the same token wins and an empty token is skipped.
    """
    users: dict[str, User] = {}
    rows = csv.reader(io.StringIO(text), strict=True)
    try:
        for row in rows:
            if not row or row[0].startswith("#"):
                continue
            if len(row) < 3:
                raise ValueError(f"line {rows.line_num}: expected token,user,uid[,groups], found {len(row)} columns")
            token, name, uid = (cell.strip() for cell in row[:3])
            if not token:
                continue
            groups = tuple(g.strip() for g in row[3].split(",") if g.strip()) if len(row) > 3 else ()
            users[token] = User(name, uid, groups)
    except csv.Error as error:
        raise ValueError(f"line {rows.line_num}: {error}") from None
    return users
