"""Mode Webhook: another server decides, asked by SubjectAccessReview; its answers are remembered for a while."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any

import orjson

from fastapi_core.authn import outbound
from fastapi_core.authn.attempts import persistently
from fastapi_core.authz.base import NO_OPINION, Attributes, Decision, Grants, Verdict
from fastapi_core.authz.conditions import ConditionError, hold
from fastapi_core.authz.modes import Settings
from fastapi_core.meta.selectors import SelectorError, parse_fields, parse_labels
from fastapi_core.obs import logs
from fastapi_core.request.context import User

Tree = dict[str, Any]
log = logs.get("authz")

#: Answers remembered; the oldest goes first.
_MEMORY = 8192
#: Characters that a client can put into a question whose answer is remembered.
_LONGEST = 10_000
_LABEL_OPERATORS = {"in": "In", "notin": "NotIn", "exists": "Exists", "!": "DoesNotExist"}
_FIELD_OPERATORS = {"=": "In", "!=": "NotIn"}


class WebhookAuthorizer:
    """Verdicts are never lasting: this object remembers them itself, for as long as the settings say."""

    generation = 0

    def __init__(
        self,
        remote: outbound.Asked,
        settings: Settings,
        *,
        clock: Callable[[], float] = monotonic,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._remote = remote
        self._settings = settings
        self._clock = clock
        self._pause = pause
        self._memory: OrderedDict[bytes, tuple[float, Verdict]] = OrderedDict()
        self._asking: dict[bytes, asyncio.Task[Verdict]] = {}

    def authorize(self, attributes: Attributes) -> Verdict | Awaitable[Verdict]:
        spec = question(attributes)
        try:
            if not hold(self._settings.conditions, spec):
                return NO_OPINION._replace(lasting=False)
        except ConditionError as error:
            return self._failed(str(error))
        try:
            key = orjson.dumps(spec)
        except orjson.JSONEncodeError:
            return self._failed("the request has text that is not UTF-8")
        remembered = self._memory.get(key)
        if remembered is not None:
            if remembered[0] > self._clock():
                return remembered[1]
            del self._memory[key]
        return self._ask(key, spec, _size(attributes) < _LONGEST)

    def grants(self, user: User, namespace: str) -> Grants:
        return Grants([], [], True, "webhook authorizer does not support user rule resolution")

    async def _ask(self, key: bytes, spec: Tree, remember: bool) -> Verdict:
        """Requests that want to know the same wait for the same answer."""
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(self._answer(key, spec, remember), name="authz-webhook")
            task.add_done_callback(lambda _: self._asking.pop(key, None))
        return await asyncio.shield(task)

    async def _answer(self, key: bytes, spec: Tree, remember: bool) -> Verdict:
        try:
            verdict = verdict_of(await self._review(spec))
        except outbound.OutboundError as error:
            log.error("Authorization webhook failed", err=str(error))
            return self._failed(str(error))
        allowed = verdict.decision is Decision.ALLOW
        ttl = self._settings.allowed_ttl if allowed else self._settings.refused_ttl
        if remember and ttl > 0:
            while len(self._memory) >= _MEMORY:
                self._memory.popitem(last=False)
            self._memory[key] = (self._clock() + ttl, verdict)
        return verdict

    async def _review(self, spec: Tree) -> Tree:
        version = self._settings.version
        if version == "v1beta1" and "groups" in spec:
            spec = {("group" if name == "groups" else name): value for name, value in spec.items()}
        review = {
            "kind": "SubjectAccessReview",
            "apiVersion": f"authorization.k8s.io/{version}",
            "metadata": {"creationTimestamp": None},
            "spec": spec,
            "status": {"allowed": False},
        }
        body = orjson.dumps(review)

        async def attempt() -> Tree:
            answer = await self._remote.post(body, timeout=self._settings.timeout)
            return outbound.review_status(answer, "authorization", "SubjectAccessReview")

        return await persistently(attempt, self._pause, self._settings.within)

    def _failed(self, why: str) -> Verdict:
        return Verdict(self._settings.fail, "", why, lasting=False)


def _size(a: Attributes) -> int:
    texts = (a.namespace, a.verb, a.api_group, a.api_version, a.resource, a.subresource, a.name, a.path)
    return sum(len(text) for text in (*texts, a.label_selector, a.field_selector))


def question(a: Attributes) -> Tree:
    """The spec of the review (v1) about some attributes."""
    spec: Tree = {}
    if a.is_resource_request:
        resource = {
            "namespace": a.namespace, "verb": a.verb, "group": a.api_group, "version": a.api_version,
            "resource": a.resource, "subresource": a.subresource, "name": a.name,
        }  # fmt: skip
        spec["resourceAttributes"] = {name: value for name, value in resource.items() if value} | _selectors(a)
    else:
        spec["nonResourceAttributes"] = {"path": a.path, "verb": a.verb}
    user = a.user
    if user.name:
        spec["user"] = user.name
    if user.groups:
        spec["groups"] = list(user.groups)
    if user.extra:
        spec["extra"] = {name: list(values) for name, values in user.extra.items()}
    if user.uid:
        spec["uid"] = user.uid
    return spec


def _selectors(a: Attributes) -> Tree:
    """What the selectors of a request require; what reviews cannot express is left out, which asks for more."""
    found: Tree = {}
    try:
        fields = [
            {"key": r.field, "operator": _FIELD_OPERATORS[r.operator], "values": [r.value]}
            for r in parse_fields(a.field_selector)
        ]
        if fields:
            found["fieldSelector"] = {"requirements": fields}
    except SelectorError:
        pass
    try:
        labels = [_label(r.key, _LABEL_OPERATORS[r.operator], list(r.values)) for r in parse_labels(a.label_selector)
                  if r.operator in _LABEL_OPERATORS]  # fmt: skip
        if labels:
            found["labelSelector"] = {"requirements": labels}
    except SelectorError:
        pass
    return found


def _label(key: str, operator: str, values: list[str]) -> Tree:
    return {"key": key, "operator": operator, **({"values": values} if values else {})}


def verdict_of(status: Tree) -> Verdict:
    """What the status of a review says. Nothing but `true` allows."""
    reason = status.get("reason")
    shown = reason if isinstance(reason, str) else ""
    allowed, denied = status.get("allowed") is True, status.get("denied") is True
    if allowed and denied:
        text = "webhook subject access review returned both allow and deny response"
        return Verdict(Decision.DENY, shown, text, lasting=False)
    decision = Decision.DENY if denied else Decision.ALLOW if allowed else Decision.NO_OPINION
    return Verdict(decision, shown, lasting=False)
