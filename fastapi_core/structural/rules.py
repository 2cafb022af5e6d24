"""Expressions in schemas (`x-kubernetes-validations`): compiled when an object first needs them, run under one budget.

Imported with the first schema that has any; it brings the compiler of expressions with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fastapi_core.cel.costs import RUNTIME_BUDGET
from fastapi_core.cel.decls import Decl
from fastapi_core.cel.environment import Environment
from fastapi_core.cel.errors import NO_OVERLOAD, CompileError, CostError, EvalError, OutputTypeError
from fastapi_core.cel.names import escape
from fastapi_core.cel.program import Budget, Program, compile_expression
from fastapi_core.cel.schemas import from_schema
from fastapi_core.cel.types import BOOL, STRING, Type, optional_of
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
_SELF_NAME: Final = "selfType"
_REASONS: Final = {
    "FieldValueForbidden": "Forbidden",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
}
#: Expressions that are stored already may use what the newest version knows.
STORED_VERSION: Final = (1, 999)
NO_TYPE: Final = "failed to convert to declType for CEL validation rules"

Warn = Callable[[str], None]


class Refused(Exception):  # noqa: N818 - an outcome, reported where the rule stands
    """An expression that does not compile, or not to the type wanted."""


class Compiler:
    """Compiles the rules of one node, whose declared type is `decl`."""

    def __init__(self, decl: Decl, version: tuple[int, int] | None = None) -> None:
        self._decl = decl.named(_SELF_NAME)
        self._version = version
        self._made: dict[tuple[bool, tuple[int, int] | None], Environment] = {}

    def environment(self, optional: bool, version: tuple[int, int] | None) -> Environment:
        key = (optional, version)
        if key not in self._made:
            decl = self._decl
            variables: Mapping[str, Type | Decl] = {
                "self": decl,
                "oldSelf": optional_of(decl.type) if optional else decl,
            }
            self._made[key] = Environment(variables) if version is None else Environment(variables, version=version)
        return self._made[key]

    def rule(self, rule: Json, version: tuple[int, int] | None = None) -> Program:
        return self._compile(rule["rule"], rule, BOOL, "cel expression must evaluate to a bool", "", version)

    def message(self, rule: Json, version: tuple[int, int] | None = None) -> Program:
        refusal = "messageExpression must evaluate to a string"
        return self._compile(rule["messageExpression"], rule, STRING, refusal, "messageExpression ", version)

    def _compile(
        self, text: str, rule: Json, wanted: Type, refusal: str, prefix: str, version: tuple[int, int] | None
    ) -> Program:
        environment = self.environment(bool(rule.get("optionalOldSelf")), version or self._version)
        try:
            return compile_expression(text, environment, [wanted])
        except CompileError as error:
            raise Refused(f"{prefix}compilation failed: {error}") from None
        except OutputTypeError:
            raise Refused(refusal) from None


class Rule:
    """One compiled rule; `error` instead of a program when it does not compile."""

    __slots__ = ("error", "message", "old", "optional", "path", "program", "source")

    def __init__(self, source: Json, schema: Mapping[str, Any], compiler: Compiler) -> None:
        self.source = source
        self.optional = bool(source.get("optionalOldSelf"))
        self.program: Program | None = None
        self.message: Program | None = None
        self.error = ""
        self.old = False
        try:
            self.program = compiler.rule(source)
        except Refused as refused:
            self.error = str(refused)
            self.path = ""
            return
        self.old = "oldSelf" in self.program.variables
        if source.get("messageExpression"):
            try:
                self.message = compiler.message(source)
            except Refused:
                self.message = None
        place = source.get("fieldPath") or ""
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
            sources = [rule for rule in self.node.rules if (rule.get("rule") or "").strip()]
            if sources and self._decl is not None:
                compiler = Compiler(self._decl, STORED_VERSION)
                self._compiled = [Rule(source, self._schema, compiler) for source in sources]
            else:
                self._compiled = []
        return self._compiled

    @property
    def broken(self) -> str:
        """Why none of the rules can be compiled."""
        return NO_TYPE if self.node.rules and self._decl is None else ""

    def members(self) -> dict[str, Rules]:
        """Named members with rules at or below them."""
        if self._members is None:
            self._members = {}
            for name, member in self.node.properties.items():
                if member.has_rules:
                    made = self._member(name, member)
                    if made is not None:
                        self._members[name] = made
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
    rules: Rules,
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
        run.value(rules, value, old, path, _Forgiving(correlated, None))
    except _Stop:
        run.budget.remaining = -1
    return run.errors


class _Run:
    def __init__(self, budget: Budget, warn: Warn | None) -> None:
        self.errors: list[FieldError] = []
        self.budget = budget
        self._warn = warn

    def value(self, rules: Rules, value: Any, old: Any, path: str, origin: _Forgiving) -> None:
        if value is None:
            return
        if rules.broken:
            text = f"rule compiler initialization error: {rules.broken}"
            self.errors.append(FieldError("Invalid value", path or "<nil>", text, rules.kind))
        else:
            self._own(rules, value, old, path, origin)
        if type(value) is dict:
            self._object(rules, value, old if type(old) is dict else {}, path, origin)
        elif type(value) is list:
            self._list(rules, value, old, path, origin)

    def _object(self, rules: Rules, tree: Json, old: Json, path: str, origin: _Forgiving) -> None:
        extra = rules.extra()
        if extra is not None:
            for name in sorted(tree):
                self.value(extra, tree[name], old.get(name), join(path, f"[{name}]"), origin.member(name))
        for name, member in rules.members().items():
            if name in tree:
                self.value(member, tree[name], old.get(name), join(path, f".{name}"), origin.member(name))

    def _list(self, rules: Rules, items: list[Any], old: Any, path: str, origin: _Forgiving) -> None:
        inner = rules.items()
        if inner is not None:
            before = by_key(old, rules.node)
            for index, item in enumerate(items):
                place = f"{path}[{index}]"
                self.value(inner, item, find(before, item, rules.node), place, origin.item(index))

    def _own(self, rules: Rules, value: Any, old: Any, path: str, origin: _Forgiving) -> None:
        compiled = rules.compiled()
        if not compiled:
            return
        if self.budget.remaining <= 0:
            self._invalid(rules, path, _EXHAUSTED)
            raise _Stop
        for rule in compiled:
            if rule.error:
                self._invalid(rules, path, f"rule compile error: {rule.error}")
                continue
            if rule.old and old is None and not rule.optional:
                continue
            activation = {"self": value, "oldSelf": old}
            if rule.optional:
                activation["oldSelf"] = NONE if old is None else Optional(old)
            if not self._holds(rules, rule, activation, path):
                self._failed(rules, rule, activation, path, origin)

    def _invalid(self, rules: Rules, path: str, text: str) -> None:
        self.errors.append(FieldError("Invalid value", path or "<nil>", text, rules.kind))

    def _holds(self, rules: Rules, rule: Rule, activation: Json, path: str) -> bool:
        """Whether a rule is met. One that cannot be evaluated is an error of its own, and counts as met."""
        assert rule.program is not None
        problem: Exception | None = None
        result = True
        try:
            result = rule.program.evaluate(activation, self.budget) is True
        except (EvalError, CostError) as error:
            problem = error
        if self.budget.exhausted:
            self._invalid(rules, path, _EXHAUSTED)
            raise _Stop
        if problem is None:
            return result
        if isinstance(problem, CostError):
            text = "no further validation rules will be run due to call cost exceeds limit for rule"
            self._invalid(rules, path, f"'{problem}': {text}: {rule.title}")
            raise _Stop
        if str(problem).startswith(NO_OVERLOAD):
            self._invalid(rules, path, f"'{problem}': {_NO_OVERLOAD}: {rule.title}")
        else:
            self._invalid(rules, path, f"{problem} evaluating rule: {rule.title}")
        return True

    def _failed(self, rules: Rules, rule: Rule, activation: Json, path: str, origin: _Forgiving) -> None:
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
            error = FieldError("Invalid value", place, stop, rules.kind)
        else:
            value = OMITTED if rules.kind in ("object", "array") else activation["self"]
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
