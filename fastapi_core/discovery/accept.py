"""Which form of a discovery document an Accept header asks for.

Paths of a service are checked twice, as in the reference: by the bare media types first, then with their parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi_core import errors
from fastapi_core.later import later

if TYPE_CHECKING:
    from fastapi_core.codec import negotiate
    from fastapi_core.codec.negotiate import MediaType
else:
    negotiate = later("fastapi_core.codec.negotiate")

_AGGREGATED = "APIGroupDiscoveryList"


def choose(accept: str, *, nested: bool) -> MediaType:
    """The form asked for; 406 when there is none.

    `nested` says that the path has an aggregated document too, which is meant when the result has an `as_kind`. It wins
    wherever it stands in the header, as clauses without it are not looked at the first time.
    """
    if nested and _AGGREGATED in accept:
        asked = ",".join(clause for clause in accept.split(",") if _AGGREGATED in clause)
        media = negotiate.negotiate(asked, negotiate.DISCOVERY_TRANSFORMS)
        if media is not None and media.as_kind:
            return media
    # Only services insist on the full range, and they have been checked already.
    media = negotiate.negotiate(accept.replace("application/*", "*/*"), negotiate.NO_TRANSFORMS)
    if media is None:
        raise negotiate.refusal()
    return media


def check_service(accept: str, offered: tuple[str, ...] = ()) -> None:
    """406 of a service path: the media types of the header, without parameters, must name one on offer (by default those of resources) or
    `*/*`."""
    if not accept:
        return
    offered = offered or negotiate.RESOURCE_TYPES
    for text in accept.split(","):
        if text.partition(";")[0].strip() in ("*/*", *offered):
            return
    text = "406: Not Acceptable\n\nAvailable representations: " + ", ".join(offered)
    raise errors.APIError("NotAcceptable", text, details={})
