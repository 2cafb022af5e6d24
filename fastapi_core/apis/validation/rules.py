"""The words in which validation is declared, and the report that errors are written to.

A rule is a function of an object, its path and the report. Paths begin with a dot (`.spec.containers[0]`), so that
nothing has to be joined before there is an error to tell; the report takes the first dot away. `struct` puts the rules
of one type in the order in which the reference reports them. Absent members cost one look-up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from fastapi_core.errors import FieldError, go_quote

Tree = dict[str, Any]
Check = Callable[[str], list[str]]

SKIP: Final = 0
"""An empty member is fine."""
REQUIRED: Final = 1
"""An empty member is missing."""
CHECK: Final = 2
"""An empty member is checked like any other, an absent one is not."""
ALWAYS: Final = 3
"""Absent is the same as empty, and both are checked."""

NOT_NEGATIVE: Final = "must be greater than or equal to 0"
IMMUTABLE: Final = "field is immutable"
INT32_MAX: Final = 2147483647


class Report(list[FieldError]):
    """The errors of one object in their order, and what rules far below need to know of the whole."""

    __slots__ = ("allow", "facts", "old")

    def __init__(self, old: Tree | None = None) -> None:
        super().__init__()
        self.old = old
        self.facts: dict[str, Any] = {}
        self.allow: frozenset[str] = frozenset()
        """Relaxations that an update keeps because the old object already needs them."""

    def invalid(self, path: str, value: Any, detail: str) -> None:
        self.append(FieldError("Invalid value", path[1:], detail, value))

    def each_invalid(self, path: str, value: Any, details: Iterable[str]) -> None:
        for detail in details:
            self.append(FieldError("Invalid value", path[1:], detail, value))

    def required(self, path: str, detail: str = "") -> None:
        self.append(FieldError("Required value", path[1:], detail))

    def forbidden(self, path: str, detail: str = "") -> None:
        self.append(FieldError("Forbidden", path[1:], detail))

    def unsupported(self, path: str, value: Any, supported: Sequence[str]) -> None:
        self.append(FieldError("Unsupported value", path[1:], supported_values(supported), value))

    def duplicate(self, path: str, value: Any, detail: str = "") -> None:
        self.append(FieldError("Duplicate value", path[1:], detail, value))

    def not_found(self, path: str, value: Any, detail: str = "") -> None:
        self.append(FieldError("Not found", path[1:], detail, value))

    def too_long(self, path: str, limit: int) -> None:
        self.append(FieldError("Too long", path[1:], f"may not be more than {limit} bytes"))

    def too_many(self, path: str, count: int, limit: int) -> None:
        self.append(
            FieldError("Too many", path[1:], f"must have at most {limit} item{'' if limit == 1 else 's'}", count)
        )

    def internal(self, path: str, detail: str) -> None:
        self.append(FieldError("Internal error", path[1:], detail))


def supported_values(values: Sequence[str]) -> str:
    return "supported values: " + ", ".join(go_quote(value) for value in values)


Rule = Callable[[Tree, str, Report], None]


def struct(*rules: Rule) -> Rule:
    """The rules of one type, one after another."""
    if len(rules) == 1:
        return rules[0]

    def run(tree: Tree, path: str, report: Report) -> None:
        for rule in rules:
            rule(tree, path, report)

    return run


def required(name: str, detail: str = "") -> Rule:
    """The member must be there and not be empty."""
    dotted = "." + name

    def rule(tree: Tree, path: str, report: Report) -> None:
        if not tree.get(name):
            report.required(path + dotted, detail)

    return rule


def text(name: str, check: Check, empty: int = SKIP, detail: str = "", limit: int = 0) -> Rule:
    """A string of a format; `limit` is its greatest length in bytes."""
    dotted = "." + name

    def rule(tree: Tree, path: str, report: Report) -> None:
        value = tree.get(name)
        if value:
            if limit and len(value.encode()) > limit:
                report.too_long(path + dotted, limit)
            for problem in check(value):
                report.invalid(path + dotted, value, problem)
        elif empty:
            if empty == REQUIRED:
                report.required(path + dotted, detail)
            elif value is not None or empty == ALWAYS:
                report.each_invalid(path + dotted, "", check(""))

    return rule


def choice(name: str, *values: str, empty: int = SKIP, detail: str = "", show: Sequence[str] = ()) -> Rule:
    """One of some words. `show` is the list to print when it is not that of the values in their order."""
    dotted, known, shown = "." + name, frozenset(values), tuple(show or values)

    def rule(tree: Tree, path: str, report: Report) -> None:
        value = tree.get(name)
        if value in known:
            return
        if value:
            report.unsupported(path + dotted, value, shown)
        elif empty == REQUIRED:
            report.required(path + dotted, detail)
        elif empty == ALWAYS or (empty == CHECK and value is not None):
            report.unsupported(path + dotted, value or "", shown)

    return rule


def between(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


def number(
    name: str, low: int, high: int | None = None, detail: str = "", zero: int = CHECK, absent: int = SKIP
) -> Rule:
    """A whole number in a range. `zero` may be SKIP or REQUIRED; `absent=CHECK` takes an absent one for zero."""
    dotted = "." + name
    message = detail or (NOT_NEGATIVE if high is None and not low else between(low, high or INT32_MAX))
    top = float("inf") if high is None else high

    def rule(tree: Tree, path: str, report: Report) -> None:
        value = tree.get(name)
        if value is None:
            if absent == SKIP:
                return
            value = 0
        if value == 0 and zero != CHECK:
            if zero == REQUIRED:
                report.required(path + dotted)
            return
        if not low <= value <= top:
            report.invalid(path + dotted, value, message)

    return rule


def natural(*names: str) -> Rule:
    """Numbers that are not negative."""
    pairs = tuple((name, "." + name) for name in names)

    def rule(tree: Tree, path: str, report: Report) -> None:
        for name, dotted in pairs:
            value = tree.get(name)
            if value and value < 0:
                report.invalid(path + dotted, value, NOT_NEGATIVE)

    return rule


_NOTHING: Final[Tree] = {}


def member(name: str, rule: Rule, *, missing: str | None = None, always: bool = False, at: str = "") -> Rule:
    """The object at a member. `missing` is the detail of the error when it is absent; `always` checks an absent one as
    if it were empty; `at` names another member in the path."""
    dotted = "." + (at or name)

    def apply(tree: Tree, path: str, report: Report) -> None:
        value = tree.get(name)
        if value is None:
            if missing is not None:
                report.required(path + dotted, missing)
                return
            if not always:
                return
            value = _NOTHING
        rule(value, path + dotted, report)

    return apply


def each(name: str, rule: Rule, *, missing: str | None = None, most: int = 0) -> Rule:
    """Every object of a list."""
    dotted = "." + name

    def apply(tree: Tree, path: str, report: Report) -> None:
        items = tree.get(name)
        if not items:
            if missing is not None:
                report.required(path + dotted, missing)
            return
        if most and len(items) > most:
            report.too_many(path + dotted, len(items), most)
        for index, item in enumerate(items):
            rule(item, f"{path}{dotted}[{index}]", report)

    return apply


def each_text(name: str, check: Check, *, missing: str | None = None, unique: bool = False) -> Rule:
    """Every string of a list has a format."""
    dotted = "." + name

    def apply(tree: Tree, path: str, report: Report) -> None:
        items = tree.get(name)
        if not items:
            if missing is not None:
                report.required(path + dotted, missing)
            return
        seen: set[str] = set()
        for index, item in enumerate(items):
            for problem in check(item):
                report.invalid(f"{path}{dotted}[{index}]", item, problem)
            if unique:
                if item in seen:
                    report.duplicate(f"{path}{dotted}[{index}]", item)
                seen.add(item)

    return apply


def unique(name: str, key: str) -> Rule:
    """No two objects of a list have the same non-empty member."""
    dotted = "." + name

    def apply(tree: Tree, path: str, report: Report) -> None:
        items = tree.get(name)
        if items and len(items) > 1:
            seen: set[Any] = set()
            for index, item in enumerate(items):
                value = item.get(key)
                if value:
                    if value in seen:
                        report.duplicate(f"{path}{dotted}[{index}].{key}", value)
                    seen.add(value)

    return apply


def one_member(
    kinds: Sequence[tuple[str, str, Rule | None]], *, none: str | None, many: str, on_parent: bool = False
) -> Rule:
    """A union: exactly one of the members is set (`none` is None when it may be empty).

    `kinds` are (member, name in the path, rule) in the reference's order; the second one found is an error in its own
    place (`on_parent`: in that of the union).
    """
    entries = tuple((name, "." + (shown or name), rule) for name, shown, rule in kinds)

    def apply(tree: Tree, path: str, report: Report) -> None:
        found = False
        for name, dotted, rule in entries:
            value = tree.get(name)
            if value is None:
                continue
            if found:
                report.forbidden(path if on_parent else path + dotted, many)
                continue
            found = True
            if rule is not None:
                rule(value, path + dotted, report)
        if not found and none is not None:
            report.required(path, none)

    return apply


def immutable(*paths: str, detail: str = IMMUTABLE) -> Rule:
    """Members (dotted paths) that keep their first value; for updates, where the report knows the old object."""
    steps = tuple((tuple(path.split(".")), "." + path) for path in paths)

    def apply(tree: Tree, path: str, report: Report) -> None:
        for names, dotted in steps:
            value: Any = tree
            before: Any = report.old
            for name in names:
                value, before = (value or _NOTHING).get(name), (before or _NOTHING).get(name)
            if value != before:
                report.invalid(path + dotted, value, detail)

    return apply


def when(condition: Callable[[Tree], Any], *rules: Rule) -> Rule:
    """Rules that hold under a condition on the same object."""
    inner = struct(*rules)

    def apply(tree: Tree, path: str, report: Report) -> None:
        if condition(tree):
            inner(tree, path, report)

    return apply


def nothing(tree: Tree, path: str, report: Report) -> None:
    """No rule."""
