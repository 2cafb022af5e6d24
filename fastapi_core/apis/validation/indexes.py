"""Indexes of an indexed job as text: `0,2-4`, increasing."""

from __future__ import annotations

from fastapi_core.errors import go_quote


def interval(text: str, completions: int) -> tuple[int, int]:
    """First and last index of one part; ValueError tells what is wrong with it."""
    ends = text.split("-")
    if len(ends) > 2:
        rule = "violates the requirement that an index interval can have at most two parts separated by '-'"
        raise ValueError(f"the fragment {go_quote(text)} {rule}")
    numbers = []
    for end in ends:
        if not end.isascii() or not end.isdigit():
            raise ValueError(f"cannot convert string to integer for index: {go_quote(end)}")
        number = int(end)
        if number >= completions:
            raise ValueError(f"too large index: {go_quote(end)}")
        numbers.append(number)
    if len(numbers) == 2 and numbers[0] >= numbers[1]:
        raise ValueError(f"non-increasing order, previous: {numbers[0]}, current: {numbers[1]}")
    return numbers[0], numbers[-1]


def count(text: str, completions: int) -> int:
    """How many indexes a list of ranges names; ValueError tells what is wrong with it."""
    total, last = 0, -1
    for part in text.split(",") if text else ():
        first, end = interval(part, completions)
        if last >= first:
            raise ValueError(f"non-increasing order, previous: {last}, current: {first}")
        total += end - first + 1
        last = end
    return total


def overlap(one: str, other: str, completions: int) -> int | None:
    """The first index that both lists name; parts that cannot be read name none."""
    if not one or not other:
        return None
    mine, theirs = _intervals(one, completions), _intervals(other, completions)
    at = 0
    for first, last in mine:
        while at < len(theirs) and theirs[at][0] < first and theirs[at][1] < first:
            at += 1
        if at < len(theirs) and theirs[at][0] <= last and first <= theirs[at][1]:
            return max(first, theirs[at][0])
    return None


def _intervals(text: str, completions: int) -> list[tuple[int, int]]:
    found = []
    for part in text.split(","):
        try:
            found.append(interval(part, completions))
        except ValueError:
            continue
    return found
