"""Environments of the configuration files of authentication and authorization."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from fastapi_core.cel.decls import STRING_DECL, Decl, list_decl, map_decl, object_decl
from fastapi_core.cel.environment import Environment
from fastapi_core.cel.types import ANY

#: Stored expressions may use everything that the current version knows.
_VERSION: Final = (1, 36)
_STRINGS: Final = list_decl(STRING_DECL, -1)
_EXTRA: Final = map_decl(_STRINGS, -1)


@lru_cache(1)
def claims_environment() -> Environment:
    """`claims` of a token; the results of mappings are only known when they run."""
    return Environment({"claims": map_decl(Decl(ANY), -1)}, version=_VERSION)


@lru_cache(1)
def user_environment() -> Environment:
    """`user` as the mappings made it: username, uid, groups, extra."""
    fields = {"username": STRING_DECL, "uid": STRING_DECL, "groups": _STRINGS, "extra": _EXTRA}
    return Environment({"user": object_decl("kubernetes.UserInfo", fields)}, version=_VERSION)


@lru_cache(1)
def review_environment() -> Environment:
    """`request`: the spec of a SubjectAccessReview, of match conditions of authorization webhooks."""
    requirement = object_decl(
        "kubernetes.SelectorRequirement", {"key": STRING_DECL, "operator": STRING_DECL, "values": _STRINGS}
    )
    selector = {"rawSelector": STRING_DECL, "requirements": list_decl(requirement, -1)}
    names = ("namespace", "verb", "group", "version", "resource", "subresource", "name")
    resource = object_decl(
        "kubernetes.ResourceAttributes",
        {
            **dict.fromkeys(names, STRING_DECL),
            "fieldSelector": object_decl("kubernetes.FieldSelectorAttributes", selector),
            "labelSelector": object_decl("kubernetes.LabelSelectorAttributes", selector),
        },
    )
    path = object_decl("kubernetes.NonResourceAttributes", {"path": STRING_DECL, "verb": STRING_DECL})
    request = object_decl(
        "kubernetes.SubjectAccessReviewSpec",
        {
            "resourceAttributes": resource,
            "nonResourceAttributes": path,
            "user": STRING_DECL,
            "groups": _STRINGS,
            "extra": _EXTRA,
            "uid": STRING_DECL,
        },
    )
    return Environment({"request": request}, version=_VERSION)
