"""Questions to conversion webhooks and what is made of their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from fastapi_core.crd.client import RequestError, WebhookClient
from fastapi_core.crd.conversion import WebhookConverter, sound_bundle
from fastapi_core.errors import APIError
from fastapi_core.registry.services import ServiceError

Tree = dict[str, Any]
V1, V2 = "x.example.com/v1", "x.example.com/v2"


class Hook:
    """Answers with what `change` makes of a right answer."""

    def __init__(self, change: Callable[[Tree], Tree]) -> None:
        self.change = change
        self.asked: list[Tree] = []

    async def ask(self, config: Tree, body: bytes) -> Tree:
        review = orjson.loads(body)
        self.asked.append(review)
        request = review["request"]
        objects = [{**tree, "apiVersion": request["desiredAPIVersion"]} for tree in request["objects"]]
        response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects}
        return self.change({**review, "request": None, "response": response})


def thing(name: str = "a") -> Tree:
    metadata = {"name": name, "namespace": "n", "uid": f"u-{name}", "resourceVersion": "7", "labels": {"l": "1"}}
    return {"apiVersion": V1, "kind": "Thing", "metadata": metadata, "spec": {"x": 1}}


def convert(change: Callable[[Tree], Tree], *trees: Tree, versions: tuple[str, ...] = ("v1",)) -> list[Tree]:
    conversion = {
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": versions, "clientConfig": {"url": "u"}},
    }
    return asyncio.run(WebhookConverter(conversion, Hook(change)).convert(trees or (thing(),), "Thing", V1, V2))


def changed(**members: Any) -> Callable[[Tree], Tree]:
    return lambda review: {**review, "response": {**review["response"], **members}}


def each(change: Callable[[Tree], Tree]) -> Callable[[Tree], Tree]:
    return lambda review: changed(convertedObjects=[change(o) for o in review["response"]["convertedObjects"]])(review)


def test_labels_and_annotations_may_change_and_other_metadata_stays() -> None:
    def change(tree: Tree) -> Tree:
        metadata = {"name": "a", "namespace": "n", "uid": "u-a", "annotations": {"k": "v"}, "resourceVersion": "9"}
        return {**tree, "metadata": metadata, "spec": {"y": 2}}

    (made,) = convert(each(change))
    assert made["spec"] == {"y": 2}
    assert made["metadata"] == {
        "name": "a", "namespace": "n", "uid": "u-a", "resourceVersion": "7", "annotations": {"k": "v"},
    }  # fmt: skip


def test_the_first_known_review_version_is_spoken() -> None:
    hook = Hook(lambda review: review)
    conversion = {"webhook": {"conversionReviewVersions": ["v9", "v1beta1", "v1"], "clientConfig": {}}}
    asyncio.run(WebhookConverter(conversion, hook).convert([thing()], "Thing", V1, V2))
    assert hook.asked[0]["apiVersion"] == "apiextensions.k8s.io/v1beta1"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (changed(convertedObjects=[]), "returned 0 objects, expected 1"),
        (changed(uid="other"), "failed: expected response.uid="),
        (changed(result={"status": "Failed", "message": "no way"}), "failed: no way"),
        (changed(result=None), "failed: response.result.status was '', not 'Success'"),
        (lambda review: {**review, "response": None}, "failed: no response provided"),
        (lambda review: {**review, "kind": "Other"}, 'failed: no kind "Other" is registered for version'),
        (lambda review: {**review, "apiVersion": "apiextensions.k8s.io/v1beta1"}, "failed: converting (v1beta1."),
        (lambda review: {}, "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind="),
        (changed(result="Success"), "failed: json: cannot unmarshal string into Go struct field"),
        (lambda review: {**review, "response": "x"}, "failed: json: cannot unmarshal string into Go struct field"),
        (each(lambda o: {**o, "kind": "Cog"}), "returned invalid object at index 0: invalid kind (expected Thing, received Cog)"),
        (each(lambda o: {**o, "apiVersion": V1}), "returned invalid object at index 0: invalid groupVersion"),
        (each(lambda o: {**o, "metadata": {**o["metadata"], "name": "b"}}), "returned invalid object: must have the same name: a != b"),
        (each(lambda o: {**o, "metadata": None}), "returned invalid object: must have the same name: a != "),
        (
            each(lambda o: {**o, "metadata": {**o["metadata"], "labels": {"a": 1}}}),
            "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
        ),
        (
            each(lambda o: {**o, "metadata": {**o["metadata"], "labels": []}}),
            "returned invalid metadata: invalid metadata.labels of type []interface {} in converted object",
        ),
        (
            each(lambda o: {**o, "metadata": {**o["metadata"], "labels": {"a b": "c"}}}),
            'returned invalid metadata: metadata.labels: Invalid value: "a b": name part must consist of',
        ),
        (
            each(lambda o: {**o, "metadata": {**o["metadata"], "annotations": {"a": "x" * (1 << 18)}}}),
            "returned invalid metadata: metadata.annotation: Too long: may not be more than 262144 bytes",
        ),
        (changed(convertedObjects=["text"]), "returned invalid object at index 0: invalid type"),
    ],
)  # fmt: skip
def test_answers_that_will_not_do(change: Callable[[Tree], Tree], text: str) -> None:
    with pytest.raises(APIError) as caught:
        convert(change)
    assert caught.value.message.startswith(f"conversion webhook for {V1}, Kind=Thing {text}")
    assert caught.value.code == 500


def test_a_list_tells_which_object_is_bad() -> None:
    def change(tree: Tree) -> Tree:
        return {**tree, "kind": "Cog"} if tree["metadata"]["name"] == "b" else tree

    with pytest.raises(
        APIError, match=r"Kind=ThingList returned invalid converted object at index 1 \(n/b\): invalid kind"
    ):
        convert(each(change), thing("a"), thing("b"), thing("c"))


def test_a_webhook_that_is_not_there() -> None:
    def fail(review: Tree) -> Tree:
        raise RequestError('Post "https://h": EOF')

    with pytest.raises(APIError, match=r'Kind=Thing failed: Post "https://h": EOF'):
        convert(fail)


def test_bundles() -> None:
    assert not sound_bundle("bm90aGluZw==")
    assert not sound_bundle("*")


class Nowhere:
    """Knows no service."""

    def places(self, namespace: str, name: str, port: int) -> list[tuple[str, int]]:
        raise ServiceError(f'service "{name}" not found')


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (
            {"service": {"namespace": "ns", "name": "s", "path": "/c", "port": 8443}},
            'Post "https://s.ns.svc:8443/c?timeout=30s": service "s" not found',
        ),
        ({"service": {"namespace": "ns", "name": "s"}}, 'Post "https://s.ns.svc:443/?timeout=30s": service'),
        ({}, "webhook configuration must have either service or URL"),
    ],
)
async def test_servers_that_cannot_be_found(config: Tree, text: str) -> None:
    client = WebhookClient(Nowhere())  # type: ignore[arg-type]
    with pytest.raises(RequestError) as refused:
        await client.ask(config, b"{}")
    assert text in str(refused.value)
    client.close()
