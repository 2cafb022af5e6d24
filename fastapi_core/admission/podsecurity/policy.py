"""Which standard applies: levels, versions, and the labels of a namespace over the configured defaults."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from fastapi_core.errors import FieldError
from fastapi_core.records import dataclass

PREFIX: Final = "pod-security.kubernetes.io/"
PRIVILEGED, BASELINE, RESTRICTED = "privileged", "baseline", "restricted"
LEVELS: Final = (PRIVILEGED, BASELINE, RESTRICTED)
LATEST: Final = "latest"
BAD_LEVEL = "must be one of " + ", ".join(LEVELS)
BAD_VERSION = 'must be "latest" or "v1.x"'
MODES: Final = ("enforce", "audit", "warn")

_VERSION = re.compile(r"v1\.(0|[1-9][0-9]*)", re.ASCII)


class Standard(NamedTuple):
    """A level at a version (`latest` or `v1.N`)."""

    level: str
    version: str = LATEST

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"


_ANYTHING: Final = Standard(PRIVILEGED)


@dataclass(frozen=True, slots=True)
class Policy:
    """What is refused, what is noted in the audit log, what is warned about."""

    enforce: Standard = _ANYTHING
    audit: Standard = _ANYTHING
    warn: Standard = _ANYTHING

    @property
    def silent(self) -> bool:
        """Nothing to note or to warn about."""
        return self.audit.level == PRIVILEGED == self.warn.level

    @property
    def privileged(self) -> bool:
        return self.silent and self.enforce.level == PRIVILEGED


def minor(version: str) -> int | None:
    """N of `v1.N`, None for `latest` and for what is no version."""
    match = _VERSION.fullmatch(version)
    return int(match[1]) if match else None


def is_version(text: str) -> bool:
    return text == LATEST or minor(text) is not None


def strictness(level: str) -> int:
    return LEVELS.index(level)


def policy_of(labels: Mapping[str, str], defaults: Policy) -> tuple[Policy, tuple[FieldError, ...]]:
    """The policy of a namespace and what is wrong with its labels.

    A label that cannot be understood stands for restricted in enforce, for privileged in audit and warn, and for the
    latest version. A namespace that enforces more than is warned about by default is warned about that, too.
    """
    if not any(key.startswith(PREFIX) for key in labels):
        return defaults, ()
    problems: list[FieldError] = []
    chosen: dict[str, Standard] = {}
    for mode, fallback in zip(MODES, (RESTRICTED, PRIVILEGED, PRIVILEGED), strict=True):
        level, version = getattr(defaults, mode)
        given = labels.get(PREFIX + mode)
        if given is not None:
            level = given if given in LEVELS else fallback
            _complain(problems, mode, given, BAD_LEVEL, valid=given in LEVELS)
        given = labels.get(f"{PREFIX}{mode}-version")
        if given is not None:
            version = given if is_version(given) else LATEST
            _complain(problems, f"{mode}-version", given, BAD_VERSION, valid=is_version(given))
        chosen[mode] = Standard(level, version)
    enforce, warn = chosen["enforce"], chosen["warn"]
    explicit = labels.get(PREFIX + "enforce") in LEVELS and PREFIX + "warn" not in labels
    if explicit and strictness(enforce.level) > strictness(warn.level):
        version = warn.version if PREFIX + "warn-version" in labels else enforce.version
        chosen["warn"] = Standard(enforce.level, version)
    return Policy(**chosen), tuple(problems)


def _complain(problems: list[FieldError], label: str, value: str, text: str, *, valid: bool) -> None:
    if not valid:
        problems.append(FieldError("Invalid value", f"metadata.labels[{PREFIX}{label}]", text, value))
