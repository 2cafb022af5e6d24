"""IP addresses, prefixes of them, and URLs."""

from __future__ import annotations

import ipaddress
import math
import re
from typing import Any, Final

from fastapi_core.cel.errors import EvalError, no_overload
from fastapi_core.cel.functions import library
from fastapi_core.cel.values import Opaque
from fastapi_core.errors import go_quote

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class IPValue(Opaque):
    """An address."""

    __slots__ = ("address",)
    cel_type = "net.IP"

    def __init__(self, address: Address) -> None:
        self.address = address

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IPValue) and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.address)

    def __str__(self) -> str:
        return str(self.address)

    def size(self) -> int:
        return self.address.max_prefixlen // 8


class CIDRValue(Opaque):
    """An address and how many of its bits are the prefix."""

    __slots__ = ("address", "bits")
    cel_type = "net.CIDR"

    def __init__(self, address: Address, bits: int) -> None:
        self.address = address
        self.bits = bits

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CIDRValue) and (self.address, self.bits) == (other.address, other.bits)

    def __hash__(self) -> int:
        return hash((self.address, self.bits))

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"

    def size(self) -> int:
        return math.ceil(self.bits / 8)

    def _number(self, address: Address) -> int:
        return int(address) >> (self.address.max_prefixlen - self.bits)

    def covers(self, address: Address) -> bool:
        return self.address.version == address.version and self._number(self.address) == self._number(address)

    def masked(self) -> CIDRValue:
        rest = self.address.max_prefixlen - self.bits
        number = int(self.address) >> rest << rest
        return CIDRValue(type(self.address)(number), self.bits)


def _failure(text: str, reason: str) -> str:
    return f"ParseAddr({go_quote(text)}): {reason}"


def _parse(text: str) -> Address:
    """An address without a zone; ValueError with Go's text."""
    for character in text:
        if character == ".":
            return _parse_v4(text)
        if character == ":":
            return _parse_v6(text)
        if character == "%":
            raise ValueError(_failure(text, "missing IPv6 address"))
    raise ValueError(_failure(text, "unable to parse IP"))


def _parse_v4(text: str) -> Address:
    fields: list[int] = []
    parts = text.split(".")
    for position, part in enumerate(parts):
        if not part:
            raise ValueError(_failure(text, "IPv4 field must have at least one digit"))
        bad = re.search(r"[^0-9]", part, re.ASCII)
        if bad:
            rest = text[text.index(part) + bad.start() :] if position == 0 else part[bad.start() :]
            raise ValueError(_failure(text, f"unexpected character (at {go_quote(rest)})"))
        if len(part) > 1 and part[0] == "0":
            raise ValueError(_failure(text, "IPv4 field has octet with leading zero"))
        if len(part) > 3 or int(part) > 255:
            raise ValueError(_failure(text, "IPv4 field has value >255"))
        if position > 3:
            raise ValueError(_failure(text, "IPv4 address too long"))
        fields.append(int(part))
    if len(fields) < 4:
        raise ValueError(_failure(text, "IPv4 address too short"))
    return ipaddress.IPv4Address(bytes(fields))


def _parse_v6(text: str) -> Address:
    address, _, zone = text.partition("%")
    if "%" in text and not zone:
        raise ValueError(_failure(text, "zone must be a non-empty string"))
    try:
        parsed = ipaddress.IPv6Address(address)
    except ValueError:
        raise ValueError(_failure(text, _v6_reason(address))) from None
    if zone:
        raise ZoneError
    return parsed


class ZoneError(Exception):
    """An address with a zone."""


def _v6_reason(text: str) -> str:
    bad = re.search(r"[^0-9a-fA-F:.]", text)
    if bad:
        return f"unexpected character, want colon (at {go_quote(text[bad.start() :])})"
    if text.count("::") > 1 or ":::" in text:
        return "multiple :: in address"
    wide = re.search(r"[0-9a-fA-F]{5,}", text)
    if wide:
        return f"each group must have 4 or fewer digits (at {go_quote(text[wide.start() :])})"
    if text.endswith(":") and not text.endswith("::"):
        return 'colon must be followed by more characters (at ":")'
    if text.count(":") < 7 and "::" not in text:
        return "address string too short"
    return "trailing garbage after address"


def _ip(text: str) -> IPValue:
    try:
        address = _parse(text)
    except ZoneError:
        raise EvalError(f"IP address {go_quote(text)} with zone value is not allowed") from None
    except ValueError as error:
        shown = f"IP Address {go_quote(text)} parse error during conversion from string: {error}"
        raise EvalError(shown) from None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise EvalError(f"IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return IPValue(address)


def _is_ip(text: str) -> bool:
    try:
        _ip(text)
    except EvalError:
        return False
    return True


_PREFIX: Final = "network address parse error during conversion from string: "


def _cidr(text: str) -> CIDRValue:
    # The text of the prefix comes twice, as in the reference.
    try:
        address, bits = _parse_prefix(text)
    except ValueError as error:
        raise EvalError(f"{_PREFIX}{_PREFIX}{error}") from None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise EvalError(f"{_PREFIX}IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return CIDRValue(address, bits)


def _parse_prefix(text: str) -> tuple[Address, int]:
    failure = f"netip.ParsePrefix({go_quote(text)}): "
    before, slash, bits = text.rpartition("/")
    if not slash:
        raise ValueError(failure + "no '/'")
    try:
        address = _parse(before)
    except ZoneError:
        raise ValueError(failure + "IPv6 zones cannot be present in a prefix") from None
    except ValueError as error:
        raise ValueError(failure + str(error)) from None
    if not re.fullmatch(r"[1-9][0-9]*|0", bits, re.ASCII):
        raise ValueError(f"{failure}bad bits after slash: {go_quote(bits)}")
    if len(bits) > 3 or int(bits) > address.max_prefixlen:
        raise ValueError(failure + "prefix length out of range")
    return address, int(bits)


def _is_cidr(text: str) -> bool:
    try:
        _cidr(text)
    except EvalError:
        return False
    return True


def _canonical(text: str) -> bool:
    return str(_ip(text)) == text


def _contains_text(net: CIDRValue, text: str) -> bool:
    try:
        return net.covers(_ip(text).address)
    except EvalError:
        raise no_overload() from None


def _contains_cidr(outer: CIDRValue, inner: CIDRValue) -> bool:
    return outer.bits <= inner.bits and outer.covers(inner.masked().address)


def _global_unicast(value: IPValue) -> bool:
    address = value.address
    if isinstance(address, ipaddress.IPv4Address) and int(address) == 0xFFFFFFFF:
        return False
    return not (address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local)


def _link_local_multicast(value: IPValue) -> bool:
    address = value.address
    if isinstance(address, ipaddress.IPv4Address):
        return int(address) >> 8 == 0xE00000
    return int(address) >> 112 & 0xFF0F == 0xFF02


def _strings(value: Any) -> str:
    return str(value)


NETWORKS: Final = library(
    [
        ("string_to_ip ip(string) -> IP", _ip),
        ("ip_family IP::family() -> int", lambda value: value.address.version),
        ("ip_is_canonical ip.isCanonical(string) -> bool", _canonical),
        ("ip_is_unspecified IP::isUnspecified() -> bool", lambda value: value.address.is_unspecified),
        ("ip_is_loopback IP::isLoopback() -> bool", lambda value: value.address.is_loopback),
        ("ip_is_link_local_multicast IP::isLinkLocalMulticast() -> bool", _link_local_multicast),
        ("ip_is_link_local_unicast IP::isLinkLocalUnicast() -> bool", lambda value: value.address.is_link_local),
        ("ip_is_global_unicast IP::isGlobalUnicast() -> bool", _global_unicast),
        ("is_ip isIP(string) -> bool", _is_ip),
        ("ip_to_string string(IP) -> string", _strings),
        ("string_to_cidr cidr(string) -> CIDR", _cidr),
        ("cidr_contains_ip_string CIDR::containsIP(string) -> bool", _contains_text),
        ("cidr_contains_ip_ip CIDR::containsIP(IP) -> bool", lambda net, value: net.covers(value.address)),
        (
            "cidr_contains_cidr_string CIDR::containsCIDR(string) -> bool",
            lambda net, text: _contains_cidr(net, _cidr(text)),
        ),
        ("cidr_contains_cidr CIDR::containsCIDR(CIDR) -> bool", _contains_cidr),
        ("cidr_ip CIDR::ip() -> IP", lambda net: IPValue(net.address)),
        ("cidr_prefix_length CIDR::prefixLength() -> int", lambda net: net.bits),
        ("cidr_masked CIDR::masked() -> CIDR", lambda net: net.masked()),
        ("is_cidr isCIDR(string) -> bool", _is_cidr),
        ("cidr_to_string string(CIDR) -> string", _strings),
    ],
    since=(1, 30),
)
