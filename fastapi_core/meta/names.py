"""Formats of names, labels and keys: each check returns the reference's messages, an empty list when all is well.

Lengths are in bytes of UTF-8. Older checks of the reference say "characters" where newer ones say "bytes"; `unit` lets
a caller choose for the formats that occur with both.
"""

from __future__ import annotations

import ipaddress
import random
import re
from typing import Final

from fastapi_core.meta.patterns import Pattern

TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
"""Annotation of daemon sets that is a field inside the reference."""

_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035: Final = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_UNDERSCORE: Final = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*"
_KEY: Final = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = rf"({_KEY})?"
_CONFIG_KEY: Final = r"[-._a-zA-Z0-9]+"
_PERCENT: Final = r"[0-9]+%"
_HEADER: Final = r"[-A-Za-z0-9]+"

_label_re = Pattern(_LABEL, re.ASCII)
_label_1035_re = Pattern(_LABEL_1035, re.ASCII)
_subdomain_re = Pattern(_SUBDOMAIN, re.ASCII)
_underscore_re = Pattern(_UNDERSCORE, re.ASCII)
_wildcard_re = Pattern(r"\*\." + _SUBDOMAIN, re.ASCII)
_key_re = Pattern(_KEY, re.ASCII)
_value_re = Pattern(_VALUE, re.ASCII)
_config_key_re = Pattern(_CONFIG_KEY, re.ASCII)
_percent_re = Pattern(_PERCENT, re.ASCII)
_header_re = Pattern(_HEADER, re.ASCII)

#: Characters of generated suffixes: no vowels, nothing that is read as another.
_SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5
_GENERATED_MAX: Final = 63


def _rule(text: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{text} (e.g. {shown}regex used for validation is '{pattern}')"


_ENDS: Final = "must start and end with an alphanumeric character"
_LOWER: Final = "must consist of lower case alphanumeric characters"
_KEY_RULE: Final = f"must consist of alphanumeric characters, '-', '_' or '.', and {_ENDS}"
_KEY_EXAMPLES: Final = ("MyName", "my.name", "123-abc")

DNS1123_LABEL: Final = _rule(f"a lowercase RFC 1123 label {_LOWER} or '-', and {_ENDS}", _LABEL, "my-name", "123-abc")
DNS1123_SUBDOMAIN: Final = _rule(
    f"a lowercase RFC 1123 subdomain {_LOWER}, '-' or '.', and {_ENDS}", _SUBDOMAIN, "example.com"
)
DNS1123_UNDERSCORE: Final = _rule(
    f"a lowercase RFC 1123 subdomain {_LOWER}, '_', '-' or '.', and {_ENDS}", _UNDERSCORE, "example.com"
)
DNS1035_LABEL: Final = _rule(
    f"a DNS-1035 label {_LOWER} or '-', start with an alphabetic character, and end with an alphanumeric character",
    _LABEL_1035,
    "my-name",
    "abc-123",
)
WILDCARD_SUBDOMAIN: Final = _rule(
    f"a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which {_LOWER}, '-' or '.'"
    " and end with an alphanumeric character",
    r"\*\." + _SUBDOMAIN,
    "*.example.com",
)
LABEL_VALUE: Final = _rule(
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and {_ENDS}",
    _VALUE,
    "MyValue",
    "my_value",
    "12345",
)
QUALIFIED_NAME: Final = _rule(_KEY_RULE, _KEY, *_KEY_EXAMPLES)
CONFIG_MAP_KEY: Final = _rule(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY,
    "key.name",
    "KEY_NAME",
    "key-name",
)
PERCENT: Final = _rule(
    "a valid percent string must be a numeric string followed by an ending '%'", _PERCENT, "1%", "93%"
)
HTTP_HEADER: Final = _rule(
    "a valid HTTP header must consist of alphanumeric characters or '-'", _HEADER, "X-Header-Name"
)
EMPTY: Final = "must be non-empty"


def too_long(limit: int, unit: str = "bytes") -> str:
    return f"must be no more than {limit} {unit}"


def _size(value: str) -> int:
    return len(value) if value.isascii() else len(value.encode())


def dns1123_label(value: str, unit: str = "characters") -> list[str]:
    """One label of a host name: namespaces, container names."""
    out = [too_long(63, unit)] if _size(value) > 63 else []
    if not _label_re.fullmatch(value):
        out.append("must not contain dots" if _subdomain_re.fullmatch(value) else DNS1123_LABEL)
    return out


def dns1123_subdomain(value: str, unit: str = "characters") -> list[str]:
    """A host name: the names of most objects."""
    out = [too_long(253, unit)] if _size(value) > 253 else []
    return out if _subdomain_re.fullmatch(value) else [*out, DNS1123_SUBDOMAIN]


def dns1123_subdomain_underscore(value: str, unit: str = "characters") -> list[str]:
    """A host name whose labels may hold underscores."""
    out = [too_long(253, unit)] if _size(value) > 253 else []
    return out if _underscore_re.fullmatch(value) else [*out, DNS1123_UNDERSCORE]


def dns1035_label(value: str, unit: str = "characters") -> list[str]:
    """A label that begins with a letter: plurals, API versions."""
    out = [too_long(63, unit)] if _size(value) > 63 else []
    return out if _label_1035_re.fullmatch(value) else [*out, DNS1035_LABEL]


def wildcard_dns1123_subdomain(value: str, unit: str = "characters") -> list[str]:
    """`*.example.com`."""
    out = [too_long(253, unit)] if _size(value) > 253 else []
    return out if _wildcard_re.fullmatch(value) else [*out, WILDCARD_SUBDOMAIN]


def qualified_name(value: str) -> list[str]:
    """`[prefix/]name`: label keys, finalizers, resource names."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        form = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {QUALIFIED_NAME} {form}"]
    out = []
    if slash:
        out = [f"prefix part {text}" for text in ([EMPTY] if not prefix else dns1123_subdomain(prefix, "bytes"))]
    if not name:
        out.append(f"name part {EMPTY}")
    elif _size(name) > 63:
        out.append(f"name part {too_long(63)}")
    if not _key_re.fullmatch(name):
        out.append(f"name part {QUALIFIED_NAME}")
    return out


label_key = qualified_name


def annotation_key(value: str) -> list[str]:
    """A label key but for upper-case letters in its prefix."""
    return qualified_name(value.lower())


def label_value(value: str) -> list[str]:
    out = [too_long(63)] if _size(value) > 63 else []
    return out if _value_re.fullmatch(value) else [*out, LABEL_VALUE]


def config_map_key(value: str) -> list[str]:
    """A key of `data` in ConfigMaps and Secrets: also a file name."""
    if len(value) <= 253 and value[:1] != "." and _config_key_re.fullmatch(value):
        return []
    out = [too_long(253, "characters")] if _size(value) > 253 else []
    if not _config_key_re.fullmatch(value):
        out.append(CONFIG_MAP_KEY)
    if value == ".":
        out.append("must not be '.'")
    elif value == "..":
        out.append("must not be '..'")
    elif value.startswith(".."):
        out.append("must not start with '..'")
    return out


def path_segment(value: str) -> list[str]:
    """A name that stands in a URL path; the only format of RBAC names."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return [f"may not contain '{mark}'" for mark in "/%" if mark in value]


def port_name(value: str) -> list[str]:
    """A name of a port (an IANA service name)."""
    out = [too_long(15, "characters")] if _size(value) > 15 else []
    if not re.fullmatch(r"[-a-z0-9]+", value, re.ASCII):
        out.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search(r"[a-z]", value):
        out.append("must contain at least one letter (a-z)")
    if "--" in value:
        out.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        out.append("must not begin or end with a hyphen")
    return out


_IP: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def ip_address(value: str) -> list[str]:
    """An address in its one canonical spelling."""
    try:
        found = ipaddress.ip_address(value)
    except ValueError:
        octets = value.split(".")
        spelled = len(octets) == 4 and all(part.isdigit() and len(part) <= 3 and int(part) < 256 for part in octets)
        return ["must not have leading 0s"] if spelled else [_IP]
    return [] if str(found) == value else [f'must be in canonical form ("{found}")']


def port_number(value: int) -> list[str]:
    return [] if 1 <= value <= 65535 else ["must be between 1 and 65535, inclusive"]


def percent(value: str) -> list[str]:
    return [] if _percent_re.fullmatch(value) else [PERCENT]


def http_header_name(value: str) -> list[str]:
    return [] if _header_re.fullmatch(value) else [HTTP_HEADER]


def mask_trailing_dash(name: str) -> str:
    """A generateName as the name checks see it: a trailing dash is fine, the suffix follows it."""
    return name[:-2] + "a" if len(name) > 1 and name.endswith("-") else name


#: Seeded by the system. Suffixes need to differ, not to be secret.
_random: Final = random.Random()


def generate(base: str) -> str:
    """A name from a generateName: at most 63 bytes with a random suffix."""
    keep = _GENERATED_MAX - _SUFFIX_LENGTH
    suffix = "".join(_random.choices(_SUFFIX_ALPHABET, k=_SUFFIX_LENGTH))
    return base.encode()[:keep].decode(errors="ignore") + suffix
