"""A reader of the few DER structures of a certificate that decide who it is for, instead of an X.509 library:
importing one costs more start-up time and memory than all the rest of this package, for a few strings.
"""

from __future__ import annotations

from fastapi_core.meta.patterns import Pattern
from fastapi_core.records import dataclass

_SEQUENCE, _SET, _OID, _INTEGER, _VERSION = 0x30, 0x31, 0x06, 0x02, 0xA0
_UTC_TIME, _GENERALIZED_TIME = 0x17, 0x18
_ENCODINGS = {0x0C: "utf-8", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii", 0x1C: "utf-32-be", 0x1E: "utf-16-be"}
_TIME = Pattern(rb"(\d{2}|\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})Z")


class CertificateError(ValueError):
    """Bytes that are not the DER of a certificate as we understand it."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """What identifies a certificate and when it is valid (Unix seconds)."""

    subject: bytes
    """DER of the subject's name."""
    key: bytes
    """DER of the public key."""
    not_before: float
    not_after: float
    attributes: list[tuple[bytes, str]]
    """(attribute OID, value) pairs of the subject, in order."""


def element(data: bytes, start: int, end: int) -> tuple[int, int, int]:
    """Tag, start and end of the content of the element at `start`; bounds are checked against `end`."""
    if start + 2 > end:
        raise CertificateError("truncated element")
    tag, length = data[start], data[start + 1]
    start += 2
    if length & 0x80:
        size = length & 0x7F
        if not 1 <= size <= 4 or start + size > end:
            raise CertificateError("bad length")
        length = int.from_bytes(data[start : start + size], "big")
        start += size
    if start + length > end:
        raise CertificateError("element longer than its container")
    return tag, start, start + length


def _enter(data: bytes, start: int, end: int, tag: int) -> tuple[int, int]:
    found, inner, stop = element(data, start, end)
    if found != tag:
        raise CertificateError(f"expected tag {tag:#x}, found {found:#x}")
    return inner, stop


def read(der: bytes) -> Certificate:
    """The certificate; raises CertificateError."""
    start, end = _enter(der, 0, len(der), _SEQUENCE)
    start, end = _enter(der, start, end, _SEQUENCE)
    tag, _, stop = element(der, start, end)
    if tag == _VERSION:
        start = stop
    # serial number, signature algorithm, issuer
    for expected in (_INTEGER, _SEQUENCE, _SEQUENCE):
        _, start = _enter(der, start, end, expected)
    inner, stop = _enter(der, start, end, _SEQUENCE)
    not_before, inner = _time(der, inner, stop)
    not_after, _ = _time(der, inner, stop)
    subject_start = stop
    _, subject_end = _enter(der, subject_start, end, _SEQUENCE)
    _, key_end = _enter(der, subject_end, end, _SEQUENCE)
    name = der[subject_start:subject_end]
    return Certificate(name, der[subject_end:key_end], not_before, not_after, _attributes(name))


def _time(der: bytes, start: int, end: int) -> tuple[float, int]:
    """A time in Unix seconds, and where it ends."""
    from calendar import timegm

    tag, inner, stop = element(der, start, end)
    match = _TIME.fullmatch(der, inner, stop)
    if match is None or (tag, len(match[1])) not in ((_UTC_TIME, 2), (_GENERALIZED_TIME, 4)):
        raise CertificateError("bad time")
    year = int(match[1])
    if tag == _UTC_TIME:
        year += 1900 if year >= 50 else 2000
    if not (1 <= int(match[2]) <= 12 and 1 <= int(match[3]) <= 31 and year):
        raise CertificateError("bad time")
    return float(timegm((year, *(int(match[i]) for i in range(2, 7))))), stop


def _attributes(name: bytes) -> list[tuple[bytes, str]]:
    start, end = _enter(name, 0, len(name), _SEQUENCE)
    pairs: list[tuple[bytes, str]] = []
    while start < end:
        inner, stop = _enter(name, start, end, _SET)
        while inner < stop:
            attribute, after = _enter(name, inner, stop, _SEQUENCE)
            oid_start, oid_end = _enter(name, attribute, after, _OID)
            tag, value_start, value_end = element(name, oid_end, after)
            if tag in _ENCODINGS:
                try:
                    pairs.append((name[oid_start:oid_end], name[value_start:value_end].decode(_ENCODINGS[tag])))
                except UnicodeDecodeError:
                    raise CertificateError("undecodable name") from None
            inner = after
        start = stop
    return pairs


def subject(der: bytes) -> list[tuple[bytes, str]]:
    """(attribute OID, value) pairs of the subject, in order. Raises CertificateError."""
    return read(der).attributes
