"""Expressions in schemas (`x-kubernetes-validations`): compiled when an object first needs them, run under one budget.

Imported with the first schema that has any; it brings the compiler of expressions with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fastapi_core.cel import rules
from fastapi_core.cel.costs import RUNTIME_BUDGET
from fastapi_core.cel.decls import Decl
from fastapi_core.cel.errors import NO_OVERLOAD, CostError, EvalError
from fastapi_core.cel.names import escape
from fastapi_core.cel.program import Budget
from fastapi_core.cel.schemas import from_schema
from fastapi_core.cel.values import NONE, Optional
from fastapi_core.errors import OMITTED, FieldError, go_quote
from fastapi_core.structural import fieldpath
from fastapi_core.structural.coercion import join
from fastapi_core.structural.correlation import Correlated, by_key, find
from fastapi_core.structural.nodes import Json, Node

_EXHAUSTED: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
_MESSAGE_EXHAUSTED: Final = (
    "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
)
_NO_OVERLOAD: Final = "call arguments did not match a supported operator, function or macro signature for rule"
_MESSAGE_LIMIT: Final = 5 * 1024
_REASONS: Final = {
    "FieldValueForbidden": "Forbidden",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
}
NO_TYPE: Final = "failed to convert to declType for CEL validation rules"

Warn = Callable[[str], None]


class Rule:
    """One compiled rule; `error` instead of a program when it does not compile."""

    __slots__ = ("error", "message", "old", "optional", "path", "program", "source")

    def __init__(self, rule: rules.Rule, schema: Mapping[str, Any]) -> None:
        self.source = rule.source
        self.optional = bool(self.source.get("optionalOldSelf"))
        self.program = rule.program
        self.message = rule.message
        self.error = rule.error
        self.old = rule.uses_old_self
        place = self.source.get("fieldPath") or ""
        found = fieldpath.resolve(place, schema) if place else None
        self.path = found.path if found is not None else ""

    @property
    def title(self) -> str:
        """What errors call the rule: its message, or its text."""
        return ((self.source.get("message") or "").strip()) or self.source["rule"].strip()

    @property
    def text(self) -> str:
        """What is wrong when the rule fails."""
        message = self.source.get("message") or ""
        return message.strip() if message else f"failed rule: {self.title}"


class Rules:
    """The rules of a node and of those below it, along the structure of the schema."""

    __slots__ = ("_compiled", "_decl", "_extra", "_items", "_members", "_root", "_schema", "node")

    def __init__(self, schema: Mapping[str, Any], node: Node, decl: Decl | None, root: bool) -> None:
        self._schema = schema
        self._decl = decl
        self._root = root
        self.node = node
        self._compiled: list[Rule] | None = None
        self._members: dict[str, Rules] | None = None
        self._items: Rules | None = None
        self._extra: Rules | None = None

    @classmethod
    def of_root(cls, schema: Mapping[str, Any], node: Node, *, root: bool = True) -> Rules:
        """Those of a whole schema; `root`: of an object with metadata."""
        return cls(schema, node, from_schema(schema, root=root), root)

    @property
    def kind(self) -> str:
        kind = self._schema.get("type")
        return kind if isinstance(kind, str) else ""

    def compiled(self) -> list[Rule]:
        """The rules of the node itself."""
        if self._compiled is None:
            compiled: list[Rule] = []
            if self.node.rules and self._decl is not None:
                made = rules.compile_rules(self._schema, self._decl, rules.NEWEST).rules
                compiled = [Rule(rule, self._schema) for rule in made if rule.program is not None or rule.error]
            # Whole or not at all: objects are checked beside the loop, too.
            self._compiled = compiled
        return self._compiled

    @property
    def broken(self) -> str:
        """Why none of the rules can be compiled."""
        return NO_TYPE if self.node.rules and self._decl is None else ""

    def members(self) -> dict[str, Rules]:
        """Named members with rules at or below them."""
        if self._members is None:
            members: dict[str, Rules] = {}
            for name, member in self.node.properties.items():
                if member.has_rules:
                    made = self._member(name, member)
                    if made is not None:
                        members[name] = made
            self._members = members
        return self._members

    def _member(self, name: str, member: Node) -> Rules | None:
        schema = self._schema["properties"][name]
        escaped = escape(name)
        if escaped is None:
            decl = from_schema(schema, root=member.embedded)
        else:
            fields = None if self._decl is None else self._decl.fields
            field = None if fields is None else fields.get(escaped)
            decl = None if field is None else field.decl
        return None if decl is None else Rules(schema, member, decl, member.embedded)

    def items(self) -> Rules | None:
        item = self.node.items
        if self._items is None and item is not None and item.has_rules:
            self._items = Rules(self._schema["items"], item, self._element(), item.embedded)
        return self._items

    def extra(self) -> Rules | None:
        extra = self.node.extra
        if self._extra is None and extra is not None and extra.has_rules:
            self._extra = Rules(self._schema["additionalProperties"], extra, self._element(), extra.embedded)
        return self._extra

    def _element(self) -> Decl | None:
        return None if self._decl is None else self._decl.elem


class _Stop(Exception):  # noqa: N818 - a way out of the walk
    """The budget is used up."""


class _Forgiving:
    """What a value comes from: its own old value, or the nearest value around it that has one."""

    __slots__ = ("around", "own")

    def __init__(self, own: Correlated | None, around: Correlated | None) -> None:
        self.own = own
        self.around = around

    def forgives(self) -> bool:
        nearest = self.own if self.own is not None else self.around
        return nearest is not None and nearest.equal()

    def member(self, name: str) -> _Forgiving:
        if self.own is None:
            return self
        if self.around is None and name in ("apiVersion", "kind"):
            return _Forgiving(None, None)
        return _Forgiving(self.own.member(name), self.own)

    def item(self, index: int) -> _Forgiving:
        return self if self.own is None else _Forgiving(self.own.item(index), self.own)


def evaluate(
    found: Rules,
    value: Any,
    old: Any,
    correlated: Correlated | None,
    warn: Warn | None = None,
    *,
    path: str = "",
    budget: Budget | None = None,
) -> list[FieldError]:
    """Run all rules of a value; `budget` when others have run before (it is below zero when it did not suffice)."""
    run = _Run(budget or Budget(RUNTIME_BUDGET), warn)
    try:
        run.value(found, value, old, path, _Forgiving(correlated, None))
    except _Stop:
        run.budget.remaining = -1
    return run.errors


class _Run:
    def __init__(self, budget: Budget, warn: Warn | None) -> None:
        self.errors: list[FieldError] = []
        self.budget = budget
        self._warn = warn

    def value(self, here: Rules, value: Any, old: Any, path: str, origin: _Forgiving) -> None:
        if value is None:
            return
        if here.broken:
            text = f"rule compiler initialization error: {here.broken}"
            self.errors.append(FieldError("Invalid value", path or "<nil>", text, here.kind))
        else:
            self._own(here, value, old, path, origin)
        if type(value) is dict:
            self._object(here, value, old if type(old) is dict else {}, path, origin)
        elif type(value) is list:
            self._list(here, value, old, path, origin)

    def _object(self, here: Rules, tree: Json, old: Json, path: str, origin: _Forgiving) -> None:
        extra = here.extra()
        if extra is not None:
            for name in sorted(tree):
                self.value(extra, tree[name], old.get(name), join(path, f"[{name}]"), origin.member(name))
        for name, member in here.members().items():
            if name in tree:
                self.value(member, tree[name], old.get(name), join(path, f".{name}"), origin.member(name))

    def _list(self, here: Rules, items: list[Any], old: Any, path: str, origin: _Forgiving) -> None:
        inner = here.items()
        if inner is not None:
            before = by_key(old, here.node)
            for index, item in enumerate(items):
                place = f"{path}[{index}]"
                self.value(inner, item, find(before, item, here.node), place, origin.item(index))

    def _own(self, here: Rules, value: Any, old: Any, path: str, origin: _Forgiving) -> None:
        compiled = here.compiled()
        if not compiled:
            return
        if self.budget.remaining <= 0:
            self._invalid(here, path, _EXHAUSTED)
            raise _Stop
        for rule in compiled:
            if rule.error:
                self._invalid(here, path, f"rule compile error: {rule.error}")
                continue
            if rule.old and old is None and not rule.optional:
                continue
            activation = {"self": value, "oldSelf": old}
            if rule.optional:
                activation["oldSelf"] = NONE if old is None else Optional(old)
            if not self._holds(here, rule, activation, path):
                self._failed(here, rule, activation, path, origin)

    def _invalid(self, here: Rules, path: str, text: str) -> None:
        self.errors.append(FieldError("Invalid value", path or "<nil>", text, here.kind))

    def _holds(self, here: Rules, rule: Rule, activation: Json, path: str) -> bool:
        """Whether a rule is met. One that cannot be evaluated is an error of its own, and counts as met."""
        assert rule.program is not None
        problem: Exception | None = None
        result = True
        try:
            result = rule.program.evaluate(activation, self.budget) is True
        except (EvalError, CostError) as error:
            problem = error
        if self.budget.exhausted:
            self._invalid(here, path, _EXHAUSTED)
            raise _Stop
        if problem is None:
            return result
        if isinstance(problem, CostError):
            text = "no further validation rules will be run due to call cost exceeds limit for rule"
            self._invalid(here, path, f"'{problem}': {text}: {rule.title}")
            raise _Stop
        if str(problem).startswith(NO_OVERLOAD):
            self._invalid(here, path, f"'{problem}': {_NO_OVERLOAD}: {rule.title}")
        else:
            self._invalid(here, path, f"{problem} evaluating rule: {rule.title}")
        return True

    def _failed(self, here: Rules, rule: Rule, activation: Json, path: str, origin: _Forgiving) -> None:
        place = join(path, f".{rule.path}") if rule.path else path
        place = place or "<nil>"
        stop = ""
        detail = None
        if rule.message is not None:
            try:
                detail = self._message(rule, activation)
            except _OverBudget as over:
                stop = str(over)
        if stop:
            error = FieldError("Invalid value", place, stop, here.kind)
        else:
            value = OMITTED if here.kind in ("object", "array") else activation["self"]
            type_ = _REASONS.get(rule.source.get("reason") or "", "Invalid value")
            text = rule.text if detail is None else detail
            error = FieldError(type_, place, "" if type_ == "Duplicate value" else text, value)
        if not rule.old and origin.forgives():
            if self._warn is not None:
                self._warn(str(error))
        else:
            self.errors.append(error)
        if stop:
            raise _Stop

    def _message(self, rule: Rule, activation: Json) -> str | None:
        """What the message expression says; None when it says nothing of use."""
        assert rule.message is not None
        found: Any = None
        try:
            found = rule.message.evaluate(activation, self.budget)
        except CostError:
            if not self.budget.exhausted:
                quoted = go_quote(rule.source["messageExpression"])
                text = "no further validation rules will be run due to call cost exceeds limit for messageExpression"
                raise _OverBudget(f"{text}: {quoted}") from None
        except EvalError:
            pass
        if self.budget.exhausted:
            raise _OverBudget(_MESSAGE_EXHAUSTED)
        if type(found) is not str:
            return None
        text = found.strip()
        return text if text and "\n" not in text and len(text.encode()) <= _MESSAGE_LIMIT else None


class _OverBudget(Exception):  # noqa: N818 - told as the failed rule's own error
    """A message that cost too much."""
