"""Checks of a typed tree beyond its types: constants that cannot be read, lists and maps of mixed types."""

from __future__ import annotations

from fastapi_core.cel.errors import EvalError, Issue
from fastapi_core.cel.library.standard import to_duration, to_timestamp
from fastapi_core.cel.regex import compile_pattern
from fastapi_core.cel.regex_translate import PatternError
from fastapi_core.cel.syntax import Call, ListNode, Literal, MapNode, Node, children, walk
from fastapi_core.cel.types import DYN, PARAM, Type, is_dyn, is_optional, show

_LITERALS = {"duration": to_duration, "timestamp": to_timestamp}


def validate(root: Node) -> list[Issue]:
    """What is wrong with a tree that has its types."""
    issues: list[Issue] = []
    nodes = walk(root)
    for node in nodes:
        if isinstance(node, Call):
            issues.extend(_literal(node))
    exempt = _inside_format(root)
    for node in nodes:
        if id(node) in exempt:
            continue
        if isinstance(node, ListNode):
            issues.extend(_same_elements(node))
        elif isinstance(node, MapNode):
            issues.extend(_same_entries(node))
    for node in nodes:
        if isinstance(node, Call) and node.function == "format" and node.target is not None:
            issues.extend(_format(node))
    return issues


def _literal(node: Call) -> list[Issue]:
    if node.function in _LITERALS and node.args and isinstance(node.args[0], Literal):
        argument = node.args[0]
        try:
            _LITERALS[node.function](argument.value)
        except EvalError:
            return [Issue(f"invalid {node.function} argument", argument.offset)]
    if node.function == "matches" and node.args and isinstance(node.args[0], Literal):
        # The first argument: the pattern of a member, the text of the function.
        argument = node.args[0]
        try:
            compile_pattern(argument.value)
        except PatternError:
            return [Issue("invalid matches argument", argument.offset)]
    return []


def _inside_format(root: Node) -> set[int]:
    """Nodes below a call of format, whose arguments may be of any types."""
    found: set[int] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, inside = stack.pop()
        if inside:
            found.add(id(node))
        inner = inside or (isinstance(node, Call) and node.function == "format")
        stack.extend((child, inner) for child in children(node))
    return found


def _kind(node: Node, optional: bool) -> Type:
    kind = node.type or DYN
    return kind.params[0] if optional and is_optional(kind) else kind


def _equivalent(left: Type, right: Type) -> bool:
    if is_dyn(left) and is_dyn(right):
        return True
    if left.kind == PARAM or right.kind == PARAM:
        return True
    if left.kind != right.kind or left.name != right.name or len(left.params) != len(right.params):
        return False
    return all(_equivalent(a, b) for a, b in zip(left.params, right.params, strict=True))


def _complain(node: Node, expected: Type, found: Type) -> Issue:
    return Issue(f"expected type '{show(expected)}' but found '{show(found)}'", node.offset)


def _same_elements(node: ListNode) -> list[Issue]:
    expected: Type | None = None
    for index, element in enumerate(node.elements):
        kind = _kind(element, index in node.optionals)
        if expected is None:
            expected = kind
        elif not _equivalent(expected, kind):
            return [_complain(element, expected, kind)]
    return []


def _same_entries(node: MapNode) -> list[Issue]:
    issues: list[Issue] = []
    keys: Type | None = None
    values: Type | None = None
    for entry in node.entries:
        assert entry.key is not None
        key, value = _kind(entry.key, False), _kind(entry.value, entry.optional)
        if keys is None or values is None:
            keys, values = key, value
            continue
        if not _equivalent(keys, key):
            issues.append(_complain(entry.key, keys, key))
        if not _equivalent(values, value):
            issues.append(_complain(entry.value, values, value))
    return issues


def _format(node: Call) -> list[Issue]:
    from fastapi_core.cel.library.formatting import check_format

    template = node.target
    if not isinstance(template, Literal) or type(template.value) is not str or len(node.args) != 1:
        return []
    arguments = node.args[0]
    if not isinstance(arguments, ListNode):
        return []
    found = check_format(template.value, arguments.elements)
    if found is None:
        return []
    message, place = found
    return [Issue(message, (place or node).offset)]
