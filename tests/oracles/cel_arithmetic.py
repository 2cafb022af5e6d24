"""Arithmetic and logic of expressions by walking a tree: slow and obvious.

A tree is a number, a boolean, or (operator, operand, ...). The result is a value or the text of the error.
"""

from __future__ import annotations

from typing import Any

LOW, HIGH = -(2**63), 2**63 - 1


class FailureError(Exception):
    """The expression fails with this text."""


def _integer(value: int) -> int:
    if not LOW <= value <= HIGH:
        raise FailureError("integer overflow")
    return value


def _divide(a: int, b: int) -> tuple[int, int]:
    """Quotient towards zero and its remainder, by long division of the absolute values."""
    quotient, rest = divmod(abs(a), abs(b))
    return (-quotient if (a < 0) != (b < 0) else quotient), (-rest if a < 0 else rest)


def walk(tree: Any) -> Any:
    if not isinstance(tree, tuple):
        return tree
    operator, *operands = tree
    if operator in ("&&", "||"):
        return _logic(operator, operands)
    if operator == "?":
        return walk(operands[1]) if walk(operands[0]) else walk(operands[2])
    values = [walk(operand) for operand in operands]
    if operator == "!":
        return not values[0]
    if operator == "neg":
        return _integer(-values[0])
    a, b = values
    match operator:
        case "+":
            return _integer(a + b)
        case "-":
            return _integer(a - b)
        case "*":
            return _integer(a * b)
        case "/":
            if b == 0:
                raise FailureError("division by zero")
            return _integer(_divide(a, b)[0])
        case "%":
            if b == 0:
                raise FailureError("modulus by zero")
            _integer(_divide(a, b)[0])
            return _divide(a, b)[1]
        case "<":
            return a < b
        case "<=":
            return a <= b
        case ">":
            return a > b
        case ">=":
            return a >= b
        case "==":
            return a == b
        case _:
            return a != b


def _logic(operator: str, operands: list[Any]) -> bool:
    decisive = operator == "||"
    failure: FailureError | None = None
    for operand in operands:
        try:
            if walk(operand) is decisive:
                return decisive
        except FailureError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return not decisive


def write(tree: Any) -> str:
    """The tree as an expression."""
    if isinstance(tree, bool):
        return "true" if tree else "false"
    if isinstance(tree, int):
        return f"({tree})" if tree < 0 else str(tree)
    operator, *operands = tree
    texts = [write(operand) for operand in operands]
    if operator == "?":
        return f"({texts[0]} ? {texts[1]} : {texts[2]})"
    if operator == "!":
        return f"!{texts[0]}"
    if operator == "neg":
        return f"-({texts[0]})"
    return f"({texts[0]} {operator} {texts[1]})"
