"""Types of a syntax tree: every node gets its type, every call its overloads, and what does not fit is reported."""

from __future__ import annotations

from typing import Final

from fastapi_core.cel.decls import Decl, Field
from fastapi_core.cel.environment import Environment
from fastapi_core.cel.errors import Issue
from fastapi_core.cel.functions import Overload
from fastapi_core.cel.syntax import (
    Call,
    Comprehension,
    Entry,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Message,
    Node,
    Select,
    walk,
)
from fastapi_core.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    LIST,
    MAP,
    NULL,
    PARAM,
    STRING,
    STRUCT,
    UINT,
    Type,
    all_assignable,
    assignable,
    is_dyn,
    is_dyn_or_error,
    is_optional,
    list_of,
    map_of,
    most_general,
    optional_of,
    param,
    show,
    substitute,
    type_of,
)
from fastapi_core.cel.values import UInt

_LITERALS: Final[dict[type, Type]] = {
    bool: BOOL,
    int: INT,
    UInt: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
}


class Checker:
    """Checks one tree; findings are in `issues`."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.issues: list[Issue] = []
        self._bound: dict[str, Type] = {}
        self._scopes: list[dict[str, Type]] = []
        self._free = 0

    def check(self, node: Node) -> None:
        """Check a whole tree and settle its types."""
        self._check(node)
        for each in walk(node):
            if each.type is not None:
                each.type = substitute(self._bound, each.type, close=True)

    def _report(self, message: str, node: Node | Entry) -> None:
        self.issues.append(Issue(message, node.offset))

    def _undeclared(self, name: str, node: Node) -> None:
        self._report(f"undeclared reference to '{name}' (in container '')", node)

    def _type(self, node: Node) -> Type:
        assert node.type is not None
        return node.type

    def _fresh(self) -> Type:
        self._free += 1
        return param(f"_var{self._free - 1}")

    def _assignable(self, left: Type, right: Type) -> bool:
        bound = assignable(self._bound, left, right)
        if bound is None:
            return False
        self._bound = bound
        return True

    def _check(self, node: Node) -> None:
        match node:
            case Literal():
                node.type = _LITERALS[type(node.value)]
            case Ident():
                self._ident(node)
            case Select():
                self._select(node)
            case Call():
                self._call(node)
            case ListNode():
                self._list(node)
            case MapNode():
                self._map(node)
            case Message():
                self._message(node)
            case Comprehension():
                self._comprehension(node)

    # Names.

    def _local(self, name: str) -> Type | None:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return None

    def _global(self, name: str) -> tuple[Type, bool] | None:
        """(type, whether it is the name of a type)."""
        name = name.removeprefix(".")
        kind = self.environment.variables.get(name)
        if kind is not None:
            return kind, False
        named = self.environment.find_type(name)
        return None if named is None else (type_of(named), True)

    def _ident(self, node: Ident) -> None:
        local = self._local(node.name)
        if local is not None:
            node.type = local
            return
        found = self._global(node.name)
        if found is None:
            node.type = ERROR
            self._undeclared(node.name, node)
            return
        node.type, node.is_type = found
        node.name = node.name.removeprefix(".")

    def _qualified(self, node: Node) -> str | None:
        """`a.b.c` when the node is nothing but names."""
        names: list[str] = []
        while isinstance(node, Select) and not node.test and not node.optional:
            names.append(node.field)
            node = node.operand
        if not isinstance(node, Ident):
            return None
        names.append(node.name)
        return ".".join(reversed(names))

    def _select(self, node: Select) -> None:
        name = None if node.test or node.optional else self._qualified(node)
        if name is not None and self._local(name.partition(".")[0]) is None:
            found = self._global(name)
            if found is not None:
                resolved = Ident(node.offset, name.removeprefix("."))
                resolved.type, resolved.is_type = found
                node.resolved = resolved
                node.type = resolved.type
                return
        result = self._field(node)
        node.type = BOOL if node.test else substitute(self._bound, result)

    def _field(self, node: Select) -> Type:
        self._check(node.operand)
        operand = substitute(self._bound, self._type(node.operand))
        optional = is_optional(operand)
        target = operand.params[0] if optional else operand
        result = ERROR
        if target.kind == MAP:
            result = target.params[1]
        elif target.kind == STRUCT:
            result = self._struct_field(node, target, node.field)
        elif target.kind == PARAM:
            self._assignable(DYN, target)
            result = DYN
        else:
            if not is_dyn_or_error(target):
                self._report(f"type '{show(target)}' does not support field selection", node)
            result = DYN
        return optional_of(result) if optional or node.optional else result

    def _struct_field(self, node: Node | Entry, target: Type, name: str) -> Type:
        if not self.environment.is_known_struct(target):
            self._report(f"unexpected failed resolution of '{target.name}'", node)
            return ERROR
        found = self.environment.find_field(target, name)
        if found is None:
            self._report(f"undefined field '{name}'", node)
            return ERROR
        if isinstance(found, Field):
            return found.decl.type
        return found.type if isinstance(found, Decl) else found

    # Calls.

    def _call(self, node: Call) -> None:
        for arg in node.args:
            self._check(arg)
        functions = self.environment.functions
        if node.target is None:
            overloads = functions.get(node.function.removeprefix("."))
            if overloads is None:
                self._undeclared(node.function, node)
                node.type = ERROR
                return
            node.function = node.function.removeprefix(".")
            self._resolve(node, overloads)
            return
        prefix = self._qualified(node.target)
        if prefix is not None:
            name = f"{prefix}.{node.function}".removeprefix(".")
            overloads = functions.get(name)
            if overloads is not None:
                node.function = name
                node.target = None
                self._resolve(node, overloads)
                return
        self._check(node.target)
        overloads = functions.get(node.function)
        if overloads is None:
            node.type = ERROR
            self._undeclared(node.function, node)
            return
        self._resolve(node, overloads)

    def _resolve(self, node: Call, overloads: tuple[Overload, ...]) -> None:
        if node.function in ("_&&_", "_||_"):
            self._logical(node, overloads)
            return
        member = node.target is not None
        kinds = [self._type(operand) for operand in node.operands]
        result: Type | None = None
        for overload in overloads:
            if overload.member != member:
                continue
            fresh = {name: self._fresh() for name in overload.parameters}
            wanted = [substitute(fresh, kind) for kind in overload.args] if fresh else list(overload.args)
            bound = all_assignable(self._bound, kinds, wanted)
            if bound is None:
                continue
            self._bound = bound
            node.overloads.append(overload)
            kind = substitute(self._bound, substitute(fresh, overload.result) if fresh else overload.result)
            if result is None:
                result = kind
            elif not is_dyn(result) and kind != result:
                result = DYN
        if result is None:
            shown = [show(substitute(self._bound, kind, close=True)) for kind in kinds]
            applied = f"{shown[0]}.({', '.join(shown[1:])})" if member else f"({', '.join(shown)})"
            self._report(f"found no matching overload for '{node.function}' applied to '{applied}'", node)
            node.type = ERROR
            return
        node.type = result

    def _logical(self, node: Call, overloads: tuple[Overload, ...]) -> None:
        node.type = BOOL
        node.overloads.append(overloads[0])
        for arg in node.args:
            if not self._assignable(self._type(arg), BOOL):
                self._mismatch(arg, BOOL, self._type(arg))
                node.type = ERROR

    def _mismatch(self, node: Node, expected: Type, found: Type) -> None:
        self._report(f"expected type '{show(expected)}' but found '{show(found)}'", node)

    # Constructors.

    def _join(self, previous: Type | None, current: Type) -> Type:
        if previous is None:
            return current
        # Mixed types are refused later, once everything else fits: arguments of format() may be mixed.
        return most_general(previous, current) if self._assignable(previous, current) else DYN

    def _unwrapped(self, node: Node, kind: Type) -> Type:
        """The type of an element that may be left out."""
        if is_optional(kind):
            return kind.params[0]
        if not is_dyn(kind):
            self._mismatch(node, optional_of(kind), kind)
        return kind

    def _list(self, node: ListNode) -> None:
        elements: Type | None = None
        for index, element in enumerate(node.elements):
            self._check(element)
            kind = self._type(element)
            if index in node.optionals:
                kind = self._unwrapped(element, kind)
            elements = self._join(elements, kind)
        node.type = list_of(elements if elements is not None else self._fresh())

    def _map(self, node: MapNode) -> None:
        keys: Type | None = None
        values: Type | None = None
        for entry in node.entries:
            assert entry.key is not None
            self._check(entry.key)
            keys = self._join(keys, self._type(entry.key))
            self._check(entry.value)
            kind = self._type(entry.value)
            if entry.optional:
                kind = self._unwrapped(entry.value, kind)
            values = self._join(values, kind)
        if keys is None or values is None:
            keys, values = self._fresh(), self._fresh()
        node.type = map_of(keys, values)

    def _message(self, node: Message) -> None:
        name = node.name.removeprefix(".")
        kind = self.environment.find_type(name)
        if kind is None:
            self._undeclared(node.name, node)
            node.type = ERROR
            return
        node.name = name
        if kind.kind != STRUCT:
            self._report(f"'{kind.name}' is not a message type", node)
            node.type = ERROR
        else:
            node.type = kind
        for entry in node.entries:
            self._check(entry.value)
            field = self._struct_field(entry, kind, entry.name) if kind.kind == STRUCT else ERROR
            value = self._type(entry.value)
            if entry.optional:
                value = self._unwrapped(entry.value, value)
            if not self._assignable(field, value):
                self._report(
                    f"expected type of field '{entry.name}' is '{show(field)}' but provided type is '{show(value)}'",
                    entry,
                )

    def _comprehension(self, node: Comprehension) -> None:
        self._check(node.range)
        self._check(node.init)
        range_ = substitute(self._bound, self._type(node.range))
        first, second = self._iterated(node, range_)
        self._scopes.append({node.accumulator: self._type(node.init)})
        inner = {node.variable: first}
        if node.second:
            inner[node.second] = second
        self._scopes.append(inner)
        self._check(node.condition)
        self._expect(node.condition, BOOL)
        self._check(node.step)
        self._expect(node.step, self._type(node.init))
        self._scopes.pop()
        self._check(node.result)
        self._scopes.pop()
        node.type = substitute(self._bound, self._type(node.result))

    def _iterated(self, node: Comprehension, range_: Type) -> tuple[Type, Type]:
        """Types of the iteration variables."""
        if range_.kind == LIST:
            element = range_.params[0]
            return (INT, element) if node.second else (element, ERROR)
        if range_.kind == MAP:
            return range_.params[0], range_.params[1]
        if is_dyn_or_error(range_) or range_.kind == PARAM:
            self._assignable(DYN, range_)
            return DYN, DYN
        self._report(
            f"expression of type '{show(range_)}' cannot be range of a comprehension (must be list, map, or dynamic)",
            node.range,
        )
        return ERROR, ERROR

    def _expect(self, node: Node, kind: Type) -> None:
        if not self._assignable(kind, self._type(node)):
            self._mismatch(node, kind, self._type(node))
