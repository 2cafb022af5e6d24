"""Comprehensions as loops.

Costs are those of the folds that macros expand to: every round pays for the condition and the step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from fastapi_core.cel.costs import LIST_COST
from fastapi_core.cel.errors import EvalError, no_overload
from fastapi_core.cel.frames import Code, Frame, Run, counted, over
from fastapi_core.cel.values import from_key, key_of, type_name

Elements = Callable[[Any], Iterable[Any]]
#: Conditions of `all` and `exists`: the accumulator, and one or two functions over it.
_ALL_CONDITION: Final = 2
_EXISTS_CONDITION: Final = 3
_END: Final = object()


def elements_of(convert: Callable[[Any], Any] | None) -> Elements:
    """What a loop with one variable runs over."""

    def elements(range_: Any) -> Iterable[Any]:
        if isinstance(range_, list):
            return range_ if convert is None else [None if item is None else convert(item) for item in range_]
        if isinstance(range_, dict):
            return list(map(from_key, range_))
        raise no_range(range_, pairs=False)

    return elements


def pairs_of(convert: Callable[[Any], Any] | None) -> Elements:
    """What a loop with two variables runs over: (index, element) or (key, value)."""

    def pairs(range_: Any) -> Iterable[Any]:
        if isinstance(range_, list):
            values: Iterable[Any] = range_
            keys: Iterable[Any] = range(len(range_))
        elif isinstance(range_, dict):
            values = range_.values()
            keys = map(from_key, range_)
        else:
            raise no_range(range_, pairs=True)
        if convert is not None:
            values = [None if item is None else convert(item) for item in values]
        return list(zip(keys, values, strict=True))

    return pairs


#: Names of the reference's own types, which its message shows.
_GO_TYPES: Final = {
    "int": "types.Int",
    "uint": "types.Uint",
    "double": "types.Double",
    "bool": "types.Bool",
    "string": "types.String",
    "bytes": "types.Bytes",
    "null_type": "types.Null",
    "google.protobuf.Timestamp": "types.Timestamp",
    "google.protobuf.Duration": "types.Duration",
    "optional_type": "*types.Optional",
    "type": "*types.Type",
}


def no_range(value: Any, *, pairs: bool) -> EvalError:
    name = type_name(value)
    shown = _GO_TYPES.get(name, name)
    if pairs:
        return EvalError(f"unsupported comprehension range type: {shown}")
    return EvalError(f"got '{shown}', expected iterable type")


class Loop:
    """What the kinds of loops have in common: the range, its elements, and the slots of the variables."""

    __slots__ = ("cost", "elements", "range", "second", "slot")

    def __init__(self, range_: Code, elements: Elements, slot: int, second: int) -> None:
        self.range = range_.run
        self.cost = range_.cost
        self.elements = elements
        self.slot = slot
        self.second = second


def _setter(loop: Loop) -> Callable[[Frame, Any], None]:
    slot, second = loop.slot, loop.second
    if not second:

        def set_one(frame: Frame, item: Any) -> None:
            frame[slot] = item

        return set_one

    def set_two(frame: Frame, item: Any) -> None:
        frame[slot], frame[second] = item

    return set_two


def quantifier(loop: Loop, decisive: bool, predicate: Code) -> Code:
    """`all` (decided by false) and `exists` (decided by true)."""
    condition = _EXISTS_CONDITION if decisive else _ALL_CONDITION
    per_round = condition + 1 + predicate.cost
    range_, elements, test = loop.range, loop.elements, predicate.run
    slot, second = loop.slot, loop.second

    def decided(frame: Frame, rounds: Iterator[Any]) -> bool:
        if next(rounds, _END) is not _END:
            frame[0] += condition
        return decisive

    def run(frame: Frame) -> Any:
        error: EvalError | None = None
        rounds = iter(elements(range_(frame)))
        for item in rounds:
            frame[0] += per_round
            if frame[0] > frame[1]:
                over(frame)
            if second:
                frame[slot], frame[second] = item
            else:
                frame[slot] = item
            try:
                value = test(frame)
            except EvalError as failure:
                error = error or failure
                continue
            if value is decisive:
                return decided(frame, rounds)
            if type(value) is not bool:
                error = error or no_overload()
        if error is not None:
            raise error
        return not decisive

    return Code(run, loop.cost + 1)


def exactly_one(loop: Loop, predicate: Code) -> Code:
    per_round = 1 + predicate.cost
    range_, elements, test, assign = loop.range, loop.elements, predicate.run, _setter(loop)

    def run(frame: Frame) -> bool:
        found = 0
        for item in elements(range_(frame)):
            frame[0] += per_round
            if frame[0] > frame[1]:
                over(frame)
            assign(frame, item)
            value = test(frame)
            if value is True:
                found += 1
                frame[0] += 1
            elif value is not False:
                raise no_overload()
        return found == 1

    return Code(run, loop.cost + 2)


def gather(loop: Loop, test: Code | None, element: Code) -> Code:
    """`map`, `filter` and `transformList`."""
    base = 1 + (test.cost if test is not None else 0)
    added = LIST_COST + 1 + element.cost
    range_, elements, assign, make = loop.range, loop.elements, _setter(loop), element.run
    accept: Run | None = None if test is None else test.run

    def run(frame: Frame) -> list[Any]:
        result: list[Any] = []
        for item in elements(range_(frame)):
            frame[0] += base
            assign(frame, item)
            if accept is not None:
                value = accept(frame)
                if value is False:
                    continue
                if value is not True:
                    raise no_overload()
            frame[0] += added
            if frame[0] > frame[1]:
                over(frame)
            result.append(make(frame))
        if frame[0] > frame[1]:
            over(frame)
        return result

    return Code(run, loop.cost + 1)


def insert(loop: Loop, test: Code | None, value: Code, whole: bool) -> Code:
    """`transformMap`, and `transformMapEntry` when every round yields a `whole` map to add."""
    base = 1 + (test.cost if test is not None else 0)
    added = (1 if whole else 2) + value.cost
    range_, elements, slot, second, make = loop.range, loop.elements, loop.slot, loop.second, value.run
    accept = None if test is None else counted(Code(test.run, 0))

    def run(frame: Frame) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key, item in elements(range_(frame)):
            frame[0] += base
            frame[slot], frame[second] = key, item
            if accept is not None:
                chosen = accept(frame)
                if chosen is False:
                    continue
                if chosen is not True:
                    raise no_overload()
            frame[0] += added
            if frame[0] > frame[1]:
                over(frame)
            made = make(frame)
            _insert(result, made if whole else {key_of(key): made})
        if frame[0] > frame[1]:
            over(frame)
        return result

    return Code(run, loop.cost + 1)


def _insert(result: dict[Any, Any], more: Any) -> None:
    if not isinstance(more, dict):
        raise no_overload()
    for key, value in more.items():
        if key in result:
            raise EvalError(f"insert failed: key {from_key(key)} already exists")
        result[key] = value


def bind(slot: int, value: Code, body: Code) -> Code:
    make, run_body = value.run, body.run

    def run(frame: Frame) -> Any:
        frame[slot] = make(frame)
        return run_body(frame)

    return Code(run, value.cost + body.cost)
