"""/statusz and /flagz: what this process is and how it was started, for people (text) and for tools (structured).

Formats follow the reference's `zpages`: text/plain unless the client asks for `application/json` or `application/yaml`
with `g=config.k8s.io;v=v1beta1;as=Statusz` (or `Flagz`; v1alpha1 is the older form).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from fastapi_core.errors import not_acceptable
from fastapi_core.http.exchange import Answer, Response
from fastapi_core.obs.process import STARTED
from fastapi_core.request.routing import ANY, Route

if TYPE_CHECKING:
    from fastapi_core.request.context import RequestContext

COMPONENT = "kube-apiserver"
_WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for "
    "debugging purposes only."
)
_GROUP = "config.k8s.io"
_VERSIONS = ("v1beta1", "v1alpha1")
_FORMATS = {"application/json": "json", "application/yaml": "yaml"}

Tree = dict[str, Any]


def routes(paths: Callable[[], Iterable[str]], flags: Callable[[], Mapping[str, str]], version: Mapping[str, str], *,
           status: bool = True, flag_page: bool = True) -> list[Route]:  # fmt: skip
    """The two pages. `paths` are what the root index lists, `flags` their values as texts, `version` is /version's."""
    found: list[Route] = []
    if status:
        shown = cache(lambda: aggregated(paths()))
        found.append(("/statusz", {ANY: _page("Statusz", lambda: _status(shown(), version))}))
    if flag_page:
        values = cache(lambda: dict(sorted(flags().items())))
        found.append(("/flagz", {ANY: _page("Flagz", lambda: {"flags": values()})}))
    return found


def aggregated(paths: Iterable[str]) -> list[str]:
    """The first segments of paths, each once, sorted."""
    return sorted({"/" + path.split("/")[1] for path in paths if path.startswith("/")})


def _status(paths: list[str], version: Mapping[str, str]) -> Tree:
    emulated = f"{version.get('emulationMajor', '')}.{version.get('emulationMinor', '')}"
    return {
        "startTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(STARTED)),
        "uptimeSeconds": int(time.time() - STARTED),
        "goVersion": version.get("goVersion", ""),
        "binaryVersion": version.get("gitVersion", "").removeprefix("v"),
        "emulationVersion": emulated,
        "paths": paths,
    }


def _page(kind: str, content: Callable[[], Tree]) -> Callable[[RequestContext], Answer]:
    def endpoint(ctx: RequestContext) -> Answer:
        form, api_version = chosen(ctx.request.header(b"accept") or b"", kind)
        tree = content()
        if form == "text":
            body = _status_text(tree) if kind == "Statusz" else _flags_text(tree)
            return Response(200, [(b"Content-Type", b"text/plain; charset=utf-8")], body.encode())
        document = {"kind": kind, "apiVersion": f"{_GROUP}/{api_version}", "metadata": {"name": COMPONENT}, **tree}
        media = f"application/{form};g={_GROUP};v={api_version};as={kind}".encode()
        return Response(200, [(b"Content-Type", media)], _encode(document, form))

    return endpoint


def chosen(accept: bytes, kind: str) -> tuple[str, str]:
    """text, json or yaml, and the version of the structured form; 406 (APIError) when nothing fits."""
    text = accept.decode("latin-1").strip()
    if not text:
        return "text", ""
    for entry in text.split(","):
        media, *parts = (part.strip() for part in entry.split(";"))
        parameters = dict(part.split("=", 1) for part in parts if "=" in part)
        parameters.pop("q", None)
        if media.lower() in ("text/plain", "text/*", "*/*"):
            if not parameters or {k: v.lower() for k, v in parameters.items()} == {"charset": "utf-8"}:
                return "text", ""
        elif media.lower() in _FORMATS and parameters.get("g") == _GROUP and parameters.get("as") == kind:
            version = parameters.get("v", "")
            if version in _VERSIONS:
                return _FORMATS[media.lower()], version
    raise not_acceptable(("text/plain", *(f"{m};v={_VERSIONS[0]};g={_GROUP};as={kind}" for m in _FORMATS)))


def _encode(tree: Tree, form: str) -> bytes:
    if form == "yaml":
        from fastapi_core.codec import yaml

        return yaml.dump(tree)
    from fastapi_core.codec import json

    return json.encode(tree) + b"\n"


def _status_text(tree: Tree) -> str:
    up = tree["uptimeSeconds"]
    lines = [
        f"\n{COMPONENT} statusz",
        _WARNING,
        "",
        f"Started: {time.strftime('%a %b %e %H:%M:%S UTC %Y', time.gmtime(STARTED))}",
        f"Up: {up // 3600} hr {up // 60 % 60:02d} min {up % 60:02d} sec",
        f"Go version: {tree['goVersion']}",
        f"Binary version: {tree['binaryVersion']}",
        f"Emulation version: {tree['emulationVersion']}",
        f"Paths: {' '.join(tree['paths'])}",
    ]
    return "\n".join(lines) + "\n"


def _flags_text(tree: Tree) -> str:
    lines = [f"\n{COMPONENT} flagz", _WARNING, "", *(f"{name}={value}" for name, value in tree["flags"].items())]
    return "\n".join(lines) + "\n"
