"""What a patch can go wrong with, as the API error the client will see.

| kind          | code | reason                | message                                                      |
|---------------|------|-----------------------|--------------------------------------------------------------|
| bad_request   | 400  | BadRequest            | what is wrong with the patch document                        |
| too_many      | 413  | RequestEntityTooLarge | names the limit and the number of operations                 |
| unprocessable | 422  | Invalid               | one fixed sentence; the cause stays in `cause` for the log    |
| undecodable   | 422  | Invalid               | cause field `patch`: the result is not an object             |
| internal      | 500  | none                  | what the strategic merge found                               |
"""

from __future__ import annotations

from typing import Any

from fastapi_core.errors import REASON_CODES, APIError, FieldError, invalid

_UNPROCESSABLE = "the server rejected our request due to an error in our request"
_REASONS = {
    "bad_request": "BadRequest",
    "too_many": "RequestEntityTooLarge",
    "unprocessable": "Invalid",
    "undecodable": "Invalid",
    "internal": "",
}


class PatchError(APIError):
    """A patch that does not apply. `kind` is a row of the table above, `cause` the engine's own words."""

    def __init__(self, kind: str, message: str, *, value: Any = None) -> None:
        reason = _REASONS[kind]
        text = message
        details: dict[str, Any] | None = None
        if kind == "unprocessable":
            text, details = _UNPROCESSABLE, {}
        elif kind == "too_many":
            text = f"Request entity too large: {message}"
        elif kind == "undecodable":
            status = invalid("", "", "", [FieldError("Invalid value", "patch", message, value)])
            text, details = status.message, status.details
        super().__init__(reason, text, code=REASON_CODES.get(reason, 500), details=details)
        self.kind = kind
        self.cause = message


def too_deep() -> PatchError:
    """The answer to documents nested deeper than anyone writes them."""
    return PatchError("bad_request", "exceeded max depth")


def go_type(value: Any) -> str:
    """The name Go gives the dynamic type of a decoded JSON value."""
    if value is None:
        return "%!s(<nil>)"
    return _GO_TYPES[value.__class__]


_GO_TYPES = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
}


def go_format(value: Any) -> str:
    """A decoded JSON value as Go's %v prints it (keys sorted)."""
    if value is None:
        return "<nil>"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go_format(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(go_format, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _go_float(value)
    return str(value)


def _go_float(value: float) -> str:
    """Shortest form; the exponent form begins at 1e21 and below 1e-4, with at least two digits, as in Go."""
    if value == 0 or 1e-4 <= abs(value) < 1e21:
        text = repr(value)
        if "e" in text:  # Python switches to the exponent form at 1e16
            text = f"{value:.0f}"
        return text.removesuffix(".0")
    mantissa, _, exponent = repr(value).partition("e")
    if not exponent:
        mantissa, _, exponent = f"{value:e}".partition("e")
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa.removesuffix('.0')}e{int(exponent):+03d}"
