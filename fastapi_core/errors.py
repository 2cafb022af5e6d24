"""The errors that cross layers: one tree, one table of reason and code.

Back ends raise `StorageError`; only the registry turns those into an `APIError`; only `request/status.py` turns an
`APIError` into bytes. Texts are the reference's, clients print them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fastapi_core.records import dataclass

#: reason -> HTTP code of `metav1.StatusReason`.
REASON_CODES: dict[str, int] = {
    "BadRequest": 400,
    "Unauthorized": 401,
    "Forbidden": 403,
    "NotFound": 404,
    "MethodNotAllowed": 405,
    "NotAcceptable": 406,
    "AlreadyExists": 409,
    "Conflict": 409,
    "Gone": 410,
    "Expired": 410,
    "RequestEntityTooLarge": 413,
    "UnsupportedMediaType": 415,
    "Invalid": 422,
    "TooManyRequests": 429,
    "InternalError": 500,
    "ServerTimeout": 500,
    "StoreReadError": 500,
    "ServiceUnavailable": 503,
    "Timeout": 504,
}


class APIError(Exception):
    """A failed request as the client will see it: a `Status` object.

    `reason` may be empty (the reference answers some failures so); then `code` must be given.
    `details` is the `StatusDetails` tree; `headers` are added to the response (for example Allow).
    """

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        code: int | None = None,
        details: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.code = REASON_CODES[reason] if code is None else code
        self.details = details
        self.metadata = metadata or {}

    @property
    def retry_after(self) -> int:
        """Seconds for the Retry-After header; 0 for none."""
        return int((self.details or {}).get("retryAfterSeconds", 0))

    def to_status(self) -> dict[str, Any]:
        """The `v1.Status` tree, in the reference's field order."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status


#: A `FieldError.value` that is not printed, for the few errors of the reference that leave it out.
OMITTED = object()


@dataclass(frozen=True, slots=True)
class FieldError:
    """One entry of a validation error list (`field.Error` of the reference).

    `type` is the text part ("Required value", "Invalid value", ...); `value` is printed for the types that show it.
    """

    type: str
    field: str
    detail: str = ""
    value: Any = None

    def body(self) -> str:
        """The message without the field path, as in `details.causes[].message`."""
        text = _SHOWN_AS.get(self.type, self.type)
        if self.type in _VALUE_SHOWN and self.value is not OMITTED:
            text += ": " + go_value(self.value)
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.field}: {self.body()}"

    def cause(self) -> dict[str, str]:
        """The `StatusCause` tree."""
        return {"reason": CAUSE_REASONS[self.type], "message": self.body(), "field": self.field}


_MOST_ERRORS = 10_000
"""Errors that an answer tells at most."""
_MOST_TEXT = 4 << 20
"""Characters of them, all together."""

CAUSE_REASONS = {
    "Not found": "FieldValueNotFound",
    "Required value": "FieldValueRequired",
    "Duplicate value": "FieldValueDuplicate",
    "Invalid value": "FieldValueInvalid",
    "Unsupported value": "FieldValueNotSupported",
    "Forbidden": "FieldValueForbidden",
    "Too long": "FieldValueTooLong",
    "Too many": "FieldValueTooMany",
    "Internal error": "InternalError",
    "TypeInvalid": "FieldValueTypeInvalid",
}
_VALUE_SHOWN = frozenset(
    {"Not found", "Duplicate value", "Invalid value", "Unsupported value", "Too many", "TypeInvalid"}
)
_SHOWN_AS = {"TypeInvalid": "Invalid value"}


#: What Go escapes in JSON besides what must be.
_MARKUP = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})


def go_value(value: Any) -> str:
    """A value as the reference prints it inside a validation message."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return go_quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return go_float(value)
    if isinstance(value, int):
        return str(value)
    return _json(value)


def _json(value: Any) -> str:
    import orjson

    from fastapi_core._ext import jsonscan

    try:
        return jsonscan.go_style(orjson.dumps(value), go_json_number).decode()
    except TypeError:  # integers of more than 64 bits
        import json

        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).translate(_MARKUP)


def _without_exponent(text: str) -> str:
    from decimal import Decimal

    return format(Decimal(text), "f")


def go_json_number(value: float) -> bytes:
    """A float as Go's encoder writes it: no exponent from 1e-6 up to 1e21."""
    if value == 0:
        return b"-0" if str(value).startswith("-") else b"0"
    size = abs(value)
    if 1e-6 <= size < 1e21:
        if value.is_integer() and size < 2**53:
            return b"%d" % int(value)
        text = repr(value).removesuffix(".0")
        return (_without_exponent(text) if "e" in text else text).encode()
    mantissa, _, exponent = repr(value).partition("e")
    digits = exponent.lstrip("+-0")
    return f"{mantissa.removesuffix('.0')}e{'-' if exponent.startswith('-') else '+'}{digits}".encode()


def go_float(value: float) -> str:
    """The shortest text that is the same number, with an exponent from 1e+06 and below 1e-04, as Go's %g."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if str(value).startswith("-") else "0"
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        whole, _, fraction = mantissa.partition(".")
        digits = (whole.lstrip("-") + fraction).lstrip("0")
        scale = (
            len(whole.lstrip("-")) - 1 if whole.lstrip("-") != "0" else -(len(fraction) - len(fraction.lstrip("0")) + 1)
        )
    else:
        digits = mantissa.replace(".", "").lstrip("-")
        scale = int(exponent)
    digits = digits.rstrip("0") or "0"
    sign = "-" if value < 0 else ""
    if scale < -4 or scale >= 6:
        tail = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{tail}e{'-' if scale < 0 else '+'}{abs(scale):02d}"
    if scale < 0:
        return f"{sign}0.{'0' * (-scale - 1)}{digits}"
    if len(digits) <= scale + 1:
        return f"{sign}{digits}{'0' * (scale + 1 - len(digits))}"
    return f"{sign}{digits[: scale + 1]}.{digits[scale + 1 :]}"


_QUOTE = {
    '"': '\\"',
    "\\": "\\\\",
    "\n": "\\n",
    "\t": "\\t",
    "\r": "\\r",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\v": "\\v",
}


def go_quote(text: str) -> str:
    """A string as Go's %q prints it."""
    out = []
    for ch in text:
        if ch in _QUOTE:
            out.append(_QUOTE[ch])
        elif ch.isprintable():
            out.append(ch)
        elif ord(ch) < 0x80:
            out.append(f"\\x{ord(ch):02x}")
        else:
            out.append(f"\\u{ord(ch):04x}" if ord(ch) <= 0xFFFF else f"\\U{ord(ch):08x}")
    return '"' + "".join(out) + '"'


def qualified(resource: str, group: str) -> str:
    """`deployments.apps`, or just `pods` in the core group."""
    return f"{resource}.{group}" if group else resource


def _details(name: str, group: str, kind: str, **more: Any) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    details.update({k: v for k, v in more.items() if v})
    return details


def bad_request(message: str) -> APIError:
    return APIError("BadRequest", message)


def unauthorized() -> APIError:
    return APIError("Unauthorized", "Unauthorized")


def not_found(resource: str, group: str, name: str) -> APIError:
    return APIError(
        "NotFound", f"{qualified(resource, group)} {go_quote(name)} not found", details=_details(name, group, resource)
    )


def no_such_resource() -> APIError:
    """404 of a path that no resource serves."""
    return APIError("NotFound", "the server could not find the requested resource", details={})


def already_exists(resource: str, group: str, name: str) -> APIError:
    return APIError(
        "AlreadyExists",
        f"{qualified(resource, group)} {go_quote(name)} already exists",
        details=_details(name, group, resource),
    )


def conflict(resource: str, group: str, name: str, message: str) -> APIError:
    return APIError(
        "Conflict",
        f"Operation cannot be fulfilled on {qualified(resource, group)} {go_quote(name)}: {message}",
        details=_details(name, group, resource),
    )


def forbidden(resource: str, group: str, name: str, message: str) -> APIError:
    text = (
        f"{qualified(resource, group)} {go_quote(name)} is forbidden: {message}"
        if name
        else (f"{qualified(resource, group)} is forbidden: {message}" if resource else f"forbidden: {message}")
    )
    return APIError("Forbidden", text, details=_details(name, group, resource))


def invalid(kind: str, group: str, name: str, errors: Sequence[FieldError]) -> APIError:
    """422 with every error: the message lists each text once, `details.causes` keeps duplicates.

    Of errors beyond all measure the first are told, and how many more there are.
    """
    told = _bearable(errors)
    texts = list(dict.fromkeys(str(e) for e in told))
    if len(told) < len(errors):
        texts.append(f"and {len(errors) - len(told)} more errors")
    joined = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]" if texts else "<nil>"
    details = _details(name, group, kind, causes=[e.cause() for e in told])
    return APIError("Invalid", f"{qualified(kind, group)} {go_quote(name)} is invalid: {joined}", details=details)


def _bearable(errors: Sequence[FieldError]) -> Sequence[FieldError]:
    """The errors that an answer has room for: each prints its value, and the values of many make more than was sent."""
    if len(errors) <= 100:
        return errors
    size = 0
    for number, error in enumerate(errors[:_MOST_ERRORS]):
        size += len(error.field) + len(error.body())
        if size > _MOST_TEXT:
            return errors[: number + 1]
    return errors[:_MOST_ERRORS]


def expired(message: str) -> APIError:
    return APIError("Expired", message)


def internal(message: str) -> APIError:
    return APIError("InternalError", f"Internal error occurred: {message}", details={"causes": [{"message": message}]})


def method_not_allowed() -> APIError:
    return APIError("MethodNotAllowed", "the server does not allow this method on the requested resource", details={})


def not_acceptable(accepted: Iterable[str]) -> APIError:
    return APIError("NotAcceptable", "only the following media types are accepted: " + ", ".join(accepted))


def unsupported_media_type(accepted: Iterable[str]) -> APIError:
    return APIError(
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted),
    )


def too_large(limit: int) -> APIError:
    return APIError("RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def timeout(message: str, *, retry_after: int = 0, causes: list[dict[str, str]] | None = None) -> APIError:
    details: dict[str, Any] = {}
    if causes:
        details["causes"] = causes
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    return APIError("Timeout", "Timeout: " + message, details=details)


def too_large_resource_version(requested: int, current: int) -> APIError:
    """504 of a read that asked for a revision the server has not reached in time."""
    text = f"Too large resource version: {requested}, current: {current}"
    return timeout(
        text, retry_after=1, causes=[{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    )
