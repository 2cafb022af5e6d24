"""Expressions in the schema of a definition: they compile, and never cost too much.

The compiler is loaded with the first rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fastapi_core.errors import FieldError
from fastapi_core.structural import goform
from fastapi_core.structural.structure import EMBEDDED, RULES, Tree

if TYPE_CHECKING:
    from fastapi_core.cel.decls import Decl
    from fastapi_core.cel.rules import Rule
    from fastapi_core.structural.definition import Options

#: Costs stop here.
TOP: Final = 2**64 - 1
_CONTRIBUTED: Final = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
_NO_TYPE: Final = (
    "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert "
    "structural schema to CEL declarations"
)
_NO_MEMBER_TYPE: Final = "failed to convert to declType for CEL validation rules"


class Costs:
    """What the rules of a definition's schema cost together, and the dearest of them."""

    def __init__(self) -> None:
        self._total = 0
        self._dear: list[tuple[int, str]] = []

    def context(self, schema: Tree) -> Context:
        """Where the walk through a schema begins."""
        return Context(self, schema, None, "", bool(schema.get(RULES)), 1)

    def add(self, path: str, cost: int) -> None:
        self._total = min(TOP, self._total + cost)
        from fastapi_core.cel.rules import SCHEMA_LIMIT

        if cost >= SCHEMA_LIMIT // 100:
            self._dear = sorted([*self._dear, (cost, path)], key=lambda entry: -entry[0])[:4]

    def total_errors(self, path: str) -> list[FieldError]:
        if not self._total:
            return []
        from fastapi_core.cel.rules import SCHEMA_LIMIT, over_limit

        if self._total <= SCHEMA_LIMIT:
            return []
        found = [FieldError("Forbidden", place, _CONTRIBUTED) for _, place in self._dear]
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        return [*found, FieldError("Forbidden", path, over_limit(what, self._total, SCHEMA_LIMIT))]


class _Unknown:
    """Types not asked for yet."""


_UNKNOWN: Final = _Unknown()


class Context:
    """One place in a schema: its declared type, known where rules are at or above it, and how often values can be there
    (None: no limit is known)."""

    def __init__(
        self, costs: Costs, schema: Tree, parent: Context | None, step: str, within: bool, often: int | None
    ) -> None:
        self._costs = costs
        self._schema = schema
        self._parent = parent
        self._step = step
        self._within = within
        self._often = often
        self._decl: Decl | _Unknown | None = _UNKNOWN

    def _child(self, schema: Tree, step: str) -> Context:
        most = _most(self._schema)
        often = None if self._often is None or most is None else min(TOP, self._often * most)
        return Context(self._costs, schema, self, step, self._within or bool(schema.get(RULES)), often)

    def member(self, name: str, schema: Tree) -> Context:
        return self._child(schema, "." + name)

    def items(self, schema: Tree) -> Context:
        return self._child(schema, "[]")

    def extra(self, schema: Tree) -> Context:
        return self._child(schema, "{}")

    def decl(self) -> Decl | None:
        """The declared type: the part of what was made for the schema around, if rules stand there."""
        if isinstance(self._decl, _Unknown):
            self._decl = self._make()
        return self._decl

    def _make(self) -> Decl | None:
        from fastapi_core.cel.names import escape
        from fastapi_core.cel.schemas import from_schema

        parent = self._parent
        if parent is not None and parent._within:
            around = parent.decl()
            if around is not None and self._step in ("[]", "{}"):
                return around.elem
            escaped = escape(self._step[1:]) if around is not None else None
            if around is not None and escaped is not None and around.fields is not None:
                field = around.fields.get(escaped)
                if field is not None:
                    return field.decl
        return from_schema(self._schema, root=parent is None or bool(self._schema.get(EMBEDDED)))

    def problems(self, path: str, options: Options, uncorrelated: str) -> list[FieldError]:
        """The errors of the rules at this place."""
        from fastapi_core.cel import rules

        decl = self.decl()
        if decl is None:
            text = _NO_TYPE if self._parent is None or not self._parent._within else _NO_MEMBER_TYPE
            return [FieldError("Internal error", f"{path}.{RULES}", text)]
        compiled = rules.compile_rules(self._schema, decl, stored=options.known)
        often = compiled.cardinality if self._often is None else self._often
        found: list[FieldError] = []
        for index, rule in enumerate(compiled.rules):
            checker = _Rule(rule, f"{path}.{RULES}[{index}]", self._costs, options.unchanged)
            found += checker.problems(often, uncorrelated)
        return found


def _most(schema: Tree) -> int | None:
    """How many values are in one value of a schema; None without a limit."""
    kind = schema.get("type")
    limit: Any = 1
    if kind == "object" and schema.get("additionalProperties") is not None:
        limit = schema.get("maxProperties")
    elif kind == "array":
        limit = schema.get("maxItems")
    return None if limit is None else max(0, limit)


class _Rule:
    def __init__(self, rule: Rule, path: str, costs: Costs, unchanged: bool) -> None:
        self._rule = rule
        self._path = path
        self._costs = costs
        self._unchanged = unchanged

    def problems(self, often: int, uncorrelated: str) -> list[FieldError]:
        from fastapi_core.cel.rules import times

        rule, source = self._rule, self._rule.source
        found = self._judge(times(rule.cost, often), "rule", "estimated rule cost")
        if rule.error:
            found.append(self._invalid("rule", goform.rule(source), rule.error))
        if rule.message_error:
            found.append(self._invalid("messageExpression", goform.rule(source), rule.message_error))
        elif rule.message is not None:
            found += self._judge(rule.message_cost, "messageExpression", "estimated messageExpression cost")
        if rule.uses_old_self:
            if uncorrelated:
                text = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
                found.append(self._invalid("rule", source["rule"], text))
        elif source.get("optionalOldSelf") is not None:
            text = "may not be set if oldSelf is not used in rule"
            found.append(self._invalid("optionalOldSelf", source["optionalOldSelf"], text))
        return found

    def _invalid(self, member: str, value: Any, detail: str) -> FieldError:
        return FieldError("Invalid value", f"{self._path}.{member}", detail, value)

    def _judge(self, cost: int, member: str, what: str) -> list[FieldError]:
        """A cost counts towards the total, and must not be too high alone unless the rule is an old one."""
        from fastapi_core.cel.rules import EXPRESSION_LIMIT, over_limit

        self._costs.add(f"{self._path}.{member}", cost)
        if self._unchanged or cost <= EXPRESSION_LIMIT:
            return []
        return [FieldError("Forbidden", f"{self._path}.{member}", over_limit(what, cost, EXPRESSION_LIMIT))]
