"""Macros: calls that the parser replaces with folds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fastapi_core.cel.syntax import Call, Comprehension, Ident, ListNode, Literal, MapNode, Node, Select, copy

#: What no expression can spell, so nothing else can have this name.
ACCUMULATOR: Final = "@result"
#: Names that iteration variables cannot have.
_TAKEN: Final = (ACCUMULATOR, "__result__")
UNUSED: Final = "#unused"
SORT_INPUT: Final = "@__sortBy_input__"

Expander = Callable[[int, Node, list[Node]], Node]


class MacroError(Exception):
    """A macro with arguments it cannot take; `offset` is the place."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


def expand(offset: int, function: str, target: Node | None, args: list[Node], bindings: bool) -> Node | None:
    """What a call stands for, None when it is no macro; MacroError when its arguments do not fit.

    `bindings`: with `cel.bind`.
    """
    if target is None:
        return _has(offset, args[0]) if function == "has" and len(args) == 1 else None
    if bindings and function == "bind" and len(args) == 3 and isinstance(target, Ident) and target.name == "cel":
        if not isinstance(args[0], Ident):
            raise MacroError("cel.bind() variable names must be simple identifiers", args[0].offset)
        return bind(offset, args[0].name, args[1], args[2])
    expander = _MACROS.get((function, len(args)))
    return None if expander is None else expander(offset, target, args)


def _has(offset: int, argument: Node) -> Node:
    if isinstance(argument, Select) and not argument.test and not argument.optional:
        return Select(offset, argument.operand, argument.field, test=True)
    raise MacroError("invalid argument to has() macro", argument.offset)


def _variable(node: Node, complaint: str) -> str:
    if not isinstance(node, Ident):
        raise MacroError(complaint, node.offset)
    if node.name in _TAKEN:
        raise MacroError("iteration variable overwrites accumulator variable", node.offset)
    return node.name


_SIMPLE_NAME: Final = "argument must be a simple name"


def _one(node: Node) -> tuple[str, str]:
    return _variable(node, _SIMPLE_NAME), ""


def _two(first: Node, second: Node) -> tuple[str, str]:
    for node in (first, second):
        if not isinstance(node, Ident):
            raise MacroError(_SIMPLE_NAME, node.offset)
    names = first.name, second.name  # type: ignore[attr-defined]
    if names[0] == names[1]:
        raise MacroError(f"duplicate variable name: {names[0]}", second.offset)
    _variable(first, _SIMPLE_NAME)
    _variable(second, _SIMPLE_NAME)
    return names


def _quantifier(kind: str) -> Expander:
    def build(offset: int, target: Node, args: list[Node]) -> Node:
        variable, second = _one(args[0]) if len(args) == 2 else _two(args[0], args[1])
        predicate = args[-1]
        accumulator = Ident(offset, ACCUMULATOR)
        true: Node = Literal(offset, True)
        result: Node = Ident(offset, ACCUMULATOR)
        if kind == "all":
            init: Node = true
            condition: Node = Call(offset, "@not_strictly_false", [accumulator])
            step: Node = Call(offset, "_&&_", [Ident(offset, ACCUMULATOR), predicate])
        elif kind == "exists":
            init = Literal(offset, False)
            condition = Call(offset, "@not_strictly_false", [Call(offset, "!_", [accumulator])])
            step = Call(offset, "_||_", [Ident(offset, ACCUMULATOR), predicate])
        else:
            init = Literal(offset, 0)
            condition = true
            more = Call(offset, "_+_", [accumulator, Literal(offset, 1)])
            step = Call(offset, "_?_:_", [predicate, more, Ident(offset, ACCUMULATOR)])
            result = Call(offset, "_==_", [result, Literal(offset, 1)])
        return Comprehension(offset, kind, target, variable, second, ACCUMULATOR, init, condition, step, result)

    return build


def _gather(
    offset: int, kind: str, target: Node, names: tuple[str, str], init: Node, step: Node, test: Node | None
) -> Node:
    if test is not None:
        step = Call(offset, "_?_:_", [test, step, Ident(offset, ACCUMULATOR)])
    result = Ident(offset, ACCUMULATOR)
    return Comprehension(offset, kind, target, *names, ACCUMULATOR, init, Literal(offset, True), step, result)


def _append(offset: int, element: Node) -> Node:
    return Call(offset, "_+_", [Ident(offset, ACCUMULATOR), ListNode(offset, [element])])


def _map(offset: int, target: Node, args: list[Node]) -> Node:
    name = _variable(args[0], "argument is not an identifier")
    test = args[1] if len(args) == 3 else None
    return _gather(offset, "map", target, (name, ""), ListNode(offset, []), _append(offset, args[-1]), test)


def _filter(offset: int, target: Node, args: list[Node]) -> Node:
    name = _variable(args[0], "argument is not an identifier")
    return _gather(offset, "map", target, (name, ""), ListNode(offset, []), _append(offset, args[0]), args[1])


def _transform_list(offset: int, target: Node, args: list[Node]) -> Node:
    names = _two(args[0], args[1])
    test = args[2] if len(args) == 4 else None
    return _gather(offset, "map", target, names, ListNode(offset, []), _append(offset, args[-1]), test)


def _transform_map(offset: int, target: Node, args: list[Node]) -> Node:
    names = _two(args[0], args[1])
    test = args[2] if len(args) == 4 else None
    step = Call(offset, "cel.@mapInsert", [Ident(offset, ACCUMULATOR), Ident(offset, names[0]), args[-1]])
    return _gather(offset, "insert", target, names, MapNode(offset, []), step, test)


def _transform_entry(offset: int, target: Node, args: list[Node]) -> Node:
    names = _two(args[0], args[1])
    test = args[2] if len(args) == 4 else None
    step = Call(offset, "cel.@mapInsert", [Ident(offset, ACCUMULATOR), args[-1]])
    return _gather(offset, "merge", target, names, MapNode(offset, []), step, test)


def bind(offset: int, name: str, value: Node, body: Node) -> Node:
    """`body` with `name` standing for `value`."""
    return Comprehension(
        offset, "bind", ListNode(offset, []), UNUSED, "", name, value, Literal(offset, False), Ident(offset, name), body
    )


def _optional(function: str, wrap: bool) -> Expander:
    def build(offset: int, target: Node, args: list[Node]) -> Node:
        if not isinstance(args[0], Ident):
            raise MacroError(f"{function}() variable name must be a simple identifier", args[0].offset)
        value = Call(offset, "value", [], copy(target))
        body = bind(offset, args[0].name, value, args[1])
        if wrap:
            body = Call(offset, "of", [body], Ident(offset, "optional"))
        none = Call(offset, "none", [], Ident(offset, "optional"))
        return Call(offset, "_?_:_", [Call(offset, "hasValue", [], target), body, none])

    return build


def _sort_by(offset: int, target: Node, args: list[Node]) -> Node:
    if not isinstance(target, ListNode | Select | Ident | Comprehension | Call):
        message = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(message, target.offset)
    keys = _map(offset, Ident(offset, SORT_INPUT), args)
    body = Call(offset, "@sortByAssociatedKeys", [keys], Ident(offset, SORT_INPUT))
    return bind(offset, SORT_INPUT, target, body)


_MACROS: Final[dict[tuple[str, int], Expander]] = {
    **{(name, count): _quantifier("all") for name in ("all",) for count in (2, 3)},
    **{(name, count): _quantifier("exists") for name in ("exists",) for count in (2, 3)},
    **{("exists_one", count): _quantifier("one") for count in (2, 3)},
    ("existsOne", 3): _quantifier("one"),
    ("map", 2): _map,
    ("map", 3): _map,
    ("filter", 2): _filter,
    ("transformList", 3): _transform_list,
    ("transformList", 4): _transform_list,
    ("transformMap", 3): _transform_map,
    ("transformMap", 4): _transform_map,
    ("transformMapEntry", 3): _transform_entry,
    ("transformMapEntry", 4): _transform_entry,
    ("optMap", 2): _optional("optMap", wrap=True),
    ("optFlatMap", 2): _optional("optFlatMap", wrap=False),
    ("sortBy", 2): _sort_by,
}
