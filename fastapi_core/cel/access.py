"""Variables, fields and elements as code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi_core.cel import values
from fastapi_core.cel.errors import EvalError
from fastapi_core.cel.frames import Frame, Run
from fastapi_core.cel.values import NONE, Optional

Convert = Callable[[Any], Any]


def variable(slot: int) -> Run:
    def run(frame: Frame) -> Any:
        return frame[slot]

    return run


def _missing(name: str) -> EvalError:
    return EvalError(f"no such key: {name}")


def declared_field(operand: Run, raw: str, name: str, convert: Convert | None, slot: int = 0) -> Run:
    """A property of an object with a schema, for which null is absent; `slot` when the operand is just a variable."""
    if slot and convert is None:

        def of_variable(frame: Frame) -> Any:
            try:
                value = frame[slot].get(raw)
            except AttributeError:
                value = None
            if value is None:
                raise _missing(name)
            return value

        return of_variable
    if convert is None:

        def plain(frame: Frame) -> Any:
            container = operand(frame)
            try:
                value = container.get(raw)
            except AttributeError:
                value = None
            if value is None:
                raise _missing(name)
            return value

        return plain

    def converting(frame: Frame) -> Any:
        container = operand(frame)
        value = container.get(raw) if isinstance(container, dict) else None
        if value is None:
            raise _missing(name)
        return convert(value)

    return converting


def declared_test(operand: Run, raw: str) -> Run:
    def run(frame: Frame) -> bool:
        container = operand(frame)
        try:
            return container.get(raw) is not None
        except AttributeError:
            raise _missing(raw) from None

    return run


def field(operand: Run, name: str, convert: Convert | None) -> Run:
    """`operand.name` of anything that is no object with a schema."""

    def run(frame: Frame) -> Any:
        container = operand(frame)
        try:
            value = container[name]
        except (KeyError, TypeError, IndexError):
            return slow(container)
        if type(container) is str:
            raise _missing(name)
        return value

    def slow(container: Any) -> Any:
        return values.index(container, name)

    if convert is None:
        return run

    def converting(frame: Frame) -> Any:
        value = run(frame)
        return value if value is None else convert(value)

    return converting


def field_test(operand: Run, name: str) -> Run:
    """has() of anything that is no object with a schema."""

    def run(frame: Frame) -> bool:
        container = operand(frame)
        if isinstance(container, Optional):
            if container is NONE:
                return False
            container = container.value
        if isinstance(container, dict):
            return name in container
        raise _missing(name)

    return run


def optional_field(operand: Run, raw: str, convert: Convert | None, null_is_absent: bool) -> Run:
    """`operand.?name`, and `operand.name` of an optional."""

    def run(frame: Frame) -> Optional:
        container = operand(frame)
        if isinstance(container, Optional):
            if container is NONE:
                return NONE
            container = container.value
        if not isinstance(container, dict) or raw not in container:
            return NONE
        value = container[raw]
        if value is None:
            return NONE if null_is_absent else Optional(None)
        return Optional(value if convert is None else convert(value))

    return run


def element(container: Run, index: Run, convert: Convert | None) -> Run:
    def run(frame: Frame) -> Any:
        return values.index(container(frame), index(frame))

    if convert is None:
        return run

    def converting(frame: Frame) -> Any:
        value = run(frame)
        return value if value is None else convert(value)

    return converting


def optional_element(container: Run, index: Run, convert: Convert | None) -> Run:
    def run(frame: Frame) -> Optional:
        return values.find(container(frame), index(frame))

    if convert is None:
        return run

    def converting(frame: Frame) -> Optional:
        found = run(frame)
        return found if found is NONE or found.value is None else Optional(convert(found.value))

    return converting
