"""The environment of expressions that select devices."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from fastapi_core.cel.decls import BOOL_DECL, STRING_DECL, Decl, map_decl, object_decl
from fastapi_core.cel.environment import Environment
from fastapi_core.cel.functions import QUANTITY
from fastapi_core.cel.types import DYN

#: Most that an expression may be estimated to cost.
COST_LIMIT: Final = 1_000_000
#: Attributes and capacities of one device together.
_ENTRIES: Final = 32
_ATTRIBUTE: Final = Decl(DYN, max_elements=64)


@lru_cache(1)
def device_declaration() -> Decl:
    attributes = map_decl(map_decl(_ATTRIBUTE, _ENTRIES), _ENTRIES)
    capacity = map_decl(map_decl(Decl(QUANTITY), _ENTRIES), _ENTRIES)
    return object_decl(
        "kubernetes.DRADevice",
        {
            "driver": STRING_DECL,
            "attributes": attributes,
            "capacity": capacity,
            "allowMultipleAllocations": BOOL_DECL,
        },
    )


@lru_cache(1)
def device_environment() -> Environment:
    return Environment({"device": device_declaration()}, bindings=True)
