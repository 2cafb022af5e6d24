"""Named formats and their checks."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Final

from fastapi_core.cel import times
from fastapi_core.cel.errors import EvalError
from fastapi_core.cel.functions import library
from fastapi_core.cel.library.urls import parse_request
from fastapi_core.cel.values import NONE, Opaque, Optional
from fastapi_core.meta import names

_UUID: Final = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_DATE_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)
_DATE_TIME_SIZE: Final = 78


class Format(Opaque):
    """A check of texts: it returns what is wrong. `pattern_size` is what cost takes for its pattern."""

    __slots__ = ("check", "name", "pattern_size")
    cel_type = "kubernetes.NamedFormat"

    def __init__(self, name: str, check: Callable[[str], list[str]], pattern_size: int) -> None:
        self.name = name
        self.check = check
        self.pattern_size = pattern_size


def _prefix(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """The check of a text that more will be put after."""

    def checked(text: str) -> list[str]:
        return check(names.mask_trailing_dash(text))

    return checked


def _one(complaint: str, valid: Callable[[str], bool]) -> Callable[[str], list[str]]:
    def checked(text: str) -> list[str]:
        return [] if valid(text) else [complaint]

    return checked


def _uri(text: str) -> list[str]:
    try:
        parse_request(text)
    except ValueError as error:
        return [str(error)]
    return []


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_date(text: str) -> bool:
    try:
        times.from_date(text)
    except EvalError:
        return False
    return True


def _is_date_time(text: str) -> bool:
    if not _DATE_TIME.fullmatch(text):
        return False
    try:
        times.from_date_time(text)
    except EvalError:
        return False
    return True


def _label(text: str) -> list[str]:
    return names.dns1123_label(text, "bytes")


def _subdomain(text: str) -> list[str]:
    return names.dns1123_subdomain(text, "bytes")


def _label_1035(text: str) -> list[str]:
    return names.dns1035_label(text, "bytes")


FORMATS: Final[dict[str, Format]] = {
    "dns1123Label": Format("DNS1123Label", _label, 30),
    "dns1123Subdomain": Format("DNS1123Subdomain", _subdomain, 60),
    "dns1035Label": Format("DNS1035Label", _label_1035, 30),
    "qualifiedName": Format("QualifiedName", names.qualified_name, 60),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", _prefix(_label), 30),
    "dns1123SubdomainPrefix": Format("DNS1123SubdomainPrefix", _prefix(_subdomain), 60),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", _prefix(_label_1035), 30),
    "labelValue": Format("LabelValue", names.label_value, 40),
    "uri": Format("URI", _uri, 1103),
    "uuid": Format("uuid", _one("does not match the UUID format", lambda text: bool(_UUID.fullmatch(text))), 97),
    "byte": Format("byte", _one("invalid base64", _is_base64), 84),
    "date": Format("date", _one("invalid date", _is_date), _DATE_TIME_SIZE),
    "datetime": Format("datetime", _one("invalid datetime", _is_date_time), _DATE_TIME_SIZE),
}


def _named(name: str) -> Optional:
    found = FORMATS.get(name)
    return NONE if found is None else Optional(found)


def _validate(format_: Format, text: str) -> Optional:
    wrong = format_.check(text)
    return Optional(wrong) if wrong else NONE


def _getter(format_: Format) -> Callable[[], Format]:
    return lambda: format_


NAMED_FORMATS: Final = library(
    [
        ("format-validate Format::validate(string) -> optional(list(string))", _validate),
        ("format-named format.named(string) -> optional(Format)", _named),
        *[(f"format.{name} format.{name}() -> Format", _getter(format_)) for name, format_ in FORMATS.items()],
    ],
    since=(1, 31),
)
