"""Which form of a discovery document an Accept header asks for.

Paths of a service are checked twice, as in the reference: by the bare media types first, then with their parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    media = negotiate.negotiate(accept, negotiate.NO_TRANSFORMS)
    if media is None:
        raise negotiate.refusal()
    return media


def check_service(accept: str, offered: tuple[str, ...] = ()) -> None:
    """406 of a service path whose types (by default those of resources) the header does not name."""
    if accept:
        negotiate.check_produced(accept, offered or negotiate.RESOURCE_TYPES)
