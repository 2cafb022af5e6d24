"""Names in OpenAPI documents: of schemas, groups, operations and tags. One rule each, no tables."""

from __future__ import annotations

from functools import cache

from fastapi_core.schema.tables import info


@cache
def package(group_version: str) -> str:
    """Prefix of the schema names of a type table: `core/v1` -> `io.k8s.api.core.v1`.

    It is the protobuf package with the host turned round.
    """
    proto = info(group_version)[1].replace("_", "-")
    if proto.startswith("k8s.io."):
        return "io.k8s." + proto[len("k8s.io.") :]
    return proto


def schema_name(ref: str) -> str:
    """`core/v1.Pod` -> `io.k8s.api.core.v1.Pod`."""
    group_version, _, name = ref.rpartition(".")
    return f"{package(group_version)}.{name}"


def identifier(text: str, *, upper: bool) -> str:
    """Letters, digits and underscores of `text`; what follows anything else begins with a capital letter."""
    out = []
    capital = upper
    for place, char in enumerate(text):
        if char.isalpha() or char == "_" or (place and char.isdigit()):
            out.append(char.upper() if capital else char)
            capital = False
        else:
            capital = True
    return "".join(out)


def _short_group(group: str) -> str:
    return group.replace(".k8s.io", "", 1) if group else "core"


def tag(group: str, version: str = "") -> str:
    """`rbac.authorization.k8s.io`, `v1` -> `rbacAuthorization_v1`."""
    name = identifier(_short_group(group), upper=False)
    return f"{name}_{identifier(version, upper=False)}" if version else name


def scope_name(group: str, version: str = "") -> str:
    """The part of an operation id that tells the group: `RbacAuthorizationV1`."""
    return identifier(_short_group(group), upper=True) + identifier(version, upper=True)
