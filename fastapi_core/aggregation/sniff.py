"""The content type of an answer that has none, from its first bytes, as the MIME Sniffing Standard has servers guess it."""

from __future__ import annotations

from typing import Final

LENGTH: Final = 512
"""Bytes that are looked at."""
TEXT: Final = b"text/plain; charset=utf-8"
_SPACE: Final = b"\t\n\x0c\r "
_HTML: Final = (
    b"<!doctype html", b"<html", b"<head", b"<script", b"<iframe", b"<h1", b"<div", b"<font", b"<table", b"<a", b"<style",
    b"<title", b"<b", b"<body", b"<br", b"<p", b"<!--",
)  # fmt: skip
_STARTS: Final = (
    (b"%PDF-", b"application/pdf"),
    (b"%!PS-Adobe-", b"application/postscript"),
    (b"\xfe\xff", b"text/plain; charset=utf-16be"),
    (b"\xff\xfe", b"text/plain; charset=utf-16le"),
    (b"\xef\xbb\xbf", TEXT),
    (b"\x00\x00\x01\x00", b"image/x-icon"),
    (b"BM", b"image/bmp"),
    (b"GIF87a", b"image/gif"),
    (b"GIF89a", b"image/gif"),
    (b"\x89PNG\r\n\x1a\n", b"image/png"),
    (b"\xff\xd8\xff", b"image/jpeg"),
    (b"OggS\x00", b"application/ogg"),
    (b"\x1f\x8b\x08", b"application/x-gzip"),
    (b"PK\x03\x04", b"application/zip"),
    (b"\x00asm", b"application/wasm"),
)
_BINARY: Final = frozenset([*range(9), 11, *range(14, 27), *range(28, 32)])


def content_type(data: bytes) -> bytes:
    """The guess for what begins like that."""
    data = data[:LENGTH]
    stripped = data.lstrip(_SPACE)
    lowered = stripped[:20].lower()
    for tag in _HTML:
        if lowered.startswith(tag) and stripped[len(tag) : len(tag) + 1] in (b" ", b">"):
            return b"text/html; charset=utf-8"
    if stripped.startswith(b"<?xml"):
        return b"text/xml; charset=utf-8"
    for start, found in _STARTS:
        if data.startswith(start):
            return found
    return b"application/octet-stream" if _BINARY.intersection(data) else TEXT
