"""The syntax tree. The checker leaves the type and the chosen overloads on the nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastapi_core.cel.functions import Overload
    from fastapi_core.cel.types import Type


class Node:
    """A node; `offset` is where an error about it points. `type` is set by the checker."""

    __slots__ = ("offset", "type")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.type: Type | None = None


class Literal(Node):
    """A constant as a value of the evaluator (`values`)."""

    __slots__ = ("value",)

    def __init__(self, offset: int, value: Any) -> None:
        super().__init__(offset)
        self.value = value


class Ident(Node):
    """A variable, or after checking also the qualified name of a variable or type."""

    __slots__ = ("is_type", "name")

    def __init__(self, offset: int, name: str) -> None:
        super().__init__(offset)
        self.name = name
        self.is_type = False


class Select(Node):
    """`operand.field`; `test` for has(operand.field), `optional` for `operand.?field`."""

    __slots__ = ("field", "operand", "optional", "resolved", "test")

    def __init__(self, offset: int, operand: Node, field: str, *, test: bool = False, optional: bool = False) -> None:
        super().__init__(offset)
        self.operand = operand
        self.field = field
        self.test = test
        self.optional = optional
        #: The name this stands for when it is a qualified name (of a variable or type), not a field.
        self.resolved: Ident | None = None


class Call(Node):
    """A function, an operator or a macro left as it is; the checker drops `target` of a qualified function name."""

    __slots__ = ("args", "function", "overloads", "target")

    def __init__(self, offset: int, function: str, args: list[Node], target: Node | None = None) -> None:
        super().__init__(offset)
        self.function = function
        self.args = args
        self.target = target
        self.overloads: list[Overload] = []

    @property
    def operands(self) -> list[Node]:
        return self.args if self.target is None else [self.target, *self.args]


class ListNode(Node):
    """`[a, ?b]`; `optionals` holds the indices of elements that may be left out."""

    __slots__ = ("elements", "optionals")

    def __init__(self, offset: int, elements: list[Node], optionals: frozenset[int] = frozenset()) -> None:
        super().__init__(offset)
        self.elements = elements
        self.optionals = optionals


class Entry:
    """An entry of a map (`key` a node) or of a message (`key` the field's name)."""

    __slots__ = ("key", "name", "offset", "optional", "value")

    def __init__(self, offset: int, key: Node | None, name: str, value: Node, optional: bool) -> None:
        self.offset = offset
        self.key = key
        self.name = name
        self.value = value
        self.optional = optional


class MapNode(Node):
    """`{k: v, ?k: v}`."""

    __slots__ = ("entries",)

    def __init__(self, offset: int, entries: list[Entry]) -> None:
        super().__init__(offset)
        self.entries = entries


class Message(Node):
    """`Name{field: value}`."""

    __slots__ = ("entries", "name")

    def __init__(self, offset: int, name: str, entries: list[Entry]) -> None:
        super().__init__(offset)
        self.name = name
        self.entries = entries


class Comprehension(Node):
    """A fold over a list or map, as macros expand to it; `second` is empty with one variable.

    `kind` names the macro, so that the evaluator can run it as a loop of its own; "bind" binds one variable.
    """

    __slots__ = ("accumulator", "condition", "init", "kind", "range", "result", "second", "step", "variable")

    def __init__(
        self,
        offset: int,
        kind: str,
        range_: Node,
        variable: str,
        second: str,
        accumulator: str,
        init: Node,
        condition: Node,
        step: Node,
        result: Node,
    ) -> None:
        super().__init__(offset)
        self.kind = kind
        self.range = range_
        self.variable = variable
        self.second = second
        self.accumulator = accumulator
        self.init = init
        self.condition = condition
        self.step = step
        self.result = result


def children(node: Node) -> list[Node]:
    """The nodes directly below one, in order of evaluation."""
    if isinstance(node, Select):
        return [node.operand]
    if isinstance(node, Call):
        return list(node.operands)
    if isinstance(node, ListNode):
        return list(node.elements)
    if isinstance(node, MapNode | Message):
        result: list[Node] = []
        for entry in node.entries:
            if entry.key is not None:
                result.append(entry.key)
            result.append(entry.value)
        return result
    if isinstance(node, Comprehension):
        return [node.range, node.init, node.condition, node.step, node.result]
    return []


def walk(node: Node) -> list[Node]:
    """A node and all below it, parents first."""
    found = [node]
    for item in found:
        found.extend(children(item))
    return found


def copy(node: Node) -> Node:
    """A deep copy of an unchecked tree."""
    match node:
        case Literal():
            return Literal(node.offset, node.value)
        case Ident():
            return Ident(node.offset, node.name)
        case Select():
            return Select(node.offset, copy(node.operand), node.field, test=node.test, optional=node.optional)
        case Call():
            target = None if node.target is None else copy(node.target)
            return Call(node.offset, node.function, [copy(arg) for arg in node.args], target)
        case ListNode():
            return ListNode(node.offset, [copy(element) for element in node.elements], node.optionals)
        case MapNode():
            return MapNode(node.offset, [_copy_entry(entry) for entry in node.entries])
        case Message():
            return Message(node.offset, node.name, [_copy_entry(entry) for entry in node.entries])
        case Comprehension():
            return Comprehension(
                node.offset,
                node.kind,
                copy(node.range),
                node.variable,
                node.second,
                node.accumulator,
                copy(node.init),
                copy(node.condition),
                copy(node.step),
                copy(node.result),
            )
        case _:
            return Node(node.offset)


def _copy_entry(entry: Entry) -> Entry:
    key = None if entry.key is None else copy(entry.key)
    return Entry(entry.offset, key, entry.name, copy(entry.value), entry.optional)
