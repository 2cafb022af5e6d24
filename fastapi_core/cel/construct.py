"""Lists, maps and messages as code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fastapi_core.cel import values
from fastapi_core.cel.errors import EvalError
from fastapi_core.cel.frames import Frame, Run
from fastapi_core.cel.values import NONE, MessageValue, Optional, key_of

Entries = tuple[tuple[Run, Run, bool], ...]


def list_of(runs: tuple[Run, ...], optionals: frozenset[int]) -> Run:
    """A list; elements at `optionals` may be left out."""
    if not optionals:

        def plain(frame: Frame) -> list[Any]:
            return [run(frame) for run in runs]

        return plain

    def run_list(frame: Frame) -> list[Any]:
        result = []
        for position, run in enumerate(runs):
            value = run(frame)
            if position in optionals:
                if not isinstance(value, Optional):
                    raise EvalError(f"cannot initialize optional list element from non-optional value {value}")
                if value is NONE:
                    continue
                value = value.value
            result.append(value)
        return result

    return run_list


def message(name: str, entries: Entries) -> Run:
    fill = filler(entries)
    check = check_patch if name == "JSONPatch" else None

    def run(frame: Frame) -> MessageValue:
        made = MessageValue(name, fill(frame))
        if check is not None:
            check(made)
        return made

    return run


def filler(entries: Entries) -> Callable[[Frame], dict[Any, Any]]:
    def fill(frame: Frame) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key, value, optional in entries:
            name = key_of(key(frame))
            item = value(frame)
            if optional:
                if not isinstance(item, Optional):
                    raise EvalError(f"cannot initialize optional entry '{name}' from non-optional value {item}")
                if item is NONE:
                    continue
                item = item.value
            result[name] = item
        return result

    return fill


_PATCH_FIELDS: Final = frozenset(("op", "path", "from", "value"))


def check_patch(message: MessageValue) -> None:
    for name, value in message.items():
        if name not in _PATCH_FIELDS:
            raise EvalError(f"unexpected JSONPatchType field: {name}")
        if name != "value" and not isinstance(value, str):
            raise EvalError(f"unexpected type {values.type_name(value)} for JSONPatchType '{name}' field")
