"""The libraries, in the order in which the reference adds them."""

from __future__ import annotations

from typing import Final

from fastapi_core.cel.functions import Library
from fastapi_core.cel.library.authorizer import AUTHORIZER, SELECTORS
from fastapi_core.cel.library.formats import NAMED_FORMATS
from fastapi_core.cel.library.lists import EXTENDED_LISTS, LISTS, MAP_INSERT, SETS
from fastapi_core.cel.library.network import NETWORKS
from fastapi_core.cel.library.quantities import QUANTITIES, SEMVER
from fastapi_core.cel.library.standard import OPTIONALS, STANDARD
from fastapi_core.cel.library.strings import JSON_PATCH, PATTERNS, STRINGS, STRINGS_2
from fastapi_core.cel.library.urls import URLS

#: Only for expressions of mutating policies.
PATCHES: Final = JSON_PATCH
LIBRARIES: Final[tuple[Library, ...]] = (
    STANDARD,
    URLS,
    PATTERNS,
    LISTS,
    AUTHORIZER,
    OPTIONALS,
    QUANTITIES,
    STRINGS,
    STRINGS_2,
    SETS,
    NETWORKS,
    NAMED_FORMATS,
    SELECTORS,
    MAP_INSERT,
    SEMVER,
    EXTENDED_LISTS,
)
