"""POST tokenreviews: is this token good, and whose is it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi_core import errors
from fastapi_core.authn.base import Audiences, Known, WrongCredential
from fastapi_core.authn.tokens import INVALID
from fastapi_core.errors import APIError
from fastapi_core.http.exchange import Response
from fastapi_core.registry.definition import Tree
from fastapi_core.request.context import RequestContext, User
from fastapi_core.rest import render

Check = Callable[[str, "Audiences | None", float], "Known | Awaitable[Known | None] | None"]
"""Who a token is for: as `authn.tokens.Tokens.check`, for the text behind `Bearer `."""


def token_review(check: Check, implicit: Audiences) -> Callable[[RequestContext, Tree], Response | Awaitable[Response]]:
    """`implicit` are the audiences of a review that names none."""

    def review(ctx: RequestContext, tree: Tree) -> Response | Awaitable[Response]:
        spec = tree.get("spec") or {}
        token, asked = spec.get("token") or "", tuple(spec.get("audiences") or ()) or implicit
        if not token:
            raise errors.bad_request("token is required for TokenReview in authentication")
        try:
            found = check(token, asked or None, ctx.request.received)
        except APIError as error:
            return _answer(ctx, tree, _refused(error))
        if found is None or isinstance(found, Known):
            return _answer(ctx, tree, _status(found, asked))
        return _later(ctx, tree, found, asked)

    return review


async def _later(ctx: RequestContext, tree: Tree, pending: Awaitable[Known | None], asked: Audiences) -> Response:
    try:
        status = _status(await pending, asked)
    except APIError as error:
        status = _refused(error)
    return _answer(ctx, tree, status)


def _answer(ctx: RequestContext, tree: Tree, status: Tree) -> Response:
    tree["status"] = status
    tree.setdefault("metadata", {})
    return render.tree(ctx, tree, status=201)


def _refused(error: APIError) -> Tree:
    """What is wrong with the token. The reference asks for the loopback token first, which this never is."""
    if not isinstance(error, WrongCredential):
        raise error
    reasons = list(dict.fromkeys((INVALID, *error.reasons)))
    return {"user": {}, "error": reasons[0] if len(reasons) == 1 else f"[{', '.join(reasons)}]"}


def _status(known: Known | None, asked: Audiences) -> Tree:
    if known is None:
        return _refused(WrongCredential())
    if asked and not set(asked) & set(known.audiences):
        raise errors.internal("internal error")
    status: dict[str, Any] = {"authenticated": True, "user": user_info(known.user)}
    if known.audiences:
        status["audiences"] = list(known.audiences)
    return status


def user_info(user: User) -> Tree:
    """The user as reviews print it."""
    info: dict[str, Any] = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(user.extra[key]) for key in sorted(user.extra)}
    return info
