"""Which form an answer takes: the Accept header against what an endpoint offers. And which form a body has.

A clause (`codec.accept`) whose type is not offered, or whose parameters ask for a transformation the endpoint does not
know, is passed over. Custom resources have no protobuf form, only their metadata has; no Table has one.

Paths of built-in resources are services: before anything else their header must name, parameters aside, one of the types
the path is declared to produce, or be `*/*`. Other wildcards do not count there.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from fastapi_core.errors import APIError, not_acceptable
from fastapi_core.later import later

if TYPE_CHECKING:
    from fastapi_core.codec import accept as accepted
else:
    accepted = later("fastapi_core.codec.accept")

Format = Literal["json", "yaml", "protobuf"]

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"

#: What the reference lists in a 406 of most endpoints.
RESOURCE_TYPES: Final = (JSON, YAML, PROTOBUF)
#: What paths of collections are declared to produce.
LIST_TYPES: Final = (*RESOURCE_TYPES, JSON + ";stream=watch", PROTOBUF + ";stream=watch")
#: The same for a 415.
BODY_TYPES: Final = (JSON, YAML, PROTOBUF)

_FORMATS: Final[dict[tuple[str, str], Format]] = {
    ("application", "json"): "json",
    ("application", "yaml"): "yaml",
    ("application", "vnd.kubernetes.protobuf"): "protobuf",
}
_ALL: Final[tuple[Format, ...]] = ("json", "yaml", "protobuf")
_MEDIA: Final[dict[Format, str]] = {"json": JSON, "yaml": YAML, "protobuf": PROTOBUF}
_LONGEST_KEPT: Final = 512


class MediaType(NamedTuple):
    """The chosen form. `as_kind` in `as_group`/`as_version` is the transformation asked for, all empty for none;
    `stream` is `watch` when the clause said so; `profile` is passed through (`nopeer` of discovery)."""

    format: Format = "json"
    pretty: bool = False
    as_kind: str = ""
    as_group: str = ""
    as_version: str = ""
    stream: str = ""
    profile: str = ""

    @property
    def content_type(self) -> str:
        """The Content-Type of an answer in this form."""
        return _MEDIA[self.format]


#: A set of transformations: (group, version, kind) triples.
Transforms = frozenset[tuple[str, str, str]]

NO_TRANSFORMS: Final[Transforms] = frozenset()
#: Of every resource.
RESOURCE_TRANSFORMS: Final[Transforms] = frozenset(
    ("meta.k8s.io", version, kind)
    for version in ("v1", "v1beta1")
    for kind in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
)
#: Of resources that have no columns.
METADATA_TRANSFORMS: Final[Transforms] = frozenset(t for t in RESOURCE_TRANSFORMS if t[2] != "Table")
#: Of /api and /apis.
DISCOVERY_TRANSFORMS: Final[Transforms] = frozenset({("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList")})

_OF_RESOURCES: Final = (RESOURCE_TRANSFORMS, METADATA_TRANSFORMS)
_PLAIN: Final = MediaType()


def negotiate(accept: str, transforms: Transforms = RESOURCE_TRANSFORMS, *, custom: bool = False) -> MediaType | None:
    """The form an Accept header asks for, None when it accepts nothing on offer. Empty means JSON.

    `custom`: what is asked for is a custom resource.
    """
    if not accept or accept == JSON or accept == "*/*":
        return _PLAIN
    if len(accept) > _LONGEST_KEPT:
        return _choose(accept, transforms, custom)
    return _remembered(accept, transforms, custom)


def acceptable(
    accept: str,
    transforms: Transforms = RESOURCE_TRANSFORMS,
    listed: tuple[str, ...] = RESOURCE_TYPES,
    *,
    custom: bool = False,
    produced: tuple[str, ...] = (),
) -> MediaType:
    """`negotiate`, or the 406 that lists what there is. `produced`: what the path is declared to produce if it is a
    service's."""
    if produced:
        check_produced(accept, produced)
    chosen = negotiate(accept, transforms, custom=custom)
    if chosen is None:
        raise refusal(listed)
    return chosen


def refusal(listed: tuple[str, ...] = RESOURCE_TYPES) -> APIError:
    return not_acceptable(listed)


def check_produced(accept: str, produced: tuple[str, ...]) -> None:
    """406 unless the bare media types of the header name one of these or `*/*`."""
    if not accept or accept == JSON or accept == "*/*":
        return
    if not (_known_names if len(accept) <= _LONGEST_KEPT else _names)(accept, produced):
        text = "406: Not Acceptable\n\nAvailable representations: " + ", ".join(produced)
        raise APIError("NotAcceptable", text, details={})


def check_consumed(content_type: str, consumed: tuple[str, ...]) -> None:
    """415 unless a bare media type of the header is one that the path is declared to take."""
    if content_type not in consumed and not _takes(content_type[:_LONGEST_KEPT], consumed):
        raise APIError("UnsupportedMediaType", "415: Unsupported Media Type", details={})


@lru_cache(maxsize=256)
def _takes(content_type: str, consumed: tuple[str, ...]) -> bool:
    return any(text.partition(";")[0].strip(" ") in consumed for text in content_type.split(","))


def _names(accept: str, produced: tuple[str, ...]) -> bool:
    return any(text.partition(";")[0].strip(" ") in ("*/*", *produced) for text in accept.split(","))


_known_names = lru_cache(maxsize=1024)(_names)


def _choose(accept: str, transforms: Transforms, custom: bool) -> MediaType | None:
    for clause in accepted.clauses(accept):
        if clause.sub == "*" and clause.main in ("*", "application"):
            candidates = _ALL
        else:
            known = _FORMATS.get((clause.main, clause.sub))
            candidates = (known,) if known else ()
        for candidate in candidates:
            chosen = _accept(candidate, clause.params, transforms, custom)
            if chosen is not None:
                return chosen
    return None


@lru_cache(maxsize=1024)
def _remembered(accept: str, transforms: Transforms, custom: bool) -> MediaType | None:
    return _choose(accept, transforms, custom)


def _accept(
    form: Format, params: tuple[tuple[str, str], ...], transforms: Transforms, custom: bool
) -> MediaType | None:
    """The media type of one clause, None when a parameter asks for what is not there."""
    wanted = dict(params)
    target = (wanted.get("g", ""), wanted.get("v", ""), wanted.get("as", ""))
    if wanted.keys() & {"as", "g", "v"} and target not in transforms:
        return None
    if form == "protobuf" and (target[2] == "Table" or (custom and not target[2])):
        return None
    stream = wanted.get("stream", "")
    if stream and (stream != "watch" or form == "yaml"):
        return None
    if wanted.get("sv") and (transforms not in _OF_RESOURCES or wanted["sv"] != "v1"):  # version of meta.k8s.io
        return None
    return MediaType(
        format=form,
        pretty=form == "json" and wanted.get("pretty") == "1",
        as_kind=target[2],
        as_group=target[0],
        as_version=target[1],
        stream=stream,
        profile=wanted.get("profile", ""),
    )


def content_type(header: str) -> Format | None:
    """Form of a request body by its Content-Type: missing means JSON, None is a 415."""
    if not header or header == JSON:
        return "json"
    media, *params = header.split(";")
    media = media.strip().lower()
    if not media and not params:
        return "json"
    if any(param.strip() and "=" not in param for param in params):
        return None
    main, _, sub = media.partition("/")
    return _FORMATS.get((main, sub))
