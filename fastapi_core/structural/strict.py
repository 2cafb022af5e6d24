"""What is wrong with a value: the exact walk, for values that are known not to be valid.

It follows the reference's validators in their order, with what they count: of several alternatives that all fail, the
one that got furthest tells what is wrong. Errors with the same text are told once. With an old value, errors of what
has not changed are forgiven.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fastapi_core.errors import FieldError, go_quote
from fastapi_core.structural import keywords
from fastapi_core.structural.correlation import Correlated
from fastapi_core.structural.formats import has_format
from fastapi_core.structural.keywords import Number
from fastapi_core.structural.nodes import Node, shown

#: The field of errors that have no place.
NOWHERE: Final = "<nil>"


class Result:
    """Errors in order with their full texts, and how many checks were made and passed."""

    __slots__ = ("_texts", "count", "errors")

    def __init__(self) -> None:
        self.errors: list[tuple[str, FieldError]] = []
        self.count = 0
        self._texts: set[str] = set()

    def add(self, text: str, error: FieldError) -> None:
        if text not in self._texts:
            self._texts.add(text)
            self.errors.append((text, error))

    def merge(self, other: Result) -> None:
        for text, error in other.errors:
            self.add(text, error)
        self.count += other.count


def errors_of(
    value: Any, node: Node, old: Correlated | None, base: str = "", *, as_written: bool = False
) -> list[FieldError]:
    """The errors of a whole value. Texts name places inside of it, `base` is the field where it stands.

    `as_written`: formats count that are only notes elsewhere, and int-or-string is no type, as in defaults of definitions.
    """
    found = _Validator(base, as_written=as_written).value(value, node, "", old)
    return [error for _, error in found.errors]


def number_errors(value: float, node: Node) -> bool:
    """Whether a number breaks a limit of its schema."""
    return bool(_Validator("").number(Number(value), node, "").errors)


class _Validator:
    def __init__(self, base: str, *, as_written: bool = False) -> None:
        self._base = base
        self._as_written = as_written

    # Errors

    def _field(self, path: str) -> str:
        name = path.removeprefix(".")
        if not name:
            return self._base or NOWHERE
        return f"{self._base}.{name}" if self._base else name

    def _invalid(self, result: Result, path: str, value: Any, text: str) -> None:
        result.add(text, FieldError("Invalid value", self._field(path), text, value))

    def _general(self, result: Result, text: str) -> None:
        """An error that the reference tells without its place."""
        result.add(text, FieldError("Invalid value", self._base or NOWHERE, text, ""))

    def _wrong_type(self, result: Result, path: str, wanted: str, found: str) -> None:
        text = f"{path} in body must be of type {wanted}: {go_quote(found)}"
        result.add(text, FieldError("TypeInvalid", self._field(path), text, found))

    # Values

    def value(self, value: Any, node: Node, path: str, old: Correlated | None) -> Result:
        """Everything about one value and what is in it; forgiven when it is what it was."""
        result = self._value(value, node, path, old)
        if result.errors and old is not None and old.equal():
            forgiven = Result()
            forgiven.count = result.count
            return forgiven
        return result

    def _value(self, value: Any, node: Node, path: str, old: Correlated | None) -> Result:
        result = Result()
        if value is None:
            result.merge(self._null(node, path))
            result.merge(self._enum(value, node, path))
            return result
        kind = type(value)
        types, form = node.written if self._as_written else (node.types, node.format)
        if types or form:
            result.merge(self._type(value, types, form, path))
            result.count += 1
        result.merge(self._junctors(value, node, path))
        result.count += 1
        if kind is str:
            result.merge(self._string(value, node, path))
            result.count += 1
            if form and keywords.is_string_format(form):
                result.merge(self._format(value, form, path))
                result.count += 1
        elif kind is int or kind is float:
            result.merge(self.number(Number(value), node, path))
            result.count += 1
        elif kind is list:
            result.merge(self._list(value, node, path, old))
            result.count += 1
        result.merge(self._enum(value, node, path))
        result.count += 1
        if kind is dict:
            result.merge(self._object(value, node, path, old))
            result.count += 1
        result.count += 1
        return result

    def _null(self, node: Node, path: str) -> Result:
        result = Result()
        types = node.written[0] if self._as_written else node.types
        if types and not node.nullable:
            self._wrong_type(result, path, ",".join(types), "null")
        else:
            result.count = 1
        return result

    def _type(self, value: Any, types: Sequence[str], form: str, path: str) -> Result:
        result = Result()
        wanted = keywords.type_problem(value, types, form)
        if wanted is None:
            result.count = 1
        else:
            self._wrong_type(result, path, *wanted)
        return result

    def _enum(self, value: Any, node: Node, path: str) -> Result:
        result = Result()
        if node.enum and not keywords.in_enum(value, node.enum):
            texts = [item if type(item) is str else keywords.compact(item) for item in node.enum]
            detail = "supported values: " + ", ".join(map(go_quote, texts))
            text = f"{path} in body should be one of {texts}"
            result.add(text, FieldError("Unsupported value", self._field(path), detail, shown(value)))
        return result

    def _string(self, value: str, node: Node, path: str) -> Result:
        result = Result()
        if node.max_length is not None and len(value) > node.max_length:
            text = f"{path} in body should be at most {node.max_length} chars long"
            detail = f"may not be more than {keywords.counted(node.max_length, 'byte')}"
            if node.max_length < 0:
                detail = "value is too long"
            result.add(text, FieldError("Too long", self._field(path), detail, ""))
        elif node.min_length is not None and len(value) < node.min_length:
            self._invalid(result, path, value, f"{path} in body should be at least {node.min_length} chars long")
        elif node.pattern and not keywords.pattern_test(node.pattern)(value):
            shown = keywords.pattern_shown(node.pattern)
            self._invalid(result, path, value, f"{path} in body should match '{shown}'")
        return result

    def _format(self, value: str, form: str, path: str) -> Result:
        result = Result()
        if not has_format(value, form):
            self._wrong_type(result, path, form, value)
        return result

    def number(self, number: Number, node: Node, path: str) -> Result:
        result = Result()
        kind = node.kind if node.kind in ("integer", "number") else ""
        form = node.format if kind else ""
        problem = keywords.range_problem(number, kind, form)
        if problem is not None:
            self._general(result, f"Checked value must be of type {problem} in {path}")
        if node.multiple_of is not None:
            self._limit(result, number, node.multiple_of, (kind, form), path, "MultipleOf", keywords.multiple_problem)
        if node.minimum is not None:
            check = keywords.below(node.exclusive_minimum)
            self._limit(result, number, node.minimum, (kind, form), path, "Minimum boundary", check)
        if node.maximum is not None:
            check = keywords.above(node.exclusive_maximum)
            self._limit(result, number, node.maximum, (kind, form), path, "Maximum boundary", check)
        result.count += 1
        return result

    def _limit(
        self,
        result: Result,
        number: Number,
        limit: float,
        type_: tuple[str, str],
        path: str,
        prefix: str,
        check: keywords.LimitCheck,
    ) -> None:
        """A limit is compared as the type of the value has it, unless it is no value of the schema's type itself."""
        problem = keywords.range_problem(Number(float(limit)), *type_)
        if problem is not None:
            self._general(result, f"{prefix} value must be of type {problem} in {path}")
            number = Number(number.real)
        found = check(number, limit)
        if found is None:
            return
        text, value = found
        if text.startswith("factor"):
            text = text.replace("{}", path)
        else:
            text = f"{path} in body {text}"
        self._invalid(result, path, value, text)

    # Containers

    def _list(self, items: list[Any], node: Node, path: str, old: Correlated | None) -> Result:
        result = Result()
        if node.items is not None:
            for index, item in enumerate(items):
                before = None if old is None else old.item(index)
                result.merge(self.value(item, node.items, f"{path}[{index}]", before))
        size = len(items)
        if node.min_items is not None and size < node.min_items:
            self._invalid(result, path, size, f"{path} in body should have at least {node.min_items} items")
        if node.max_items is not None and size > node.max_items:
            self._too_many(result, path, size, node.max_items, "items")
        if node.unique and keywords.has_equal(items):
            self._invalid(result, path, "", f"{path} in body shouldn't contain duplicates")
        result.count += 1
        return result

    def _too_many(self, result: Result, path: str, size: int, limit: int, what: str) -> None:
        text = f"{path} in body should have at most {limit} {what}"
        detail = "has too many items" if limit < 0 else f"must have at most {keywords.counted(limit, 'item')}"
        result.add(text, FieldError("Too many", self._field(path), detail, size))

    def _object(self, tree: dict[str, Any], node: Node, path: str, old: Correlated | None) -> Result:
        result = Result()
        size = len(tree)
        if node.min_properties is not None and size < node.min_properties:
            self._invalid(result, path, size, f"{path} in body should have at least {node.min_properties} properties")
        if node.max_properties is not None and size > node.max_properties:
            self._too_many(result, path, size, node.max_properties, "properties")
        for name in sorted(tree):
            if name not in node.properties:
                if node.closed:
                    self._invalid(result, path, name, f"{path}.{name} in body is a forbidden property")
                elif node.extra is not None:
                    before = _before(old, name, path)
                    result.merge(self.value(tree[name], node.extra, f"{path}.{name}", before))
        for name, member in node.properties.items():
            if name in tree:
                inner = f"{path}.{name}" if path else name
                result.merge(self.value(tree[name], member, inner, _before(old, name, path)))
        for name in node.required:
            if name not in tree:
                text = f"{path}.{name} in body is required"
                result.add(text, FieldError("Required value", self._field(f"{path}.{name}")))
        return result

    # Alternatives

    def _junctors(self, value: Any, node: Node, path: str) -> Result:
        main = Result()
        if node.any_of:
            self._any(main, [self.value(value, inner, path, None) for inner in node.any_of], path)
        if node.one_of:
            self._one(main, [self.value(value, inner, path, None) for inner in node.one_of], path)
        if node.all_of:
            self._all(main, [self.value(value, inner, path, None) for inner in node.all_of], path)
        if node.none_of is not None and not self.value(value, node.none_of, path, None).errors:
            self._general(main, f"{go_quote(path)} must not validate the schema (not)")
        main.count += 1
        return main

    def _any(self, main: Result, results: Sequence[Result], path: str) -> None:
        good = next((result for result in results if not result.errors), None)
        if good is None:
            self._general(main, f"{go_quote(path)} must validate at least one schema (anyOf)")
        main.merge(_furthest(results) if good is None else good)

    def _one(self, main: Result, results: Sequence[Result], path: str) -> None:
        good = [result for result in results if not result.errors]
        if len(good) == 1:
            main.merge(good[0])
            return
        found = f"Found {len(good)} valid alternatives" if good else "Found none valid"
        self._general(main, f"{go_quote(path)} must validate one and only one schema (oneOf). {found}")
        if not good:
            main.merge(_furthest(results))

    def _all(self, main: Result, results: Sequence[Result], path: str) -> None:
        for result in results:
            main.merge(result)
        good = sum(not result.errors for result in results)
        if good < len(results):
            more = "" if good else ". None validated"
            self._general(main, f"{go_quote(path)} must validate all the schemas (allOf){more}")


def _before(old: Correlated | None, name: str, path: str) -> Correlated | None:
    """The old value of a member; what an object says it is has none, as it is converted."""
    if old is None or (not path and name in ("apiVersion", "kind")):
        return None
    return old.member(name)


def _furthest(results: Sequence[Result]) -> Result:
    """The first of those that passed most checks."""
    return max(results, key=lambda result: result.count)
