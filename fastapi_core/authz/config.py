"""AuthorizationConfiguration: the file behind --authorization-config, decoded strictly and checked as a whole.

The --authorization-* flags become the same structure.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from fastapi_core.authz.base import Decision
from fastapi_core.authz.conditions import ConditionError, compile_condition
from fastapi_core.authz.modes import MODES, WEBHOOK, AuthorizerConfig, Condition, Settings
from fastapi_core.errors import FieldError, go_quote
from fastapi_core.meta.names import dns1123_subdomain
from fastapi_core.meta.time import parse_duration

GROUP = "apiserver.config.k8s.io"
VERSIONS = ("v1", "v1beta1", "v1alpha1")
KIND = "AuthorizationConfiguration"

_REVIEW_VERSIONS = ("v1", "v1beta1")
_POLICIES = {"NoOpinion": Decision.NO_OPINION, "Deny": Decision.DENY}
_LONGEST_TIMEOUT = 30.0


class ConfigError(ValueError):
    """Everything that is wrong with a configuration, one line each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)


def load(path: str) -> tuple[AuthorizerConfig, ...]:
    """The authorizers of a configuration file, in order. Raises OSError or ConfigError."""
    from fastapi_core.codec import decode

    with open(path, "rb") as file:
        data = file.read()
    try:
        parsed = decode.parse(data, "json" if data.lstrip()[:1] == b"{" else "yaml")
    except decode.DecodeError as error:
        raise ConfigError([str(error)]) from None
    return read(parsed.tree, list(parsed.complaints))


def read(tree: Any, problems: list[str] | None = None) -> tuple[AuthorizerConfig, ...]:
    """The authorizers of a decoded configuration; `problems` are what decoding found. Raises ConfigError."""
    checker = _Checker(problems or [])
    found = checker.document(tree)
    if checker.problems:
        raise ConfigError(checker.problems)
    return tuple(found)


_WEBHOOK = {
    "authorizedTTL": str, "cacheAuthorizedRequests": bool, "unauthorizedTTL": str, "cacheUnauthorizedRequests": bool,
    "timeout": str, "subjectAccessReviewVersion": str, "matchConditionSubjectAccessReviewVersion": str,
    "failurePolicy": str, "connectionInfo": {"type": str, "kubeConfigFile": str},
    "matchConditions": [{"expression": str}],
}  # fmt: skip
_SHAPE: Any = {
    "apiVersion": str,
    "kind": str,
    "authorizers": [{"type": str, "name": str, "webhook": _WEBHOOK}],
}
_MOST_CONDITIONS = 64
_NAMES = {str: "a text", bool: "true or false"}


class _Checker:
    """Collects everything that is wrong."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems

    def _add(self, type_: str, path: str, detail: str = "", value: Any = None) -> None:
        self.problems.append(str(FieldError(type_, path, detail, value)))

    def _required(self, path: str, detail: str = "") -> None:
        self._add("Required value", path, detail)

    def _choice(self, tree: dict[str, Any], member: str, path: str, choices: Sequence[str], detail: str = "") -> None:
        value = tree.get(member, "")
        if not value:
            self._required(f"{path}.{member}", detail)
        elif value not in choices:
            shown = "supported values: " + ", ".join(go_quote(choice) for choice in choices)
            self._add("Unsupported value", f"{path}.{member}", shown, value)

    def _conform(self, tree: Any, shape: Any, path: str) -> Any:
        """The tree without what has not the shape it should have, which is noted."""
        if isinstance(shape, dict):
            if not isinstance(tree, dict):
                self.problems.append(f"{path or 'the document'}: an object is expected")
                return {}
            found = {}
            for name, value in tree.items():
                where = f"{path}.{name}" if path else str(name)
                if name not in shape:
                    self.problems.append(f'unknown field "{where}"')
                elif value is not None:
                    found[name] = self._conform(value, shape[name], where)
            return found
        if isinstance(shape, list):
            if not isinstance(tree, list):
                self.problems.append(f"{path}: a list is expected")
                return []
            return [self._conform(item, shape[0], f"{path}[{index}]") for index, item in enumerate(tree)]
        if not isinstance(tree, shape):
            self.problems.append(f"{path}: {_NAMES[shape]} is expected")
            return shape()
        return tree

    def document(self, tree: Any) -> list[AuthorizerConfig]:
        tree = self._conform(tree, _SHAPE, "")
        group, _, version = tree.get("apiVersion", "").rpartition("/")
        if group != GROUP or version not in VERSIONS or tree.get("kind") != KIND:
            wanted = " or ".join(f"{GROUP}/{version}" for version in VERSIONS)
            self.problems.append(f"apiVersion: {wanted} is expected, and kind: {KIND}")
            return []
        entries = tree.get("authorizers", [])
        if not entries:
            self._required("authorizers", "at least one authorization mode must be defined")
        types: set[str] = set()
        names: set[str] = set()
        found = []
        for index, entry in enumerate(entries):
            path = f"authorizers[{index}]"
            type_, name = entry.get("type", ""), entry.get("name", "")
            self._type(type_, path, types)
            self._name(name, path, names)
            if type_ == WEBHOOK:
                found.append(self._webhook(name, entry.get("webhook"), f"{path}.webhook"))
                continue
            if "webhook" in entry:
                self._add("Invalid value", f"{path}.webhook", "may only be specified when type=Webhook", "non-null")
            found.append(AuthorizerConfig(type_, name))
        return found

    def _type(self, type_: str, path: str, seen: set[str]) -> None:
        if type_ in seen and type_ != WEBHOOK:
            self._add("Duplicate value", f"{path}.type", "", type_)
        else:
            self._choice({"type": type_}, "type", path, MODES)
        seen.add(type_)

    def _name(self, name: str, path: str, seen: set[str]) -> None:
        wrong = dns1123_subdomain(name)
        if not name:
            self._required(f"{path}.name")
        elif name in seen:
            self._add("Duplicate value", f"{path}.name", "", name)
        elif wrong:
            self._add("Invalid value", f"{path}.name", f"authorizer name is invalid: {', '.join(wrong)}", name)
        seen.add(name)

    def _webhook(self, name: str, tree: dict[str, Any] | None, path: str) -> AuthorizerConfig:
        if tree is None:
            self._required(path, "required when type=Webhook")
            return AuthorizerConfig(WEBHOOK, name)
        if not tree.get("timeout"):
            self._required(f"{path}.timeout")
        timeout = self._duration(tree, "timeout", path, _LONGEST_TIMEOUT, "must be > 0s and <= 30s", _LONGEST_TIMEOUT)
        allowed = self._duration(tree, "authorizedTTL", path, 300.0, "must be > 0s")
        refused = self._duration(tree, "unauthorizedTTL", path, 30.0, "must be > 0s")
        self._choice(tree, "subjectAccessReviewVersion", path, _REVIEW_VERSIONS)
        self._choice(tree, "failurePolicy", path, tuple(_POLICIES))
        settings = Settings(
            version=tree.get("subjectAccessReviewVersion", ""),
            allowed_ttl=allowed if tree.get("cacheAuthorizedRequests", True) else 0.0,
            refused_ttl=refused if tree.get("cacheUnauthorizedRequests", True) else 0.0,
            timeout=timeout,
            fail=_POLICIES.get(tree.get("failurePolicy", ""), Decision.DENY),
            conditions=self._conditions(tree, path),
        )
        return AuthorizerConfig(WEBHOOK, name, self._connection(tree.get("connectionInfo", {}), path), settings)

    def _duration(
        self, tree: dict[str, Any], member: str, path: str, default: float, text: str, longest: float = float("inf")
    ) -> float:
        given = tree.get(member, "")
        try:
            seconds = parse_duration(given) / 1e9 if given else default
        except ValueError as error:
            self.problems.append(f"{path}.{member}: {error}")
            return default
        if not 0 < seconds <= longest:
            self._add("Invalid value", f"{path}.{member}", text, given)
        return float(seconds)

    def _conditions(self, tree: dict[str, Any], path: str) -> tuple[Condition, ...]:
        entries = tree.get("matchConditions", [])
        member = "matchConditionSubjectAccessReviewVersion"
        if entries or tree.get(member):
            self._choice(tree, member, path, ("v1",), "required if match conditions are specified")
        if len(entries) > _MOST_CONDITIONS:
            text = f"must have at most {_MOST_CONDITIONS} items"
            self._add("Too many", f"{path}.matchConditions", text, len(entries))
            return ()
        found = []
        seen: set[str] = set()
        for index, entry in enumerate(entries):
            where = f"{path}.matchConditions[{index}].expression"
            expression = entry.get("expression", "")
            if not expression.strip():
                self._required(where)
                continue
            if expression in seen:
                self._add("Duplicate value", where, "", expression)
                continue
            seen.add(expression)
            try:
                found.append(compile_condition(expression))
            except ConditionError as error:
                self._add("Invalid value", where, str(error), expression)
        return tuple(found)

    def _connection(self, info: dict[str, Any], path: str) -> str:
        path = f"{path}.connectionInfo"
        self._choice(info, "type", path, ("KubeConfigFile",))
        file = str(info.get("kubeConfigFile", ""))
        where = f"{path}.kubeConfigFile"
        if not file:
            self._required(where)
        elif not os.path.isabs(file):
            self._add("Invalid value", where, "must be an absolute path", file)
        elif not os.path.isfile(file):
            self._add("Invalid value", where, "must be a regular file that exists", file)
        return file
