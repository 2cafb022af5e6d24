"""Environments of admission: policies, their parts, and the match conditions of policies and webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from fastapi_core.cel import times
from fastapi_core.cel.decls import (
    BOOL_DECL,
    DYN_DECL,
    INT_DECL,
    STRING_DECL,
    Decl,
    list_decl,
    map_decl,
    object_decl,
)
from fastapi_core.cel.environment import VERSION, Environment, variables_decl
from fastapi_core.cel.functions import AUTHORIZER, RESOURCE_CHECK
from fastapi_core.cel.types import DYN, TIMESTAMP, Type, list_of, struct

#: Results that mutations must have. An empty list alone, which is one of anything, is no patch.
APPLY_CONFIGURATION: Final = struct("Object")
JSON_PATCH: Final = list_of(struct("JSONPatch"))

_TIME: Final = Decl(TIMESTAMP, min_size=12, convert=times.from_date_time)
_STRINGS: Final = list_decl(STRING_DECL, -1)


def _kind(name: str, last: str) -> Decl:
    return object_decl(name, {"group": STRING_DECL, "version": STRING_DECL, last: STRING_DECL})


def _request() -> Decl:
    kind = _kind("kubernetes.GroupVersionKind", "kind")
    resource = _kind("kubernetes.GroupVersionResource", "resource")
    user = object_decl(
        "kubernetes.UserInfo",
        {"username": STRING_DECL, "uid": STRING_DECL, "groups": _STRINGS, "extra": map_decl(_STRINGS, -1)},
    )
    return object_decl(
        "kubernetes.AdmissionRequest",
        {
            "kind": kind,
            "resource": resource,
            "subResource": STRING_DECL,
            "requestKind": kind,
            "requestResource": resource,
            "requestSubResource": STRING_DECL,
            "name": STRING_DECL,
            "namespace": STRING_DECL,
            "operation": STRING_DECL,
            "userInfo": user,
            "dryRun": BOOL_DECL,
            "options": DYN_DECL,
        },
    )


def _namespace() -> Decl:
    labels = map_decl(STRING_DECL, -1)
    metadata = object_decl(
        "kubernetes.NamespaceMetadata",
        {
            **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), STRING_DECL),
            "labels": labels,
            "annotations": labels,
            "creationTimestamp": _TIME,
            "deletionGracePeriodSeconds": INT_DECL,
            "deletionTimestamp": _TIME,
            "generation": INT_DECL,
            "finalizers": _STRINGS,
        },
    )
    condition = object_decl(
        "kubernetes.NamespaceCondition",
        {
            "lastTransitionTime": _TIME,
            **dict.fromkeys(("status", "type", "message", "reason"), STRING_DECL),
        },
    )
    status = object_decl("kubernetes.NamespaceStatus", {"conditions": list_decl(condition, -1), "phase": STRING_DECL})
    spec = object_decl("kubernetes.NamespaceSpec", {"finalizers": _STRINGS})
    return object_decl("kubernetes.Namespace", {"metadata": metadata, "spec": spec, "status": status})


REQUEST: Final = _request()
NAMESPACE: Final = _namespace()


@lru_cache(32)
def base_environment(
    *, params: bool, authorizer: bool, patches: bool = False, version: tuple[int, int] = VERSION
) -> Environment:
    """The variables of an expression without `variables`.

    `params`: the policy has a kind of parameters. `authorizer`: everything but messages may ask. `patches`: mutations.
    """
    variables: dict[str, Type | Decl] = {
        "object": DYN,
        "oldObject": DYN,
        "namespaceObject": NAMESPACE,
        "request": REQUEST,
    }
    if params:
        variables["params"] = DYN
    if authorizer:
        variables["authorizer"] = AUTHORIZER
        variables["authorizer.requestResource"] = RESOURCE_CHECK
    return Environment(variables, patches=patches, version=version)


def policy_environment(
    variables: Mapping[str, Type],
    *,
    params: bool,
    authorizer: bool = True,
    patches: bool = False,
    version: tuple[int, int] = VERSION,
) -> Environment:
    """The environment of an expression of a policy whose variables have these types (dyn for one that is refused)."""
    base = base_environment(params=params, authorizer=authorizer, patches=patches, version=version)
    return base.extended({"variables": variables_decl(variables)})
