"""The root index and the version document."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from fastapi_core import __version__
from fastapi_core.discovery.accept import JSON, check_service
from fastapi_core.http.exchange import Response
from fastapi_core.request.routing import ANY, Route

if TYPE_CHECKING:
    from fastapi_core.discovery.documents import DiscoveryDocuments
    from fastapi_core.request.context import RequestContext


def _raw_json(tree: Any) -> Response:
    """These two are always indented JSON, whatever the client asks for."""
    return Response(200, [(b"content-type", JSON.encode())], orjson.dumps(tree, option=orjson.OPT_INDENT_2))


def _machine() -> str:
    names = {"x86_64": "amd64", "aarch64": "arm64"}
    machine = platform.machine()
    return f"{sys.platform}/{names.get(machine, machine)}"


@dataclass(frozen=True, slots=True)
class VersionInfo:
    """What `/version` says. Clients parse `git_version` as a semantic version and compare major and minor."""

    major: str = "1"
    minor: str = "36"
    git_version: str = f"v1.36.2+fastapi-core.{__version__}"
    git_commit: str = ""
    git_tree_state: str = ""
    build_date: str = ""
    runtime: str = field(default_factory=lambda: f"python{platform.python_version()}")
    compiler: str = field(default_factory=lambda: sys.implementation.name)
    platform: str = field(default_factory=_machine)

    def tree(self) -> dict[str, str]:
        """The document, in the reference's field order; the oldest version to be compatible with is the one before."""
        return {
            "major": self.major,
            "minor": self.minor,
            "emulationMajor": self.major,
            "emulationMinor": self.minor,
            "minCompatibilityMajor": self.major,
            "minCompatibilityMinor": str(int(self.minor) - 1),
            "gitVersion": self.git_version,
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


def discovery_paths(documents: DiscoveryDocuments) -> set[str]:
    """Paths of discovery documents that the root index lists."""
    paths = {"/apis", "/apis/"}
    for group, versions in documents.versions.items():
        root = f"/apis/{group}" if group else "/api"
        paths |= {root, *(f"{root}/{version}" for version in versions)}
    return paths


def index_routes(paths: Callable[[], Iterable[str]]) -> list[Route]:
    """`/` and `/index.html`: what `paths` returns at that time, sorted; of a pattern what is before its braces."""

    def endpoint(ctx: RequestContext) -> Response:
        return _raw_json({"paths": sorted({path.partition("{")[0] for path in paths()})})

    return [("/", {ANY: endpoint}), ("/index.html", {ANY: endpoint})]
