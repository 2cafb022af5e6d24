"""Rules in the schemas of custom resources: their shape, then whether they compile and what they may cost."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final

from fastapi_core.apis.validation.rules import Report, Tree
from fastapi_core.codec.json import encode

_VALIDATIONS: Final = "x-kubernetes-validations"
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
#: Rules that take less than this part of the limit are not named among the expensive ones.
_WORTH_NAMING: Final = 100
_NAMED: Final = 4
_CONTRIBUTED: Final = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
_TOTAL: Final = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
#: (kind of error, path, detail, value), the path below that of the schema.
Finding = tuple[str, str, str, Any]


def has_rules(schema: Tree) -> bool:
    return bool(schema.get(_VALIDATIONS)) or any(has_rules(child) for _, child in _children(schema))


def _children(schema: Tree) -> Iterator[tuple[str, Tree]]:
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        yield ".additionalProperties", extra
    for name, member in (schema.get("properties") or {}).items():
        if isinstance(member, dict):
            yield f".properties[{name}]", member
    items = schema.get("items")
    if isinstance(items, dict):
        yield ".items", items


def shape(schema: Tree, path: str, report: Report) -> None:
    """What can be said of rules without reading their expressions."""
    for index, rule in enumerate(schema.get(_VALIDATIONS) or ()):
        _shape(schema, rule, f"{path}.{_VALIDATIONS}[{index}]", report)
    for part, child in _children(schema):
        shape(child, path + part, report)


def _shape(schema: Tree, rule: Tree, at: str, report: Report) -> None:
    text, message = (rule.get("rule") or "").strip(), rule.get("message") or ""
    if not text:
        report.required(at + ".rule", "rule is not specified")
    elif message and not message.strip():
        report.invalid(at + ".message", message, "must be non-empty if specified")
    elif "\n" in message.strip():
        report.invalid(at + ".message", message, "must not contain line breaks")
    elif "\n" in text and not message.strip():
        report.required(at + ".message", "message must be specified if rule contains line breaks")
    told = rule.get("messageExpression") or ""
    if told and not told.strip():
        report.required(at + ".messageExpression", "messageExpression must be non-empty if specified")
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        report.unsupported(at + ".reason", reason, _REASONS)
    place = rule.get("fieldPath") or ""
    if place and not place.strip():
        report.invalid(at + ".fieldPath", place, "must be non-empty if specified")
    if "\n" in place:
        report.invalid(at + ".fieldPath", place, "must not contain line breaks")
    if place and not _leads_somewhere(schema, place):
        report.invalid(at + ".fieldPath", place, "must be a valid path")


def _leads_somewhere(schema: Tree, place: str) -> bool:
    from fastapi_core.cel.rules import parse_path, schema_at

    steps = parse_path(place)
    return steps is not None and schema_at(schema, steps) is not None


def expressions(schema: Tree, path: str, report: Report) -> None:
    """Whether the rules of a sound schema compile, and what they may cost."""
    if not has_rules(schema):
        return
    for kind, part, detail, value in _findings(schema):
        if kind == "forbidden":
            report.forbidden(path + part, detail)
        else:
            report.invalid(path + part, value, detail.replace("{path}", path[1:]))


#: Findings by the digest of the schema, which is looked at again whenever its definition is written.
_MEMORY: Final[dict[bytes, tuple[Finding, ...]]] = {}
_MEMORY_SIZE: Final = 64


def _findings(schema: Tree) -> tuple[Finding, ...]:
    key = sha256(encode(schema)).digest()
    known = _MEMORY.get(key)
    if known is None:
        walk = _Walk()
        walk.node(schema, "", root=True, cardinality=1, uncorrelatable=None)
        known = (*walk.findings, *walk.total())
        if len(_MEMORY) >= _MEMORY_SIZE:
            del _MEMORY[next(iter(_MEMORY))]
        _MEMORY[key] = known
    return known


class _Walk:
    """One pass over a schema, adding up what its rules may cost."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self._cost = 0
        self._costs: list[tuple[int, str]] = []

    def node(self, schema: Tree, path: str, *, root: bool, cardinality: int | None, uncorrelatable: str | None) -> None:
        """A schema node; `cardinality` is how often its value may occur, None without a bound."""
        inner = _times(cardinality, _most_elements(schema))
        for part, child in _children(schema):
            lost = uncorrelatable
            if part == ".items" and schema.get("x-kubernetes-list-type") != "map" and lost is None:
                lost = path
            self.node(child, path + part, root=False, cardinality=inner, uncorrelatable=lost)
        if schema.get(_VALIDATIONS):
            self._rules(schema, path, root=root, cardinality=cardinality, uncorrelatable=uncorrelatable)

    def _rules(
        self, schema: Tree, path: str, *, root: bool, cardinality: int | None, uncorrelatable: str | None
    ) -> None:
        from fastapi_core.cel import rules
        from fastapi_core.cel.schemas import from_schema

        decl = from_schema(schema, root=root or bool(schema.get("x-kubernetes-embedded-resource")))
        if decl is None:
            return
        compiled = rules.compile_rules(schema, decl)
        count = compiled.cardinality if cardinality is None else cardinality
        for index, rule in enumerate(compiled.rules):
            at = f"{path}.{_VALIDATIONS}[{index}]"
            cost = rules.times(rule.cost, count)
            self._observe(at + ".rule", "estimated rule cost", cost)
            if rule.error:
                self.findings.append(("invalid", at + ".rule", rule.error, _shown(rule.source)))
            if rule.message_error:
                self.findings.append(("invalid", at + ".messageExpression", rule.message_error, _shown(rule.source)))
            elif rule.message is not None:
                self._observe(at + ".messageExpression", "estimated messageExpression cost", rule.message_cost)
            self._transition(rule, at, uncorrelatable)

    def _transition(self, rule: Any, at: str, uncorrelatable: str | None) -> None:
        if rule.uses_old_self:
            if uncorrelatable is not None:
                text = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {{path}}{uncorrelatable}"
                self.findings.append(("invalid", at + ".rule", text, rule.source.get("rule")))
        elif rule.source.get("optionalOldSelf") is not None:
            text = "may not be set if oldSelf is not used in rule"
            self.findings.append(("invalid", at + ".optionalOldSelf", text, rule.source["optionalOldSelf"]))

    def _observe(self, path: str, name: str, cost: int) -> None:
        from fastapi_core.cel.rules import EXPRESSION_LIMIT, SCHEMA_LIMIT, over_limit

        if cost > EXPRESSION_LIMIT:
            self.findings.append(("forbidden", path, over_limit(name, cost, EXPRESSION_LIMIT), None))
        self._cost += cost
        if cost >= SCHEMA_LIMIT // _WORTH_NAMING:
            self._costs.append((cost, path))

    def total(self) -> list[Finding]:
        from fastapi_core.cel.rules import SCHEMA_LIMIT, over_limit

        if self._cost <= SCHEMA_LIMIT:
            return []
        named = sorted(self._costs, key=lambda entry: -entry[0])[:_NAMED]
        findings: list[Finding] = [("forbidden", path, _CONTRIBUTED, None) for _, path in named]
        return [*findings, ("forbidden", "", over_limit(_TOTAL, self._cost, SCHEMA_LIMIT), None)]


def _times(cardinality: int | None, count: int | None) -> int | None:
    return None if cardinality is None or count is None else cardinality * count


def _most_elements(schema: Tree) -> int | None:
    """How many values of the schemas below it a value of this schema has at most; None without a bound."""
    limit: Any = 1
    if schema.get("type") == "object" and schema.get("additionalProperties") is not None:
        limit = schema.get("maxProperties")
    elif schema.get("type") == "array":
        limit = schema.get("maxItems")
    return None if limit is None else max(limit, 0)


def _shown(rule: Any) -> Tree:
    """A rule as the reference prints it, with the names it has there."""
    return {
        "Rule": rule.get("rule") or "",
        "Message": rule.get("message") or "",
        "MessageExpression": rule.get("messageExpression") or "",
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath") or "",
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }
