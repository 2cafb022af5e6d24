"""How a request ends that takes longer than it may."""

from __future__ import annotations

from typing import Final

from fastapi_core.errors import APIError

TOO_LONG: Final = "Timeout: request did not complete within the allotted timeout"


class Overtime(APIError):  # noqa: N818 - what happened to the request, not a failure of its endpoint
    """A request that was cut off at its deadline."""

    def __init__(self) -> None:
        super().__init__("Timeout", TOO_LONG, details={})
