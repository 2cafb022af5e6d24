"""What the expressions of a validating policy look like when the types of the objects it is about are known.

A policy is compiled without types, since it may be about anything; a member that none of its kinds has is found out
when a request fails. The warnings in its status tell before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from fastapi_core.admission.evaluation import STORED
from fastapi_core.cel import CompileError, Environment
from fastapi_core.cel.admission import NAMESPACE, REQUEST
from fastapi_core.cel.decls import Decl, Field, object_decl
from fastapi_core.cel.environment import variables_decl
from fastapi_core.cel.functions import AUTHORIZER
from fastapi_core.cel.program import check
from fastapi_core.cel.schemas import from_schema, from_type
from fastapi_core.cel.types import DYN, Type
from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.schema.tables import type_of

#: Kinds that one rule is checked against.
_MOST_KINDS: Final = 10

Lookup = Callable[[str, str, str], Sequence[ResourceDefinition]]
"""(group, version, plural) -> resources; an empty group stands for any."""
Declare = Callable[[ResourceDefinition], Decl | None]
"""The declaration of a kind, None when its schema is not known."""


class TypeChecker:
    """Checks policies against the kinds that are served."""

    def __init__(
        self, lookup: Lookup, find: Callable[[str, str, str], ResourceDefinition | None], declare: Declare
    ) -> None:
        """`find` finds the resource of (group, version, kind)."""
        self._lookup = lookup
        self._find = find
        self._declare = declare

    def warnings(self, spec: Tree) -> Iterator[Tree | None]:
        """The warnings as `status.typeChecking.expressionWarnings` has them, one expression at a time: None for one
        that is all right."""
        checks = list(self._checks(spec))
        for index, item in enumerate(spec.get("validations") or ()):
            for member in ("expression", "messageExpression"):
                text = item.get(member) or ""
                if not text:
                    continue
                found = "\n".join(filter(None, (check.problem(text) for check in checks)))
                yield {"fieldRef": f"spec.validations[{index}].{member}", "warning": found} if found else None

    def _checks(self, spec: Tree) -> Iterator[_Check]:
        kind = spec.get("paramKind")
        params: Type | Decl | None = None
        if kind is not None:
            group, _, version = (kind.get("apiVersion") or "").rpartition("/")
            definition = self._find(group, version, kind.get("kind") or "")
            params = (self._declare(definition) if definition is not None else None) or DYN
        for definition in self._kinds(spec):
            decl = self._declare(definition)
            if decl is not None:
                yield _Check(definition, decl, params, spec.get("variables") or ())

    def _kinds(self, spec: Tree) -> list[ResourceDefinition]:
        """What the rules name, sorted by kind; wildcards and subresources name nothing."""
        found: dict[tuple[str, str, str], ResourceDefinition] = {}
        for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
            groups, versions = rule.get("apiGroups") or (), rule.get("apiVersions") or ()
            if any("*" in name for name in (*groups, *versions)):
                continue
            plurals = sorted(name for name in rule.get("resources") or () if "*" not in name and "/" not in name)
            count = 0
            for group in sorted(groups):
                for version in sorted(versions):
                    for plural in plurals:
                        for definition in self._lookup(group, version, plural):
                            found[definition.group, definition.version, definition.kind] = definition
                            count += 1
                            if count == _MOST_KINDS:
                                return [found[key] for key in sorted(found)]
        return [found[key] for key in sorted(found)]


class _Check:
    """The expressions of one policy with one kind of object."""

    def __init__(
        self, definition: ResourceDefinition, decl: Decl, params: Type | Decl | None, variables: Sequence[Tree]
    ) -> None:
        self._shown = f"{definition.group}/{definition.version}, Kind={definition.kind}"
        known: dict[str, Type | Decl] = {
            "object": decl,
            "oldObject": decl,
            "namespaceObject": NAMESPACE,
            "request": REQUEST,
            "authorizer": AUTHORIZER,
        }
        if params is not None:
            known["params"] = params
        plain = Environment(known, version=STORED)
        self._environment = plain.extended({"variables": variables_decl({})})
        for item in variables:
            self._environment.put_variable(item["name"], _type(item["expression"], self._environment))

    def problem(self, text: str) -> str:
        """What is wrong with an expression, with a line break at the end; empty when nothing is."""
        try:
            check(text, self._environment)
        except CompileError as error:
            return f"{self._shown}: {error}\n"
        return ""


def _type(text: str, environment: Environment) -> Type:
    try:
        return check(text, environment).type or DYN
    except CompileError:
        return DYN


def declared(definition: ResourceDefinition) -> Decl:
    """The declaration of a built-in kind."""
    return from_type(definition.type)


def of_schema(schema: Tree | None, kind: str) -> Decl | None:
    """The declaration of a custom kind, which has the metadata of all objects; None when its schema says nothing."""
    decl = from_schema(schema, root=True) if schema else None
    if decl is None or decl.fields is None:
        return None
    metadata = Field("metadata", from_type(type_of("meta/v1.ObjectMeta")))
    return object_decl("object", {**decl.fields, "metadata": metadata}).named(kind)
