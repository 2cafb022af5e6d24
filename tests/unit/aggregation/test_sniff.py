"""Guessed content types."""

from __future__ import annotations

import pytest

from fastapi_core.aggregation.sniff import content_type


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"ok", b"text/plain; charset=utf-8"),
        (b'{"a":1}', b"text/plain; charset=utf-8"),
        (b" \n<HTML>x", b"text/html; charset=utf-8"),
        (b"<htmlx>", b"text/plain; charset=utf-8"),
        (b"<!-- x", b"text/html; charset=utf-8"),
        (b"<?xml version", b"text/xml; charset=utf-8"),
        (b"\x1f\x8b\x08\x00", b"application/x-gzip"),
        (b"\x89PNG\r\n\x1a\n", b"image/png"),
        (b"\x00\x01\x02", b"application/octet-stream"),
        (b"a" * 600 + b"\x00", b"text/plain; charset=utf-8"),
        ("ä€".encode(), b"text/plain; charset=utf-8"),
    ],
)
def test_first_bytes_tell(data: bytes, expected: bytes) -> None:
    assert content_type(data) == expected
