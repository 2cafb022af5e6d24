"""What decoding can fail with. The text is the reference's; the caller puts it into a Status."""

from __future__ import annotations


class DecodeError(ValueError):
    """Bytes or trees that cannot be read as what they should be; `str()` is the reference's text."""


class TypeMismatch(DecodeError):  # noqa: N818 - a mismatch is what it is, with its text
    """A JSON value of the wrong type or form for its field."""
