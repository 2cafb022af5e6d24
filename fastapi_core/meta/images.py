"""References to container images: `[domain/]path[:tag][@digest]`, as registries and container runtimes read them."""

from __future__ import annotations

import re
from typing import Final

from fastapi_core.meta.patterns import Pattern

LATEST: Final = "latest"
_PATH_LIMIT: Final = 255
_DOCKER: Final = "docker.io"
_DOMAIN_PART: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_PATH_PART: Final = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_image = Pattern(
    rf"(?:(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?/)"
    rf"(?P<path>{_PATH_PART}(?:/{_PATH_PART})*)(?::(?P<tag>\w[\w.-]{{0,127}}))?(?:@(?P<digest>[^@]+))?",
    re.ASCII,
)
_identifier = Pattern(r"[a-f0-9]{64}", re.ASCII)
_digests = Pattern(r"sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}", re.ASCII)


def tag(reference: str) -> str:
    """The tag of an image: `latest` when neither tag nor digest is given, empty for a mere digest and for a text that is
    no reference."""
    if _identifier.fullmatch(reference):
        return ""
    first, slash, rest = reference.partition("/")
    domain = bool(slash) and (first == "localhost" or "." in first or ":" in first or first != first.lower())
    if not domain:
        rest = reference
    elif first == f"index.{_DOCKER}":
        first = _DOCKER
    path = rest.partition(":")[0]
    if path != path.lower():
        return ""
    if not domain or first == _DOCKER:
        rest = f"{_DOCKER}/{rest}" if "/" in rest else f"{_DOCKER}/library/{rest}"
    else:
        rest = f"{first}/{rest}"
    found = _image.fullmatch(rest)
    if found is None or len(found["path"]) > _PATH_LIMIT:
        return ""
    if found["digest"]:
        return (found["tag"] or "") if _digests.fullmatch(found["digest"]) else ""
    return found["tag"] or LATEST
