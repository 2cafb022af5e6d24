"""Code: a checked tree as closures over one frame.

A frame is a list: the cost so far, the cost at which to look again (`over`), the limit of the cost, then the
variables. A piece of code comes with the cost that
every run of it adds; whoever runs it (the program, a branch, a loop) adds that up, so that most steps count nothing
while they run. What depends on values is added by the code itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from fastapi_core.cel.errors import CostError, EvalError, no_overload
from fastapi_core.request.aside import check_time

Frame = list[Any]
Run = Callable[[Frame], Any]

COST: Final = 0
MARK: Final = 1
LIMIT: Final = 2
FIRST_SLOT: Final = 3
STEP: Final = 1000
"""Cost between two looks at the clock, while there is a time to be kept."""


class Code(NamedTuple):
    """`run` yields the value; `cost` is what every run of it costs besides what it counts itself."""

    run: Run
    cost: int


def constant(value: Any, cost: int = 0) -> Code:
    def run(frame: Frame) -> Any:
        return value

    return Code(run, cost)


def counted(code: Code) -> Run:
    """Code that counts its own cost."""
    run, cost = code
    if not cost:
        return run

    def counting(frame: Frame) -> Any:
        frame[0] += cost
        return run(frame)

    return counting


def over(frame: Frame) -> None:
    """The cost is past its mark: CostError past the limit, HeavyError past the time."""
    if frame[0] > frame[2]:
        raise CostError
    check_time()
    frame[1] = min(frame[0] + STEP, frame[2])


def spend(frame: Frame, cost: int) -> None:
    """Add a cost that came up; CostError past the limit."""
    frame[0] += cost
    if frame[0] > frame[1]:
        over(frame)


def converted(run: Run, convert: Callable[[Any], Any]) -> Run:
    def converting(frame: Frame) -> Any:
        value = run(frame)
        return value if value is None else convert(value)

    return converting


def guarded(run: Run) -> Run:
    """Code whose values may not be of the types they were declared with (null, above all)."""

    def guarding(frame: Frame) -> Any:
        try:
            return run(frame)
        except (TypeError, AttributeError):
            raise no_overload() from None

    return guarding


def all_of(terms: list[Code]) -> Code:
    return _junction(terms, False)


def any_of(terms: list[Code]) -> Code:
    return _junction(terms, True)


def _junction(terms: list[Code], decisive: bool) -> Code:
    """`&&` (decided by false) and `||` (decided by true): an error counts only when nothing decides."""
    first = terms[0]
    rest = tuple(counted(term) for term in terms[1:])
    return Code((_two if len(rest) == 1 else _several)(first.run, rest, decisive), first.cost)


def _decide(frame: Frame, rest: tuple[Run, ...], decisive: bool, error: EvalError | None) -> bool:
    for run in rest:
        try:
            value = run(frame)
        except EvalError as failure:
            error = error or failure
            continue
        if value is decisive:
            return bool(decisive)
        if type(value) is not bool:
            error = error or no_overload()
    if error is not None:
        raise error
    return not decisive


def _two(first: Run, rest: tuple[Run, ...], decisive: bool) -> Run:
    second = rest[0]

    def run(frame: Frame) -> Any:
        try:
            value = first(frame)
        except EvalError as error:
            return _decide(frame, rest, decisive, error)
        if value is decisive:
            return decisive
        if type(value) is not bool:
            return _decide(frame, rest, decisive, no_overload())
        value = second(frame)
        if type(value) is not bool:
            raise no_overload()
        return value

    return run


def _several(first: Run, rest: tuple[Run, ...], decisive: bool) -> Run:
    def run(frame: Frame) -> Any:
        try:
            value = first(frame)
        except EvalError as error:
            return _decide(frame, rest, decisive, error)
        if value is decisive:
            return decisive
        return _decide(frame, rest, decisive, None if type(value) is bool else no_overload())

    return run


def choice(condition: Code, first: Code, second: Code) -> Code:
    test = condition.run
    yes, no = counted(first), counted(second)

    def run(frame: Frame) -> Any:
        value = test(frame)
        if value is True:
            return yes(frame)
        if value is False:
            return no(frame)
        raise no_overload()

    return Code(run, condition.cost)
