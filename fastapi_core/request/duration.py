"""Go durations (`1m30s`) as they appear in the `timeout` parameter and in flags."""

from __future__ import annotations

import re

from fastapi_core.errors import go_quote

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_TERM = re.compile(r"(\d*)(?:(\.)(\d*))?([^\d.]*)", re.ASCII)
#: Largest magnitude a Go duration holds, in seconds.
_LIMIT = (1 << 63) / 1e9


def parse_duration(text: str) -> float:
    """Seconds of a Go duration; ValueError carries the reference's text."""
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0.0
    if not rest:
        raise ValueError(f"time: invalid duration {go_quote(text)}")
    total = 0.0
    while rest:
        match = _TERM.match(rest)
        if match is None or not (match[1] or match[3]):
            raise ValueError(f"time: invalid duration {go_quote(text)}")
        if not match[4]:
            raise ValueError(f"time: missing unit in duration {go_quote(text)}")
        if match[4] not in _UNITS:
            raise ValueError(f"time: unknown unit {go_quote(match[4])} in duration {go_quote(text)}")
        total += float(f"{match[1] or 0}.{match[3] or 0}") * _UNITS[match[4]]
        if total >= _LIMIT:
            raise ValueError(f"time: invalid duration {go_quote(text)}")
        rest = rest[match.end() :]
    return -total if text[0] == "-" else total
