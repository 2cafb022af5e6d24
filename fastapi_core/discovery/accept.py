"""Which form of a discovery document an Accept header asks for.

Discovery negotiates by rules of its own: only here is `as=APIGroupDiscoveryList` known, every other transformation
makes a clause unacceptable, and paths of a service are checked twice, by media type alone and then with parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from fastapi_core import errors

JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
#: What the reference offers and its messages name; protobuf is acceptable here only in name.
NAMED = (JSON, YAML, PROTOBUF)
_OFFERED = (JSON, YAML)
_AGGREGATED = ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList")


@dataclass(frozen=True, slots=True)
class Form:
    """`media` is the content type without parameters; `aggregated` the nested document."""

    media: str = JSON
    pretty: bool = False
    aggregated: bool = False


@dataclass(frozen=True, slots=True)
class _Clause:
    type: str
    subtype: str
    quality: float
    params: dict[str, str]

    def accepts(self, media: str) -> bool:
        kind, _, sub = media.partition("/")
        return (self.type, self.subtype) in ((kind, sub), (kind, "*"), ("*", "*"))

    @property
    def transformation(self) -> tuple[str, str, str] | None:
        if self.params.keys().isdisjoint(("g", "v", "as")):
            return None
        return self.params.get("g", ""), self.params.get("v", ""), self.params.get("as", "")

    @property
    def servable(self) -> bool:
        """No server version and no stream but a watch; the latter is accepted and makes no difference."""
        return not self.params.get("sv") and self.params.get("stream", "") in ("", "watch")


#: Longer headers are not remembered, so that clients cannot fill the memory with them.
_REMEMBERED = 300


def choose(accept: str, *, nested: bool) -> Form | None:
    """The form asked for, None when there is none; `nested` says that the path has an aggregated document."""
    return _remembered(accept, nested) if len(accept) <= _REMEMBERED else _choose(accept, nested)


def _choose(accept: str, nested: bool) -> Form | None:
    clauses = _clauses(accept)
    if nested:
        # The aggregated document wins wherever it stands, as clauses without it are not looked at the first time.
        form = _first(clauses, _AGGREGATED)
        if form is not None:
            return form
    return Form() if not accept else _first(clauses, None)


_remembered = lru_cache(maxsize=256)(_choose)


def _first(clauses: list[_Clause], wanted: tuple[str, str, str] | None) -> Form | None:
    for clause in clauses:
        if clause.transformation != wanted or not clause.servable:
            continue
        for media in _OFFERED:
            if clause.accepts(media):
                return Form(media, clause.params.get("pretty") == "1", wanted is not None)
    return None


def _clauses(accept: str) -> list[_Clause]:
    """Clauses by weight, then the more specific first; a malformed media range is skipped."""
    found = []
    for text in accept.split(","):
        media, *rest = (piece.strip() for piece in text.split(";"))
        kind, slash, sub = (piece.strip() for piece in media.partition("/"))
        if not slash:
            if kind != "*":
                continue
            sub = "*"
        elif "/" in sub:
            continue
        quality = 1.0
        params = {}
        for piece in rest:
            name, equals, value = (part.strip() for part in piece.partition("="))
            if not equals:
                continue
            if name == "q":
                quality = _weight(value)
            else:
                params[name] = value
        found.append(_Clause(kind, sub, quality, params))
    return sorted(found, key=lambda c: (-c.quality, c.type == "*", c.subtype == "*"))


def _weight(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if value == value else 0.0


def check_service(accept: str, offered: tuple[str, ...] = NAMED) -> None:
    """406 of a service path: the media types of the header, without parameters, must name one on offer or `*/*`."""
    if not accept:
        return
    for text in accept.split(","):
        if text.partition(";")[0].strip() in ("*/*", *offered):
            return
    text = "406: Not Acceptable\n\nAvailable representations: " + ", ".join(offered)
    raise errors.APIError("NotAcceptable", text, details={})
