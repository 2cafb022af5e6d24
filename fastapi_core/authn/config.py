"""AuthenticationConfiguration: the file behind --authentication-config, decoded strictly and checked as a whole.

The --oidc-* flags become the same structure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any, Protocol
from urllib.parse import urlsplit

from fastapi_core.authn.expressions import Expression, ExpressionError, compile_expression
from fastapi_core.errors import FieldError, go_quote
from fastapi_core.meta.names import dns1123_subdomain
from fastapi_core.records import dataclass

GROUP = "apiserver.config.k8s.io"
VERSIONS = ("v1", "v1beta1", "v1alpha1")
KIND = "AuthenticationConfiguration"
MOST_ISSUERS = 64


class Compile(Protocol):
    """`expressions.compile_expression`."""

    def __call__(self, text: str, variable: str, *, condition: bool = False) -> Expression: ...


class ConfigError(ValueError):
    """Everything that is wrong with a configuration, one line each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)


@dataclass(frozen=True, slots=True)
class Issuer:
    url: str
    audiences: tuple[str, ...]
    discovery_url: str = ""
    authority: str = ""
    """PEM of the CAs that vouch for the issuer; empty: the system's."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """Where a value comes from: a claim with a prefix, or an expression; neither: nowhere."""

    claim: str = ""
    prefix: str = ""
    expression: Expression | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """What must be true: of a claim the text it must have, or an expression."""

    claim: str = ""
    value: str = ""
    expression: Expression | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class JWTConfig:
    """One issuer of tokens."""

    issuer: Issuer
    username: Mapped
    groups: Mapped = field(default_factory=Mapped)
    uid: Mapped = field(default_factory=Mapped)
    extra: tuple[tuple[str, Expression], ...] = ()
    claim_rules: tuple[Rule, ...] = ()
    user_rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class AnonymousConfig:
    enabled: bool = False
    paths: tuple[str, ...] = ()
    """Where unknown clients may go; empty: everywhere."""


@dataclass(frozen=True, slots=True)
class AuthenticationConfig:
    jwt: tuple[JWTConfig, ...] = ()
    anonymous: AnonymousConfig | None = None


# Shapes: str and bool stand for themselves, a list for a list of its only member, a dict for an object.
_MAPPED = {"claim": str, "prefix": str, "expression": str}
SHAPE: dict[str, Any] = {
    "apiVersion": str,
    "kind": str,
    "jwt": [
        {
            "issuer": {
                "url": str, "discoveryURL": str, "certificateAuthority": str, "audiences": [str],
                "audienceMatchPolicy": str, "egressSelectorType": str,
            },
            "claimValidationRules": [{"claim": str, "requiredValue": str, "expression": str, "message": str}],
            "claimMappings": {
                "username": _MAPPED, "groups": _MAPPED, "uid": {"claim": str, "expression": str},
                "extra": [{"key": str, "valueExpression": str}],
            },
            "userValidationRules": [{"expression": str, "message": str}],
        }
    ],
    "anonymous": {"enabled": bool, "conditions": [{"path": str}]},
}  # fmt: skip
_NAMES = {str: "a text", bool: "true or false"}


def conform(tree: Any, shape: Any, path: str, problems: list[str]) -> Any:
    """The tree with everything of the shape it should have; what has not is noted and left out."""
    if isinstance(shape, dict):
        if not isinstance(tree, dict):
            problems.append(f"{path or 'the document'}: an object is expected")
            return {}
        found = {}
        for name, value in tree.items():
            where = f"{path}.{name}" if path else str(name)
            if name not in shape:
                problems.append(f"unknown field {go_quote(where)}")
            elif value is not None:
                found[name] = conform(value, shape[name], where, problems)
        return found
    if isinstance(shape, list):
        if not isinstance(tree, list):
            problems.append(f"{path}: a list is expected")
            return []
        return [conform(value, shape[0], f"{path}[{index}]", problems) for index, value in enumerate(tree)]
    if type(tree) is not shape:
        problems.append(f"{path}: {_NAMES[shape]} is expected")
        return shape()
    return tree


def load(data: bytes, disallowed: Iterable[str] = (), compile: Compile = compile_expression) -> AuthenticationConfig:
    """Decode and check a configuration in YAML or JSON. Raises ConfigError.

    `disallowed` are issuers whose tokens are judged elsewhere: those of service accounts.
    """
    from fastapi_core.codec import decode
    from fastapi_core.schema.errors import DecodeError

    try:
        parsed = decode.parse(data, "yaml")
    except DecodeError as error:
        raise ConfigError([str(error)]) from None
    problems = list(parsed.complaints)
    tree = conform(parsed.tree, SHAPE, "", problems)
    group, _, version = tree.get("apiVersion", "").partition("/")
    if group != GROUP or version not in VERSIONS or tree.get("kind") != KIND:
        known = ", ".join(f"{GROUP}/{name}" for name in VERSIONS)
        problems.append(f"apiVersion and kind: {KIND} of one of {known} is expected")
    if problems:
        raise ConfigError(problems)
    return _Builder(frozenset(disallowed), compile).configuration(tree)


class _Builder:
    """Makes the configuration and notes what is wrong on the way."""

    def __init__(self, disallowed: frozenset[str], compile: Compile) -> None:
        self._disallowed = disallowed
        self._compile = compile
        self._errors: list[FieldError] = []

    def configuration(self, tree: dict[str, Any]) -> AuthenticationConfig:
        entries = tree.get("jwt") or []
        if len(entries) > MOST_ISSUERS:
            text = f"must have at most {MOST_ISSUERS} items"
            raise ConfigError([str(FieldError("Too many", "jwt", text, len(entries)))])
        issuers: set[str] = set()
        discovery: set[str] = set()
        made = []
        for index, entry in enumerate(entries):
            path = f"jwt[{index}]"
            config = self._jwt(entry, path)
            self._once(issuers, config.issuer.url, f"{path}.issuer.url")
            if config.issuer.discovery_url:
                self._once(discovery, config.issuer.discovery_url, f"{path}.issuer.discoveryURL")
            made.append(config)
        anonymous = self._anonymous(tree["anonymous"]) if "anonymous" in tree else None
        if self._errors:
            raise ConfigError([str(error) for error in self._errors])
        return AuthenticationConfig(tuple(made), anonymous)

    def _once(self, seen: set[str], value: str, path: str) -> bool:
        if value in seen:
            self._errors.append(FieldError("Duplicate value", path, "", value))
            return False
        seen.add(value)
        return True

    def _invalid(self, path: str, value: Any, text: str) -> None:
        self._errors.append(FieldError("Invalid value", path, text, value))

    def _required(self, path: str, text: str = "") -> None:
        self._errors.append(FieldError("Required value", path, text))

    def _anonymous(self, tree: dict[str, Any]) -> AnonymousConfig:
        conditions = tree.get("conditions") or []
        enabled = tree.get("enabled", False)
        if conditions and not enabled:
            self._invalid(
                "anonymous.conditions", conditions, "enabled should be set to true when conditions are defined"
            )
        return AnonymousConfig(enabled, tuple(condition.get("path", "") for condition in conditions))

    def _jwt(self, tree: dict[str, Any], path: str) -> JWTConfig:
        issuer = self._issuer(tree.get("issuer") or {}, f"{path}.issuer")
        claim_rules = self._claim_rules(tree.get("claimValidationRules") or [], f"{path}.claimValidationRules")
        mappings, where = tree.get("claimMappings") or {}, f"{path}.claimMappings"
        username = self._mapped(mappings.get("username") or {}, f"{where}.username", needed=True)
        groups = self._mapped(mappings.get("groups") or {}, f"{where}.groups", needed=False)
        uid = self._uid(mappings.get("uid") or {}, f"{where}.uid")
        extra = self._extra(mappings.get("extra") or [], f"{where}.extra")
        checked = [rule.expression for rule in claim_rules] + [expression for _, expression in extra]
        self._check_email(username, [e for e in (*checked, username.expression) if e is not None], where)
        user_rules = self._user_rules(tree.get("userValidationRules") or [], f"{path}.userValidationRules")
        return JWTConfig(issuer, username, groups, uid, extra, claim_rules, user_rules)

    def _check_email(self, username: Mapped, checked: Sequence[Expression], path: str) -> None:
        """An address that nobody verified is whatever somebody typed."""
        if username.expression is None or "claims.email" not in username.expression.selects:
            return
        if not any("claims.email_verified" in expression.selects for expression in checked):
            self._invalid(
                f"{path}.username.expression",
                username.expression.text,
                "claims.email_verified must be used in claimMappings.username.expression or "
                "claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is "
                "used in claimMappings.username.expression",
            )

    def _issuer(self, tree: dict[str, Any], path: str) -> Issuer:
        url, discovery = tree.get("url", ""), tree.get("discoveryURL", "")
        if not url:
            self._required(f"{path}.url")
        else:
            if url in self._disallowed:
                listed = "[" + " ".join(sorted(self._disallowed)) + "]"
                self._invalid(f"{path}.url", url, f"URL must not overlap with disallowed issuers: {listed}")
            self._url(url, f"{path}.url")
        if discovery:
            if url and url.rstrip("/") == discovery.rstrip("/"):
                self._invalid(f"{path}.discoveryURL", discovery, "discoveryURL must be different from URL")
            self._url(discovery, f"{path}.discoveryURL")
        audiences = tuple(tree.get("audiences") or ())
        self._audiences(audiences, tree.get("audienceMatchPolicy", ""), path)
        authority = tree.get("certificateAuthority", "")
        if authority:
            self._authority(authority, f"{path}.certificateAuthority")
        egress = tree.get("egressSelectorType", "")
        if egress and egress not in ("controlplane", "cluster"):
            self._invalid(
                f"{path}.egressSelectorType", egress, "egress selector must be either controlplane or cluster"
            )
        return Issuer(url, audiences, discovery, authority)

    def _url(self, url: str, path: str) -> None:
        try:
            parts = urlsplit(url)
            _ = parts.port
        except ValueError as error:
            self._invalid(path, url, f"parse {go_quote(url)}: {error}")
            return
        if parts.scheme != "https":
            self._invalid(path, url, "URL scheme must be https")
        elif not parts.hostname:
            self._invalid(path, url, "URL must contain a host")
        if "@" in parts.netloc:
            self._invalid(path, url, "URL must not contain a username or password")
        if parts.query:
            self._invalid(path, url, "URL must not contain a query")
        if parts.fragment:
            self._invalid(path, url, "URL must not contain a fragment")

    def _audiences(self, audiences: tuple[str, ...], policy: str, path: str) -> None:
        if not audiences:
            self._required(f"{path}.audiences", f"at least one {path}.audiences is required")
            return
        seen: set[str] = set()
        for index, audience in enumerate(audiences):
            if not audience:
                self._required(f"{path}.audiences[{index}]")
            self._once(seen, audience, f"{path}.audiences[{index}]")
        if len(audiences) > 1 and policy != "MatchAny":
            text = "audienceMatchPolicy must be MatchAny for multiple audiences"
            self._invalid(f"{path}.audienceMatchPolicy", policy, text)
        if len(audiences) == 1 and policy not in ("", "MatchAny"):
            text = "audienceMatchPolicy must be empty or MatchAny for single audience"
            self._invalid(f"{path}.audienceMatchPolicy", policy, text)

    def _authority(self, pem: str, path: str) -> None:
        from fastapi_core.authn.trust import identities

        try:
            identities(pem.encode())
        except ValueError:
            text = "data does not contain any valid RSA or ECDSA certificates"
            self._invalid(path, "<omitted>", text)

    def _expression(self, text: str, variable: str, path: str, *, condition: bool = False) -> Expression | None:
        try:
            return self._compile(text, variable, condition=condition)
        except ExpressionError as error:
            self._invalid(path, text, str(error))
            return None

    def _claim_rules(self, trees: list[dict[str, Any]], path: str) -> tuple[Rule, ...]:
        claims: set[str] = set()
        expressions: set[str] = set()
        made = []
        for index, tree in enumerate(trees):
            where = f"{path}[{index}]"
            claim, text = tree.get("claim", ""), tree.get("expression", "")
            message, value = tree.get("message", ""), tree.get("requiredValue", "")
            if claim and text:
                self._invalid(where, claim, "claim and expression can't both be set")
            elif claim:
                if message:
                    self._invalid(f"{where}.message", message, "may not be specified when claim is set")
                if self._once(claims, claim, f"{where}.claim"):
                    made.append(Rule(claim, value))
            elif text:
                if value:
                    self._invalid(f"{where}.requiredValue", value, "may not be specified when expression is set")
                if self._once(expressions, text, f"{where}.expression"):
                    made.append(
                        Rule(
                            expression=self._expression(text, "claims", f"{where}.expression", condition=True),
                            message=message,
                        )
                    )
            else:
                self._required(where, "claim or expression is required")
        return tuple(made)

    def _user_rules(self, trees: list[dict[str, Any]], path: str) -> tuple[Rule, ...]:
        seen: set[str] = set()
        made = []
        for index, tree in enumerate(trees):
            where, text = f"{path}[{index}].expression", tree.get("expression", "")
            if not text:
                self._required(where)
            elif self._once(seen, text, where):
                made.append(
                    Rule(
                        expression=self._expression(text, "user", where, condition=True),
                        message=tree.get("message", ""),
                    )
                )
        return tuple(made)

    def _mapped(self, tree: dict[str, Any], path: str, *, needed: bool) -> Mapped:
        claim, text, prefix = tree.get("claim", ""), tree.get("expression", ""), tree.get("prefix")
        if claim and text:
            self._invalid(path, "", "claim and expression can't both be set")
        elif text:
            if prefix is not None:
                self._invalid(f"{path}.prefix", prefix, "may not be specified when expression is set")
            return Mapped(expression=self._expression(text, "claims", f"{path}.expression"))
        elif claim:
            if prefix is None:
                text = "prefix is required when claim is set. It can be set to an empty string to disable prefixing"
                self._required(f"{path}.prefix", text)
        elif needed:
            self._required(path, "claim or expression is required")
        return Mapped(claim, prefix or "")

    def _uid(self, tree: dict[str, Any], path: str) -> Mapped:
        claim, text = tree.get("claim", ""), tree.get("expression", "")
        if claim and text:
            self._invalid(path, "", "claim and expression can't both be set")
        elif text:
            return Mapped(expression=self._expression(text, "claims", f"{path}.expression"))
        return Mapped(claim)

    def _extra(self, trees: list[dict[str, Any]], path: str) -> tuple[tuple[str, Expression], ...]:
        seen: set[str] = set()
        made = []
        for index, tree in enumerate(trees):
            where = f"{path}[{index}]"
            key, text = tree.get("key", ""), tree.get("valueExpression", "")
            self._extra_key(key, f"{where}.key")
            if not self._once(seen, key, f"{where}.key"):
                continue
            if not text:
                self._required(f"{where}.valueExpression")
                continue
            expression = self._expression(text, "claims", f"{where}.valueExpression")
            if expression is not None:
                made.append((key, expression))
        return tuple(made)

    def _extra_key(self, key: str, path: str) -> None:
        domain, slash, rest = key.partition("/")
        if not key:
            self._required(path)
        elif not slash or not domain or not rest:
            self._invalid(path, key, 'must be a domain-prefixed path (such as "acme.io/foo")')
        else:
            for text in dns1123_subdomain(domain):
                self._invalid(path, domain, text)
            if re.fullmatch(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", rest) is None:
                self._invalid(path, rest, "Invalid path")
        if key != key.lower():
            self._invalid(path, key, "must be lowercase")
        if slash and (domain in ("kubernetes.io", "k8s.io") or domain.endswith((".kubernetes.io", ".k8s.io"))):
            text = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use"
            self._invalid(path, key, text)
