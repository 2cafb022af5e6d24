"""Whatever a path looks like: the endpoint that answers it is the one the authorizers were asked about."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core._ext.reqinfo import ParseError, parse
from fastapi_core._ext.router import Router
from fastapi_core.apis.resources import builtin
from fastapi_core.request.routing import group_version_path, resource_routes

DEFINITIONS = builtin()
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def routes() -> list[tuple[str, dict[str, Any]]]:
    """All resource routes of the server; the endpoint of each is what it belongs to."""
    found = []
    for definition in DEFINITIONS:
        owner = (definition.group, definition.version, definition.plural)
        table: dict[str, Any] = {verb: (*owner, "", verb) for verb in definition.verbs}
        for name, sub in definition.subresources.items():
            table |= {f"{name}:{verb}": (*owner, name, verb) for verb in sub.verbs}
            table[f"{name}:connect"] = (*owner, name, "connect")
        for pattern, methods in resource_routes(definition, table):
            # A collection that cannot be watched comes wrapped.
            found.append(
                (pattern, {m: e if isinstance(e, tuple) else (*owner, "", "list") for m, e in methods.items()})
            )
    return found


ROUTES = routes()
ROUTER: Router[Any] = Router(ROUTES)
PATHS = [re.sub(r"\{/\}$", "", pattern) for pattern, _ in ROUTES]
SEGMENTS = (
    "kube-system",
    "default",
    "a",
    "secrets",
    "pods",
    "namespaces",
    "status",
    "watch",
    "proxy",
    "log",
    "x.y",
    "..",
    ".",
)
DISGUISES = (
    lambda text: text,
    lambda text: text.upper(),
    lambda text: f"%{ord(text[0]):02x}{text[1:]}" if text else text,
    lambda text: "".join(f"%{ord(mark):02X}" for mark in text),
    lambda text: f"{text}%2F",
    lambda text: f"%2f{text}",
    lambda text: f"{text}%00",
    lambda text: f"{text}%3Fx=1",
    lambda text: f"./{text}",
    lambda text: f"../{text}",
    lambda text: f"%2e%2e/{text}",
    lambda text: f"/{text}",
    lambda text: f"{text};a=b",
    lambda text: f"{text}%252F",
    lambda text: quote(f"x/{text}", safe=""),
)


@st.composite
def disguised(draw: st.DrawFn) -> str:
    """A real path with names filled in, and one or two of its segments made to look like something else."""
    pattern = draw(st.sampled_from(PATHS))
    filled = re.sub(r"\{[^}]*\}", lambda _: draw(st.sampled_from(SEGMENTS)), pattern)
    parts = filled.split("/")[1:]
    for _ in range(draw(st.integers(0, 2))):
        index = draw(st.integers(0, len(parts) - 1))
        parts[index] = draw(st.sampled_from(DISGUISES))(parts[index])
    return "/" + "/".join(parts) + draw(st.sampled_from(("", "", "/", "//", "%2F", "/.", "/..")))


@settings(max_examples=200, deadline=None)
@given(path=disguised(), method=st.sampled_from(METHODS))
def test_the_endpoint_is_the_one_that_was_authorized(path: str, method: str) -> None:
    match = ROUTER.lookup(path)
    if match is None or method not in match.methods:
        return
    group, version, plural, subresource, verb = match.methods[method]
    try:
        info = parse(method, path, "")
    except ParseError:
        return  # answered before anybody is asked
    assert info.is_resource_request, path
    assert (info.api_group, info.api_version, info.resource) == (group, version, plural), path
    assert info.subresource == subresource, path
    if verb in ("create", "update", "patch", "delete", "deletecollection"):
        assert info.verb == verb, path
    for name in ("name", "namespace"):
        if name in match.params and plural != "namespaces":
            assert getattr(info, name) == match.params[name], path


def test_every_plain_path_is_found() -> None:
    """The test above would pass with a router that knows nothing."""
    for definition in DEFINITIONS:
        root = group_version_path(definition.group, definition.version)
        path = f"{root}/namespaces/a/{definition.plural}" if definition.namespaced else f"{root}/{definition.plural}"
        match = ROUTER.lookup(path)
        assert match is not None, path
        assert parse("GET", path, "").resource == definition.plural
