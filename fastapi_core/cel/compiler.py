"""A checked tree to code, choosing the cheapest form that its types allow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fastapi_core.cel import access, calls, construct, declared, folds, frames, values
from fastapi_core.cel.costs import LIST_COST, MAP_COST, MESSAGE_COST, CallCost, call_cost
from fastapi_core.cel.declared import declared_add, declared_equal, deep_convert
from fastapi_core.cel.environment import Environment
from fastapi_core.cel.errors import EvalError, InstantiationError
from fastapi_core.cel.frames import FIRST_SLOT, Code, Run, constant, converted
from fastapi_core.cel.library.standard import GENERIC
from fastapi_core.cel.regex import compile_pattern
from fastapi_core.cel.regex_translate import PatternError
from fastapi_core.cel.syntax import Call, Comprehension, Ident, ListNode, Literal, MapNode, Message, Node, Select
from fastapi_core.cel.types import DYN_KIND, LIST, MAP, STRUCT, Type, is_optional
from fastapi_core.cel.values import TypeValue

_EXACT: Final = frozenset(("int", "bool", "uint", "timestamp", "duration"))
_ORDERS: Final = frozenset(("_<_", "_<=_", "_>_", "_>=_"))
_CONVERSIONS: Final = frozenset(("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "uint"))


class Compiler:
    """Makes code of one tree. `slots` tells where each variable of the environment is in the frame."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.slots: dict[str, int] = {}
        self.size = FIRST_SLOT
        self._scopes: list[dict[str, int]] = []

    def _new_slot(self) -> int:
        self.size += 1
        return self.size - 1

    def compile(self, node: Node) -> Code:
        match node:
            case Literal():
                return constant(node.value)
            case Ident():
                return self._ident(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListNode():
                return self._list(node)
            case MapNode():
                return self._map(node)
            case Message():
                return self._message(node)
            case Comprehension():
                return self._comprehension(node)
        raise TypeError(type(node).__name__)

    # Names and fields.

    def _ident(self, node: Ident) -> Code:
        if node.is_type:
            kind = _type(node).params
            return constant(TypeValue(kind[0].name if kind else node.name))
        slot = self._slot(node.name)
        run = access.variable(slot)
        decl = _type(node).decl
        if decl is not None and decl.convert is not None and self._local(node.name) is None:
            run = converted(run, decl.convert)
        return Code(run, 1)

    def _local(self, name: str) -> int | None:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return None

    def _slot(self, name: str) -> int:
        local = self._local(name)
        if local is not None:
            return local
        if name not in self.slots:
            self.slots[name] = self._new_slot()
        return self.slots[name]

    def _select(self, node: Select) -> Code:
        if node.resolved is not None:
            return self._ident(node.resolved)
        operand = self.compile(node.operand)
        cost = operand.cost + _step_cost(node.operand)
        target = _type(node.operand)
        raw, convert, known = self._property(target.params[0] if is_optional(target) else target, node.field)
        if node.test:
            if known and not is_optional(target):
                return Code(access.declared_test(operand.run, raw), operand.cost)
            return Code(access.field_test(operand.run, raw), operand.cost)
        if node.optional or is_optional(target):
            return Code(access.optional_field(operand.run, raw, convert, known), cost)
        if known:
            slot = self._plain_slot(node.operand)
            return Code(access.declared_field(operand.run, raw, node.field, convert, slot), cost)
        return Code(access.field(operand.run, raw, convert), cost)

    def _plain_slot(self, node: Node) -> int:
        """The slot of a node that is a variable as it stands, else 0."""
        if not isinstance(node, Ident) or node.is_type:
            return 0
        decl = _type(node).decl
        if decl is not None and decl.convert is not None:
            return 0
        return self._slot(node.name)

    def _property(self, target: Type, name: str) -> tuple[str, Callable[[Any], Any] | None, bool]:
        """(name in JSON, conversion, whether it is a property of an object with a schema)."""
        decl = target.decl
        if target.kind == STRUCT and decl is None:
            named = self.environment.types.get(target.name)
            decl = None if named is None else named.decl
        found = None if decl is None else decl.field(name)
        if found is not None:
            return found.raw, found.decl.convert, not found.keeps_null
        if target.kind == MAP:
            element = target.params[1].decl
            return name, None if element is None else element.convert, False
        return name, None, False

    def _element_convert(self, container: Type) -> Callable[[Any], Any] | None:
        if is_optional(container):
            container = container.params[0]
        if container.kind not in (LIST, MAP):
            return None
        decl = container.params[-1].decl
        return None if decl is None else decl.convert

    # Arguments of functions get whole values; most JSON is one already.

    def _argument(self, node: Node) -> Code:
        code = self.compile(node)
        kind = _type(node)
        if kind.kind not in (LIST, MAP, STRUCT):
            return code
        make = _deep(kind)
        return code if make is None else Code(converted(code.run, make), code.cost)

    # Calls.

    def _call(self, node: Call) -> Code:
        match node.function:
            case "_&&_":
                return frames.all_of([self.compile(term) for term in _flat(node, "_&&_")])
            case "_||_":
                return frames.any_of([self.compile(term) for term in _flat(node, "_||_")])
            case "_?_:_":
                condition, first, second = (self.compile(arg) for arg in node.args)
                return frames.choice(condition, first, second)
            case "_[_]":
                return self._index(node, optional=is_optional(_type(node.args[0])))
            case "_[?_]":
                return self._index(node, optional=True)
            case "_==_" | "_!=_":
                return self._equality(node, negated=node.function == "_!=_")
            case "@in":
                return self._in(node)
            case "or" | "orValue" if node.target is not None and len(node.overloads) == 1:
                return calls.or_else(self.compile(node.target), self.compile(node.args[0]), node.function == "orValue")
            case "matches" | "find" | "findAll":
                return self._pattern(node)
        return self._function(node)

    def _index(self, node: Call, *, optional: bool) -> Code:
        container, index = self.compile(node.args[0]), self.compile(node.args[1])
        convert = self._element_convert(_type(node.args[0]))
        cost = container.cost + index.cost + _step_cost(node.args[0])
        make = access.optional_element if optional else access.element
        return Code(make(container.run, index.run, convert), cost)

    def _equality(self, node: Call, *, negated: bool) -> Code:
        left, right = node.args
        kinds = (_type(left).kind, _type(right).kind)
        if kinds == ("string", "string"):
            if isinstance(right, Literal):
                return calls.same_constant(self.compile(left), right.value, negated)
            return calls.same_text(self.compile(left), self.compile(right), negated)
        if kinds[0] == kinds[1] and kinds[0] in ("int", "bool"):
            return calls.same_scalar(self.compile(left), self.compile(right), negated)
        same: Callable[[Any, Any], bool] = values.equal
        decl = _type(left).decl or _type(right).decl
        if decl is not None:
            same = declared_equal(decl) or values.equal
        compare = _inverse(same) if negated else same
        cost = call_cost(node.function, "not_equals" if negated else "equals")
        return calls.call(compare, [self._argument(left), self._argument(right)], cost)

    def _in(self, node: Call) -> Code:
        item, container = node.args
        kind = _constant_kind(container)
        if kind is not None and _type(item).kind in ("string", "int", DYN_KIND):
            wanted = frozenset(element.value for element in container.elements)  # type: ignore[attr-defined]
            if kind is str or _type(item).kind == "int":
                return calls.in_constants(self.compile(item), wanted, kind)
        return self._function(node)

    def _pattern(self, node: Call) -> Code:
        """A constant pattern is read once."""
        pattern = node.operands[1]
        if isinstance(pattern, Literal) and type(pattern.value) is str and node.function == "matches":
            try:
                matches = compile_pattern(pattern.value).matches
            except PatternError:
                return self._function(node)

            def found(text: str, _: str) -> bool:
                return matches(text)

            cost = call_cost("matches", node.overloads[0].id if len(node.overloads) == 1 else "")
            return calls.call(found, [self.compile(operand) for operand in node.operands], cost)
        return self._function(node)

    def _function(self, node: Call) -> Code:
        operands = node.operands
        overloads = node.overloads
        identifier = overloads[0].id if len(overloads) == 1 else ""
        folded = self._folded(node)
        if folded is not None:
            return folded
        special = self._special(node, identifier)
        if special is not None:
            return special
        args = [self._argument(operand) for operand in operands]
        cost: CallCost = call_cost(node.function, identifier)
        if node.function in GENERIC:
            generic = GENERIC[node.function]
            decl = _type(operands[0]).decl if node.function == "_+_" else None
            added = None if decl is None else declared_add(decl)
            return calls.call(added or generic, args, cost)
        impl = overloads[0].impl
        assert impl is not None, identifier
        if identifier in ("starts_with_string", "ends_with_string"):
            if isinstance(operands[1], Literal):
                return calls.prefix_constant(impl, args[0], operands[1].value)
            return calls.prefix(impl, args[0], args[1])
        known = not any(_type(operand).kind == DYN_KIND for operand in operands)
        if len(overloads) == 1 and (known or identifier == "contains_string"):
            return calls.call(impl, args, cost)
        return calls.dispatch(node.function, overloads, args, cost)

    def _folded(self, node: Call) -> Code | None:
        """Conversions of constants are done now, also of those that are converted ones; one that fails is an error."""
        if node.function == "findAll" or node.function == "find":
            self._constant_pattern(node)
        elif node.function in _CONVERSIONS:
            found = _folded(node)
            return None if found is None else constant(found[0])
        return None

    @staticmethod
    def _constant_pattern(node: Call) -> None:
        pattern = node.operands[1]
        if isinstance(pattern, Literal) and type(pattern.value) is str:
            try:
                compile_pattern(pattern.value)
            except PatternError as error:
                raise InstantiationError(str(error)) from None

    def _special(self, node: Call, identifier: str) -> Code | None:
        """Operators on integers and the like, of one type and known."""
        operands = node.operands
        if len(operands) != 2 or not identifier:
            return None
        kinds = {_type(operand).kind for operand in operands}
        if len(kinds) != 1:
            return None
        kind = kinds.pop()
        if node.function in _ORDERS and kind in _EXACT:
            if kind in ("timestamp", "duration"):
                return None
            if kind == "int" and isinstance(operands[1], Literal):
                return calls.ordered_constant(node.function, self.compile(operands[0]), operands[1].value)
            return calls.ordered(node.function, self.compile(operands[0]), self.compile(operands[1]))
        if kind == "int" and node.function in ("_+_", "_-_", "_*_"):
            return calls.integer(node.function, self.compile(operands[0]), self.compile(operands[1]))
        return None

    # Constructors.

    def _list(self, node: ListNode) -> Code:
        elements = [self._argument(element) for element in node.elements]
        if not node.optionals and all(isinstance(element, Literal) for element in node.elements):
            return constant([element.value for element in node.elements])  # type: ignore[attr-defined]
        runs = tuple(element.run for element in elements)
        cost = sum(element.cost for element in elements) + LIST_COST
        return Code(construct.list_of(runs, node.optionals), cost)

    def _entries(self, node: MapNode | Message) -> tuple[tuple[tuple[Run, Run, bool], ...], int]:
        made: list[tuple[Run, Run, bool]] = []
        cost = 0
        for entry in node.entries:
            key = constant(entry.name) if entry.key is None else self._argument(entry.key)
            value = self._argument(entry.value)
            cost += key.cost + value.cost
            made.append((key.run, value.run, entry.optional))
        return tuple(made), cost

    def _map(self, node: MapNode) -> Code:
        entries, cost = self._entries(node)
        fixed = all(isinstance(entry.key, Literal) and isinstance(entry.value, Literal) for entry in node.entries)
        run = construct.filler(entries)
        return Code(run, cost if fixed else cost + MAP_COST)

    def _message(self, node: Message) -> Code:
        entries, cost = self._entries(node)
        return Code(construct.message(node.name, entries), cost + MESSAGE_COST)

    # Comprehensions.

    def _comprehension(self, node: Comprehension) -> Code:
        if node.kind == "bind":
            value = self._argument(node.init)
            slot = self._new_slot()
            self._scopes.append({node.accumulator: slot})
            body = self.compile(node.result)
            self._scopes.pop()
            return folds.bind(slot, value, body)
        range_ = self.compile(node.range)
        convert = self._element_convert(_type(node.range))
        slot = self._new_slot()
        second = self._new_slot() if node.second else 0
        elements = folds.pairs_of(convert) if node.second else folds.elements_of(convert)
        loop = folds.Loop(range_, elements, slot, second)
        self._scopes.append({node.variable: slot, **({node.second: second} if node.second else {})})
        code = self._loop(node, loop)
        self._scopes.pop()
        return code

    def _loop(self, node: Comprehension, loop: folds.Loop) -> Code:
        step = node.step
        assert isinstance(step, Call)
        if node.kind in ("all", "exists"):
            return folds.quantifier(loop, node.kind == "exists", self.compile(step.args[1]))
        if node.kind == "one":
            return folds.exactly_one(loop, self.compile(step.args[0]))
        test: Code | None = None
        if step.function == "_?_:_":
            test = self.compile(step.args[0])
            inner = step.args[1]
            assert isinstance(inner, Call)
            step = inner
        if node.kind == "map":
            added = step.args[1]
            assert isinstance(added, ListNode)
            return folds.gather(loop, test, self._argument(added.elements[0]))
        return folds.insert(loop, test, self._argument(step.args[-1]), whole=node.kind == "merge")


def _folded(node: Node) -> tuple[Any] | None:
    """The value of a literal, or of conversions of one."""
    if isinstance(node, Literal):
        return (node.value,)
    if (
        not isinstance(node, Call)
        or node.function not in _CONVERSIONS
        or len(node.args) != 1
        or node.target is not None
    ):
        return None
    inner = _folded(node.args[0])
    impl = node.overloads[0].impl if node.overloads else None
    if inner is None or impl is None:
        return None
    try:
        return (impl(*inner),)
    except EvalError as error:
        raise InstantiationError(str(error)) from None


def _type(node: Node) -> Type:
    assert node.type is not None
    return node.type


def _deep(kind: Type) -> Callable[[Any], Any] | None:
    """Makes whole values of a list, map or object that comes from a schema."""
    if kind.decl is not None:
        return deep_convert(kind.decl)
    if kind.kind == LIST:
        return declared.deep_list(_deep(kind.params[0]))
    if kind.kind == MAP:
        return declared.deep_map(_deep(kind.params[1]))
    return None


def _step_cost(operand: Node) -> int:
    """One step along names and elements; starting from anything else costs one more."""
    if isinstance(operand, Ident) or (isinstance(operand, Select) and not operand.test):
        return 1
    if isinstance(operand, Call) and operand.function in ("_[_]", "_[?_]"):
        return 1
    return 2


def _flat(node: Call, function: str) -> list[Node]:
    """The terms of nested calls of one operator, in order."""
    terms: list[Node] = []
    stack: list[Node] = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, Call) and current.function == function:
            stack.extend(reversed(current.args))
        else:
            terms.append(current)
    return terms


def _inverse(same: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def differ(left: Any, right: Any) -> bool:
        return not same(left, right)

    return differ


def _constant_kind(node: Node) -> type | None:
    """The one type of a list of constants that are texts or integers."""
    if not isinstance(node, ListNode) or node.optionals or not node.elements:
        return None
    kinds = {type(element.value) if isinstance(element, Literal) else None for element in node.elements}
    kind = kinds.pop()
    return kind if not kinds and kind in (str, int) else None
