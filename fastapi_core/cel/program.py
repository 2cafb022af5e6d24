"""Expressions, from text to something that can be evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi_core.cel import parser
from fastapi_core.cel.checker import Checker
from fastapi_core.cel.compiler import Compiler
from fastapi_core.cel.costs import PER_CALL_LIMIT, RUNTIME_BUDGET
from fastapi_core.cel.environment import Environment
from fastapi_core.cel.errors import CompileError, CostError, EvalError, Issue, OutputTypeError, Source
from fastapi_core.cel.frames import FIRST_SLOT
from fastapi_core.cel.syntax import Node
from fastapi_core.cel.types import Type, is_dyn
from fastapi_core.cel.validators import validate
from fastapi_core.request.aside import CLOCK, check_time


class Budget:
    """What all expressions of one task may cost together; `remaining` below zero means it is used up."""

    __slots__ = ("remaining",)

    def __init__(self, remaining: int = RUNTIME_BUDGET) -> None:
        self.remaining = remaining

    @property
    def exhausted(self) -> bool:
        return self.remaining < 0


class Program:
    """A compiled expression: immutable, shared, and evaluated any number of times.

    `type` is that of the result, `node` the checked tree (for estimates), `variables` the names it uses.
    """

    __slots__ = ("_cost", "_names", "_run", "_template", "node", "text", "type", "variables")

    def __init__(self, text: str, node: Node, environment: Environment) -> None:
        compiler = Compiler(environment)
        code = compiler.compile(node)
        self.text = text
        self.node = node
        self.type: Type = node.type  # type: ignore[assignment]
        self._run = code.run
        self._cost = code.cost
        self._names = tuple(compiler.slots.items())
        self.variables = frozenset(compiler.slots)
        self._template = [None] * max(compiler.size, FIRST_SLOT)

    def evaluate(self, activation: Mapping[str, Any], budget: Budget | None = None, limit: int = PER_CALL_LIMIT) -> Any:
        """The value under these variables; its cost is taken from the budget.

        EvalError when evaluation fails, CostError when it alone costs more than `limit`, HeavyError when it has a time
        to keep (`request.aside.patiently`) and does not.
        """
        frame: list[Any] = self._template.copy()
        frame[0] = self._cost
        frame[1] = 0 if CLOCK.until else limit
        frame[2] = limit
        try:
            for name, slot in self._names:
                frame[slot] = activation[name]
            value = self._run(frame)
        except KeyError as error:
            raise EvalError(f"no such attribute(s): {error.args[0]}") from None
        except RecursionError:
            raise EvalError("expression is nested too deeply") from None
        finally:
            if budget is not None:
                budget.remaining -= frame[0]
        if frame[0] > limit:
            raise CostError
        return value

    def forget_tree(self) -> None:
        """Give up `node`, which only estimates need and which takes more memory than the code."""
        self.node = Node(0)

    def measure(self, activation: Mapping[str, Any], limit: int = PER_CALL_LIMIT) -> tuple[Any, int]:
        """(value, cost)."""
        budget = Budget(0)
        value = self.evaluate(activation, budget, limit)
        return value, -budget.remaining


def check(text: str, environment: Environment) -> Node:
    """The checked tree of an expression; CompileError when it is refused."""
    node = parser.parse(text, bindings=environment.bindings)
    checker = Checker(environment)
    try:
        checker.check(node)
        issues = checker.issues or validate(node)
    except RecursionError:
        issues = [Issue("expression recursion limit exceeded: 250")]
    if issues:
        raise CompileError(Source(text), issues)
    return node


def compile_expression(text: str, environment: Environment, returns: Sequence[Type] = ()) -> Program:
    """Compile an expression that must yield one of the types `returns` (any when empty).

    CompileError when it is refused, OutputTypeError when it yields something else. dyn is no match for another type.
    HeavyError when there is a time to keep and it is over (`request.aside.patiently`).
    """
    check_time()
    node = check(text, environment)
    found = node.type
    assert found is not None
    if returns and not any(found == wanted or (is_dyn(wanted) and wanted.name == "any") for wanted in returns):
        if len(returns) == 1:
            raise OutputTypeError(f"must evaluate to {returns[0]} but got {found}")
        shown = " ".join(map(str, returns))
        raise OutputTypeError(f"must evaluate to one of [{shown}] but got {found}")
    try:
        return Program(text, node, environment)
    except RecursionError:
        raise CompileError(Source(text), [Issue("expression recursion limit exceeded: 250")]) from None
