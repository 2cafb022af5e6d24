"""Which versions and resources are served: `--runtime-config`, as the reference reads it.

Generally available versions are served unless they are turned off, alpha and beta ones when they are asked for. What is
said of a resource counts more than what is said of its version, and that more than what is said of its maturity.
"""

from __future__ import annotations

from collections.abc import Iterable

from fastapi_core.apis.resources import builtin, optional
from fastapi_core.options.gates import Gates
from fastapi_core.registry.definition import ResourceDefinition

_ALL = ("api/all", "api/ga", "api/beta", "api/alpha")


class Enablement:
    """What a command line says about versions and resources."""

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        """Raises ValueError for keys and values the reference refuses, with its texts."""
        self._stages: dict[str, bool] = {"ga": True, "beta": False, "alpha": False}
        self._versions: dict[tuple[str, str], bool] = {}
        self._resources: dict[tuple[str, str, str], bool] = {}
        settings = dict(pairs)
        if set(settings) == {"api/all"} and settings["api/all"] == "false":
            raise ValueError("invalid key with only api/all=false")
        known = {(d.group, d.version) for d in _everything()}
        unknown = sorted(
            f"{group}/{version}" if group == "api" else group
            for group, version in (_split(key)[:2] for key in settings if key not in _ALL)
            if group not in {known_group for known_group, _ in known}
        )
        if unknown:
            raise ValueError(f"unknown api groups {','.join(unknown)}")
        for name in _ALL:
            if name in settings:
                value = _boolean(name, settings[name])
                stage = name.partition("/")[2]
                self._stages |= dict.fromkeys(self._stages, value) if stage == "all" else {stage: value}
        for key, text in settings.items():
            if key in _ALL:
                continue
            group, version, resource = _split(key)
            if (group, version) not in known:
                raise ValueError(f"group version {group}/{version} that has not been registered")
            value = _boolean(key, text)
            if resource:
                self._resources[group, version, resource] = value
            else:
                self._versions[group, version] = value

    def serves(self, definition: ResourceDefinition) -> bool:
        """Whether a resource in one version is served, apart from its gate."""
        group, version = definition.group, definition.version
        explicit = self._resources.get((group, version, definition.plural))
        if explicit is not None:
            return explicit
        return self._versions.get((group, version), self._stages[_stage(version)])


def served(pairs: Iterable[tuple[str, str]], gates: Gates) -> tuple[ResourceDefinition, ...]:
    """The built-in resources that a server with these settings serves. Raises ValueError."""
    given = tuple(pairs)
    if not given:
        return builtin()
    enablement = Enablement(given)
    gated = {(d.group, d.version, d.plural): gate for d, gate in optional() if gate}
    closed = {key for key, gate in gated.items() if not gates.enabled(gate)}
    return tuple(
        definition
        for definition in _everything()
        if enablement.serves(definition) and (definition.group, definition.version, definition.plural) not in closed
    )


def _everything() -> list[ResourceDefinition]:
    found = [*builtin(), *(definition for definition, _ in optional())]
    return sorted(found, key=lambda d: (d.group, d.version, d.plural))


def _split(key: str) -> tuple[str, str, str]:
    """Group, version and resource of a key; the core group is `api/v1` or `v1`."""
    if key == "v1":
        return "", "v1", ""
    parts = key.split("/")
    if len(parts) not in (2, 3):
        raise ValueError(f"runtime-config invalid key {key}")
    group, version = parts[:2]
    if (group, version) == ("api", "v1"):
        group = ""
    return group, version, parts[2] if len(parts) == 3 else ""


def _stage(version: str) -> str:
    return "alpha" if "alpha" in version else "beta" if "beta" in version else "ga"


def _boolean(key: str, text: str) -> bool:
    if text in ("", "1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise ValueError(f'invalid value of {key}: {text}, err: strconv.ParseBool: parsing "{text}": invalid syntax')
