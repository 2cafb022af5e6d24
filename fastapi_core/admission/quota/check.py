"""Whether a request fits into the quotas of its namespace, and what it takes of each."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi_core._ext.objects import CachedObject
from fastapi_core.admission.amounts import Amounts, add, amounts
from fastapi_core.admission.chain import UPDATE, Attributes
from fastapi_core.admission.objects import decoded
from fastapi_core.admission.quota import scopes
from fastapi_core.admission.quota.usage import Evaluator
from fastapi_core.admission.refusals import failure, forbidden
from fastapi_core.records import dataclass
from fastapi_core.registry.definition import Tree


@dataclass(frozen=True, slots=True)
class Limited:
    """A resource that is used only where a quota covers its use: `contains` are parts of names of usage."""

    group: str
    plural: str
    contains: tuple[str, ...] = ()
    scopes: tuple[Tree, ...] = ()


@dataclass(slots=True)
class Account:
    """A quota and what is used of it once everything checked so far is done."""

    quota: CachedObject
    hard: Amounts
    used: Amounts
    charged: bool = False

    @classmethod
    def open(cls, quota: CachedObject) -> Account:
        status = decoded(quota).get("status") or {}
        return cls(quota, amounts(status.get("hard")), amounts(status.get("used")))

    def charge(self, taken: Amounts) -> None:
        used = dict(self.used)
        add(used, taken)
        self.used = used
        self.charged = True


Takes = dict[str, Amounts]
"""What a request takes of which quotas, by their names."""


def check(
    accounts: Sequence[Account], attributes: Attributes, evaluator: Evaluator, limited: Sequence[Limited]
) -> Takes:
    """What the request takes; an APIError when it does not fit. Nothing is charged."""
    tree = attributes.object or {}
    interesting, covered, in_scopes = _interesting(accounts, attributes, evaluator, tree)
    usage = evaluator.usage(tree)
    negative = sorted(name for name, amount in usage.items() if amount.nanos < 0)
    if negative:
        raise forbidden(attributes, f"quota usage is negative for resource(s): {','.join(negative)}")
    before = _before(attributes, evaluator)
    grown = usage if before is None else {n: a - before[n] if n in before else a for n, a in usage.items()}
    deltas: list[tuple[Account, Amounts]] = []
    for account in interesting:
        matched = before is not None and _matches(evaluator, decoded(account.quota), attributes.old or {}, account.hard)
        delta = {n: a for n, a in (grown if matched else usage).items() if a.nanos > 0}
        if delta:
            deltas.append((account, delta))
    if not deltas and (interesting or not any(amount.nanos > 0 for amount in grown.values())):
        return {}
    _check_limited(attributes, limited, evaluator, usage, covered, in_scopes)
    takes: Takes = {}
    for account, delta in deltas:
        taken = {name: amount for name, amount in delta.items() if name in account.hard}
        if attributes.subresource != "status":
            _check_fits(attributes, account, taken)
        if taken:
            takes[account.quota.name] = taken
    return takes


def _before(attributes: Attributes, evaluator: Evaluator) -> Amounts | None:
    """What the object used so far; None when it is new."""
    old = attributes.old
    if attributes.operation != UPDATE or old is None or not old["metadata"].get("resourceVersion"):
        return None
    return evaluator.usage(old)


def _matches(evaluator: Evaluator, quota: Tree, tree: Tree, hard: Amounts) -> bool:
    if not any(evaluator.covers(name) for name in hard):
        return False
    return all(evaluator.in_scope(selector, tree) for selector in scopes.selectors(quota))


def _interesting(
    accounts: Sequence[Account], attributes: Attributes, evaluator: Evaluator, tree: Tree
) -> tuple[list[Account], set[str], list[str]]:
    """The quotas that cover the object, the names of usage they cover, and the scopes the object is in."""
    interesting: list[Account] = []
    covered: set[str] = set()
    in_scopes: list[str] = []
    for account in accounts:
        quota = decoded(account.quota)
        in_scopes += [s.get("scopeName", "") for s in scopes.selectors(quota) if evaluator.in_scope(s, tree)]
        if not _matches(evaluator, quota, tree, account.hard):
            continue
        restricted = [name for name in account.hard if evaluator.covers(name)]
        name = account.quota.name
        lacking = evaluator.lacking(restricted, tree)
        if lacking:
            raise forbidden(attributes, f"failed quota: {name}: {lacking}")
        if any(resource not in account.used for resource in restricted):
            shown = ",".join(sorted(restricted))
            raise forbidden(attributes, f"status unknown for quota: {name}, resources: {shown}")
        interesting.append(account)
        covered.update(restricted)
    return interesting, covered, in_scopes


def _check_limited(
    attributes: Attributes,
    limited: Sequence[Limited],
    evaluator: Evaluator,
    usage: Amounts,
    covered: set[str],
    in_scopes: list[str],
) -> None:
    """What the configuration allows only under a quota must be under one."""
    definition, tree = attributes.definition, attributes.object or {}
    names: set[str] = set()
    wanted: list[Tree] = []
    for rule in limited:
        wanted += [scope for scope in rule.scopes if evaluator.in_scope(scope, tree)]
        if (rule.group, rule.plural) == (definition.group, definition.plural):
            names |= {
                name
                for name, amount in usage.items()
                if amount.nanos > 0 and any(part in name for part in rule.contains)
            }
    uncovered = sorted(names - covered)
    if uncovered:
        raise forbidden(attributes, f"insufficient quota to consume: {','.join(uncovered)}")
    open_scopes = [scope for scope in wanted if scope.get("scopeName") not in in_scopes]
    if open_scopes:
        shown = " ".join(
            f"{{{s.get('scopeName', '')} {s.get('operator', '')} [{' '.join(s.get('values') or ())}]}}"
            for s in open_scopes
        )
        raise failure(f"insufficient quota to match these scopes: [{shown}]")


def _check_fits(attributes: Attributes, account: Account, taken: Amounts) -> None:
    exceeded = []
    for name, amount in taken.items():
        used = account.used.get(name)
        if account.hard[name] < (amount if used is None else used + amount):
            exceeded.append(name)
    if not exceeded:
        return
    exceeded.sort()
    lists = (taken, account.used, account.hard)
    requested, used_text, limit = (_pretty({n: a[n] for n in exceeded if n in a}) for a in lists)
    text = f"exceeded quota: {account.quota.name}, requested: {requested}, used: {used_text}, limited: {limit}"
    raise forbidden(attributes, text)


def _pretty(listed: Amounts) -> str:
    return ",".join(f"{name}={amount}" for name, amount in listed.items())
