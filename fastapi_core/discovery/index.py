"""The root index and the version document."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING, Any

import orjson

from fastapi_core.codec.negotiate import JSON
from fastapi_core.discovery.accept import check_service
from fastapi_core.http.exchange import Response
from fastapi_core.records import dataclass
from fastapi_core.request.routing import ANY, Route

if TYPE_CHECKING:
    from fastapi_core.request.context import RequestContext


def _raw_json(tree: Any) -> Response:
    """These two are always indented JSON, whatever the client asks for."""
    return Response(200, [(b"Content-Type", JSON.encode())], orjson.dumps(tree, option=orjson.OPT_INDENT_2))


def _machine() -> str:
    names = {"x86_64": "amd64", "aarch64": "arm64"}
    machine = platform.machine()
    return f"{sys.platform}/{names.get(machine, machine)}"


@dataclass(frozen=True, slots=True)
class VersionInfo:
    """What `/version` says. Clients read `gitVersion` as a semantic version and compare major and minor."""

    major: str = "1"
    minor: str = "36"
    patch: str = "2"
    product_version: str = ""
    git_commit: str = ""
    git_tree_state: str = ""
    build_date: str = ""
    runtime: str = field(default_factory=lambda: f"python{platform.python_version()}")
    compiler: str = field(default_factory=lambda: sys.implementation.name)
    platform: str = field(default_factory=_machine)

    def tree(self) -> dict[str, str]:
        """The document, in the reference's field order; the oldest version to be compatible with is the one before."""
        build = f"fastapi-core.{self.product_version}" if self.product_version else "fastapi-core"
        return {
            "major": self.major,
            "minor": self.minor,
            "emulationMajor": self.major,
            "emulationMinor": self.minor,
            "minCompatibilityMajor": self.major,
            "minCompatibilityMinor": str(int(self.minor) - 1),
            "gitVersion": f"v{self.major}.{self.minor}.{self.patch}+{build}",
            "gitCommit": self.git_commit,
            "gitTreeState": self.git_tree_state,
            "buildDate": self.build_date,
            "goVersion": self.runtime,
            "compiler": self.compiler,
            "platform": self.platform,
        }


def version_routes(version: VersionInfo) -> list[Route]:
    """`/version`, a service."""
    tree = version.tree()

    def endpoint(ctx: RequestContext) -> Response:
        accept = ctx.request.header(b"accept")
        check_service(accept.decode("latin-1") if accept else "", (JSON,))
        return _raw_json(tree)

    return [("/version{/}", {"GET": endpoint})]


def listed_paths(routes: Iterable[Route]) -> list[str]:
    """What the root index tells of a server's routes, sorted.

    Of the API only the discovery documents are listed, of a family of paths (`{path...}`) the folder, and no path for
    its trailing slash alone: except `/apis/`, which the reference lists too.
    """
    found = set()
    for pattern, _ in routes:
        path = pattern.removesuffix("{/}")
        if path.endswith("...}"):
            path = path[: path.rindex("{")]
        elif path.endswith("/") and path != "/apis/":
            continue
        depth = path.count("/")
        resource = depth > 2 if path.startswith("/api/") else depth > 3 and path.startswith("/apis/")
        if "{" not in path and not resource:
            found.add(path)
    return sorted(found)


def index_routes(routes: Iterable[Route], product_version: str = "") -> list[Route]:
    """`/`, `/index.html` and `/version` for a server with these other routes.

    `product_version` goes into the build part of the version the clients see (`v1.36.2+NAME`).
    """
    version = VersionInfo(product_version=product_version)
    own = version_routes(version)
    every = [*routes, *own]
    tree = cache(lambda: {"paths": listed_paths(every)})

    def endpoint(ctx: RequestContext) -> Response:
        return _raw_json(tree())

    return [("/", {ANY: endpoint}), ("/index.html", {ANY: endpoint}), *own]
