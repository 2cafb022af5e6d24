"""Formats beyond names: each check returns the reference's messages, an empty list when all is well."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Any, Final

from fastapi_core.errors import go_quote
from fastapi_core.meta import names
from fastapi_core.meta.patterns import Pattern

_CACHE: Final = 8192
subdomain = lru_cache(_CACHE)(names.dns1123_subdomain)
label = lru_cache(_CACHE)(names.dns1123_label)
label1035 = lru_cache(_CACHE)(names.dns1035_label)
underscore = lru_cache(_CACHE)(names.dns1123_subdomain_underscore)
qualified = lru_cache(_CACHE)(names.qualified_name)
label_key = qualified
label_value = lru_cache(_CACHE)(names.label_value)
config_key = lru_cache(_CACHE)(names.config_map_key)
port_name = lru_cache(_CACHE)(names.port_name)
header_name = lru_cache(_CACHE)(names.http_header_name)
wildcard = lru_cache(_CACHE)(names.wildcard_dns1123_subdomain)

IP: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
CIDR: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
DOMAIN_PATH: Final = 'must be a domain-prefixed path (such as "acme.io/foo")'
C_IDENTIFIER: Final = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
    "or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"
)
PORT: Final = "must be between 1 and 65535, inclusive"
FINALIZER_NAMES: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_identifier = Pattern(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_path_characters = Pattern(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", re.ASCII)


def anything(value: str) -> list[str]:
    """No format."""
    return []


def address(value: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address a text stands for; leading zeros make an IPv4 address bad, as in Go."""
    try:
        found = ipaddress.ip_address(value)
    except ValueError:
        return None
    return None if "%" in value else found


LEADING_ZEROS: Final = "must not have leading 0s"
MAPPED: Final = "must not be an IPv4-mapped IPv6 address"
_quads = Pattern(r"[0-9]{1,3}(\.[0-9]{1,3}){3}", re.ASCII)


def sloppy(value: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a text has been taken for since the first versions: leading zeros count for nothing, and an IPv4
    address within an IPv6 one is meant."""
    if _quads.fullmatch(value):
        value = ".".join(str(int(part)) for part in value.split("."))
    found = address(value)
    return (found.ipv4_mapped or found) if isinstance(found, ipaddress.IPv6Address) else found


@lru_cache(_CACHE)
def ip(value: str) -> list[str]:
    if sloppy(value) is None:
        return [IP]
    found = address(value)
    if found is None:
        return [LEADING_ZEROS]
    if found.version == 6 and found.ipv4_mapped is not None:
        return [MAPPED]
    return []


def strict_ip(value: str) -> list[str]:
    """An address in the one form it should have."""
    problems = ip(value)
    if not problems and str(address(value)) != value:
        return [f"must be in canonical form ({go_quote(str(address(value)))})"]
    return problems


def address_warnings(value: str, path: str) -> list[str]:
    """About an address in another form than it should have."""
    found = sloppy(value)
    if found is None:
        return []
    if ip(value):
        return [f"{path}: non-standard IP address {go_quote(value)} is invalid: use {go_quote(str(found))}"]
    if found.version == 6 and str(found) != value:
        text = f"IPv6 address {go_quote(value)} should be in RFC 5952 canonical format ({go_quote(str(found))})"
        return [f"{path}: {text}"]
    return []


@lru_cache(_CACHE)
def _sloppy_network(
    value: str,
) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, ipaddress.IPv4Network | ipaddress.IPv6Network] | None:
    base, slash, bits = value.partition("/")
    found = sloppy(base)
    if not slash or found is None or not (bits.isascii() and bits.isdigit()):
        return None
    size = int(bits)
    if ":" in base and found.version == 4:
        size -= 96
    if not 0 <= size <= found.max_prefixlen:
        return None
    return found, ipaddress.ip_network(f"{found}/{size}", strict=False)


def network(value: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """The network of a CIDR text, whatever its host bits."""
    found = _sloppy_network(value)
    return found[1] if found else None


def _zeros(value: str) -> bool:
    base, _, bits = value.partition("/")
    return address(base) is None or (len(bits) > 1 and bits[0] == "0")


def cidr(value: str) -> list[str]:
    """A network in the one form it should have."""
    problems = loose_cidr(value)
    if not problems and str(network(value)) != value:
        return [f"must be in canonical form ({go_quote(str(network(value)))})"]
    return problems


def interface(value: str) -> list[str]:
    """An address with the length of its network's prefix."""
    host, slash, bits = value.partition("/")
    found = sloppy(host)
    if found is None or not slash or not (bits.isascii() and bits.isdigit()) or int(bits) > found.max_prefixlen:
        return ["must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"]
    canonical = f"{found}/{int(bits)}"
    return [] if value == canonical else [f'must be in canonical form ("{canonical}")']


def loose_cidr(value: str) -> list[str]:
    """A network; its address may be written in any way that is not mistaken for another."""
    found = _sloppy_network(value)
    if found is None:
        return [CIDR]
    if _zeros(value):
        return ["must not have leading 0s in IP or prefix length"]
    if ":" in value and found[0].version == 4:
        return ["must not have an IPv4-mapped IPv6 address"]
    if found[0] != found[1].network_address:
        return ["must not have bits set beyond the prefix length"]
    return []


def network_warnings(value: str, path: str) -> list[str]:
    """About a network in another form than it should have."""
    found = _sloppy_network(value)
    if found is None:
        return []
    out = []
    base, net = found
    shown = go_quote(value)
    if base != net.network_address:
        choice = f"{go_quote(str(net))} or {go_quote(f'{base}/{net.max_prefixlen}')}"
        out.append(f"{path}: CIDR value {shown} is ambiguous in this context (should be {choice}?)")
    if _zeros(value) or (":" in value and base.version == 4):
        out.append(f"{path}: non-standard CIDR value {shown} is invalid: use {go_quote(str(net))}")
    if not out and net.version == 6 and str(net) != value:
        text = f"IPv6 CIDR value {shown} should be in RFC 5952 canonical format ({go_quote(str(net))})"
        out.append(f"{path}: {text}")
    return out


def special_address(value: str) -> list[str]:
    """Addresses that no endpoint may have."""
    found = sloppy(value)
    if found is None:
        return ["must be a valid IP address"]
    out = []
    if found.is_unspecified:
        out.append(f"may not be unspecified ({value})")
    if found.is_loopback:
        out.append("may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if found.is_link_local:
        out.append("may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if _link_local_multicast(found):
        out.append("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
    return out


def _link_local_multicast(found: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    packed = found.packed
    if found.version == 4:
        return packed[:3] == b"\xe0\x00\x00"
    return packed[0] == 0xFF and packed[1] & 0x0F == 0x02


def identifier(value: str) -> list[str]:
    """A name in C."""
    return [] if _identifier.fullmatch(value) else [C_IDENTIFIER]


def environment_name(value: str) -> list[str]:
    """A name of an environment variable: printable ASCII without an equals sign."""
    if all(" " <= mark <= "~" and mark != "=" for mark in value):
        return []
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


def domain_path(value: str) -> list[str]:
    """`acme.io/foo`."""
    domain, slash, rest = value.partition("/")
    if not slash or not domain or not rest:
        return [DOMAIN_PATH]
    out = list(subdomain(domain))
    if not _path_characters.fullmatch(rest):
        out.append("Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')")
    return out


def port(value: int) -> list[str]:
    return [] if 1 <= value <= 65535 else [PORT]


def port_or_name(value: Any) -> list[str]:
    """A port by number or by name."""
    if isinstance(value, str):
        return port_name(value)
    return [] if 1 <= value <= 65535 else [PORT]


def finalizer(value: str) -> list[str]:
    """A finalizer is a qualified name: with a domain, or one of the standard ones."""
    out = list(qualified(value))
    if "/" not in value and value not in FINALIZER_NAMES:
        out.append("name is neither a standard finalizer name nor is it fully qualified")
    return out


def absolute_mode(value: int) -> list[str]:
    """Permission bits of a file."""
    return [] if 0 <= value <= 0o777 else ["must be a number between 0 and 0777 (octal), both inclusive"]


def relative_path(value: str) -> list[str]:
    """A path that stays below where it starts."""
    out = []
    if value.startswith("/"):
        out.append("must be a relative path")
    if ".." in value.split("/"):
        out.append("must not contain '..'")
    return out
