"""ImagePolicyWebhook: another server says whether the images of a pod may run."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

import orjson

from fastapi_core.admission.chain import CREATE, UPDATE, Attributes, Plugin
from fastapi_core.admission.objects import annotations_of, is_core
from fastapi_core.admission.refusals import forbidden
from fastapi_core.records import dataclass
from fastapi_core.registry.definition import ResourceDefinition, Tree

MARK = ".image-policy.k8s.io/"
FAILED_OPEN, PREFIX = "alpha.image-policy.k8s.io/failed-open", "imagepolicywebhook.image-policy.k8s.io/"
#: Answers remembered; the oldest goes first.
MEMORY = 1024
ATTEMPTS = 5

TIMEOUT = 30.0

#: Sends an ImageReview and returns (code, body); `OSError` when the server cannot be reached.
Ask = Callable[[bytes], Awaitable[tuple[int, bytes]]]


@dataclass(frozen=True, slots=True)
class ImagePolicy:
    """Configuration: times in seconds."""

    kubeconfig: str
    allow_seconds: float
    deny_seconds: float
    backoff: float
    default_allow: bool


def reviewer(policy: ImagePolicy) -> Ask:
    """Asks the server of the policy's kubeconfig. Raises OSError, and ValueError for a file that cannot be used."""
    from fastapi_core.authn import outbound

    remote = outbound.load_kubeconfig(policy.kubeconfig)

    async def ask(body: bytes) -> tuple[int, bytes]:
        try:
            answer = await outbound.ask(remote, "POST", body, timeout=TIMEOUT)
        except outbound.OutboundError as error:
            raise OSError(str(error)) from error
        return answer.status, answer.body

    return ask


class ImagePolicyWebhook(Plugin):
    name = "ImagePolicyWebhook"

    def __init__(
        self,
        policy: ImagePolicy,
        ask: Ask,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._policy = policy
        self._ask = ask
        self._clock = clock
        self._pause = pause
        self._known: OrderedDict[bytes, tuple[float, Tree]] = OrderedDict()

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        known = is_core(definition, "pods") and subresource in ("", "ephemeralcontainers")
        return known and operation in (CREATE, UPDATE)

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        pod = attributes.object
        return None if pod is None else self._review(attributes, pod)

    async def _review(self, attributes: Attributes, pod: Tree) -> None:
        spec = review_spec(pod, attributes.namespace, attributes.subresource)
        key = orjson.dumps(spec)
        status = self._remembered(key)
        if status is None:
            try:
                status = await self._answer(spec)
            except OSError as error:
                if not self._policy.default_allow:
                    raise forbidden(attributes, str(error)) from error
                pod["metadata"]["annotations"] = {**annotations_of(pod), FAILED_OPEN: "true"}
                attributes.annotate(PREFIX + "failed-open", "true")
                return
            self._remember(key, status)
        for name, value in (status.get("auditAnnotations") or {}).items():
            attributes.annotate(PREFIX + name, str(value))
        if not status.get("allowed"):
            reason = status.get("reason")
            text = "one or more images rejected by webhook backend"
            if reason:
                text = f"image policy webhook backend denied one or more images: {reason}"
            raise forbidden(attributes, text)

    def _remembered(self, key: bytes) -> Tree | None:
        known = self._known.get(key)
        if known is None:
            return None
        if known[0] > self._clock():
            return known[1]
        del self._known[key]
        return None

    def _remember(self, key: bytes, status: Tree) -> None:
        seconds = self._policy.allow_seconds if status.get("allowed") else self._policy.deny_seconds
        self._known[key] = (self._clock() + seconds, status)
        if len(self._known) > MEMORY:
            self._known.popitem(last=False)

    async def _answer(self, spec: Tree) -> Tree:
        """The status of the review. Raises OSError when there is no usable one after some attempts."""
        review = {"kind": "ImageReview", "apiVersion": "imagepolicy.k8s.io/v1alpha1", "metadata": {}}
        body = orjson.dumps({**review, "spec": spec, "status": {"allowed": False}})
        for attempt in range(1, ATTEMPTS + 1):
            try:
                code, answer = await self._ask(body)
            except OSError:
                if attempt == ATTEMPTS:
                    raise
            else:
                if code < 500 or attempt == ATTEMPTS:
                    return _status(code, answer)
            await self._pause(self._policy.backoff * 1.5 ** (attempt - 1))
        raise AssertionError("unreachable: the last attempt returns or raises")


def _status(code: int, answer: bytes) -> Tree:
    if not 200 <= code < 300:
        raise OSError(f"error contacting webhook: {code}")
    try:
        tree: Any = orjson.loads(answer)
    except orjson.JSONDecodeError as error:
        raise OSError(str(error)) from error
    status = tree.get("status") if isinstance(tree, dict) else None
    if not isinstance(status, dict):
        raise OSError("the answer is no ImageReview with a status")
    return status


def review_spec(pod: Tree, namespace: str, subresource: str) -> Tree:
    """What the other server is asked about."""
    groups = ("ephemeralContainers",) if subresource else ("containers", "initContainers")
    images = [{"image": c.get("image", "")} for group in groups for c in pod["spec"].get(group) or ()]
    marked = {key: value for key, value in annotations_of(pod).items() if MARK in key}
    spec: Tree = {"containers": images, "annotations": marked, "namespace": namespace}
    return {name: value for name, value in spec.items() if value}
