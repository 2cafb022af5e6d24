"""What a check works with: the resource, a client, objects to write, and a record of what has to be removed again."""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fastapi_core.testing.conformance.client import Answer, Client, Query, Tree, Watch
from fastapi_core.testing.conformance.discovered import Resource
from fastapi_core.testing.conformance.schemas import Schema, schema
from fastapi_core.testing.conformance.target import Credential
from fastapi_core.testing.conformance.verdicts import Failed, Skipped, demand

#: On every object of the kit; the value is the run.
LABEL = "fastapi-core.conformance/run"
#: Free for checks to write to.
MARK = "fastapi-core.conformance/mark"
#: In samples: stands for the name of the object.
NAME = "$(NAME)"
STATUS = "Status"
MERGE = {"Content-Type": "application/merge-patch+json"}


@dataclass
class Surroundings:
    """What all checks of a run share."""

    run: str
    namespace: str = ""
    #: A second namespace, empty when there is none.
    elsewhere: str = ""
    #: Whether the namespaces are the kit's own: then nothing of somebody else's is in them.
    own: bool = False
    #: Whether the server itself serves namespaces.
    namespaces: bool = False
    counter: itertools.count[int] = field(default_factory=itertools.count)


class Subject:
    """One resource under test."""

    def __init__(self, resource: Resource, client: Client, around: Surroundings, samples: Sequence[Tree] = ()) -> None:
        self.resource, self.client, self.around = resource, client, around
        self.samples = [sample for sample in samples if sample.get("kind") == resource.kind]
        #: Why nothing can be created; empty when something can.
        self.refused = ""
        #: Seconds somebody else goes on changing a new object, a controller for example; 0 when nobody does.
        self.unrest = 0.0
        self.made: dict[str, None] = {}
        self._clients: list[Client] = []

    # Where things are

    def path(self, name: str = "", subresource: str = "", namespace: str | None = None) -> str:
        """The path of the collection, an object or a subresource; `namespace=""`: across all."""
        chosen = self.around.namespace if namespace is None else namespace
        parts = [self.resource.root]
        if self.resource.namespaced and chosen:
            parts.append(f"namespaces/{chosen}")
        parts += [part for part in (self.resource.name, name, subresource) if part]
        return "/".join(parts)

    @cached_property
    def schema(self) -> Schema | None:
        """The published schema of the kind."""
        return schema(self.client, self.resource)

    # What to write

    def fresh(self) -> str:
        """A name nobody has had."""
        return f"conformance-{self.around.run}-{next(self.around.counter)}"

    def new(self, name: str | None = None, *, sample: int = 0, **metadata: Any) -> Tree:
        """An object to create: the sample of the user, else one made from the schema, under a fresh name."""
        chosen = self.fresh() if name is None else name
        if self.samples:
            made: Tree = _named(self.samples[sample], chosen)
            if "status" in self.resource.subresources:
                # Written apart; a create would not take it.
                made.pop("status", None)
        else:
            made = self._generated()
        given = made.get("metadata") if isinstance(made.get("metadata"), dict) else {}
        made["metadata"] = {
            **{key: value for key, value in (given or {}).items() if key in ("annotations", "finalizers")},
            "name": chosen,
            **({"namespace": self.around.namespace} if self.resource.namespaced else {}),
            "labels": {**((given or {}).get("labels") or {}), LABEL: self.around.run},
        }
        labels = metadata.pop("labels", {})
        made["metadata"].update(metadata)
        made["metadata"]["labels"].update(labels)
        return {"apiVersion": self.resource.api_version, "kind": self.resource.kind, **made}

    def _generated(self) -> Tree:
        if self.schema is None:
            return {}
        root = self.schema
        wanted = [*(root.node.get("required") or ()), "spec"]
        made = {}
        for name in dict.fromkeys(wanted):
            child = root.member(name)
            if child is not None and name not in ("metadata", "apiVersion", "kind", "status"):
                made[name] = child.make()
        return copy.deepcopy(made)

    def status(self, obj: Tree | None = None) -> Tree:
        """A valid status that is not what `obj` has: a sample's, else one made from the schema."""
        there = (obj or {}).get("status") or {}
        given = [sample["status"] for sample in self.samples if isinstance(sample.get("status"), dict)]
        child = self.schema.member("status") if self.schema is not None else None
        made = child.make(full=True) if child is not None else None
        if isinstance(made, dict) and any(made.values()):
            given.append(made)
        found = next((status for status in given if status and not within(status, there)), None)
        if found is not None:
            return copy.deepcopy(found)
        if not given:
            raise Skipped("no status can be made from the schema: give a sample that has one")
        other = child.other(copy.deepcopy(given[0])) if child is not None else None
        if not isinstance(other, dict) or within(other, there):
            raise Skipped("no status is known that differs from the one there: give a second sample that has one")
        return other

    def scalable(self) -> Tree:
        """An object to create that says how many replicas it wants, if it can."""
        made = self.new()
        spec = self.schema.member("spec") if self.schema is not None else None
        if spec is not None and spec.member("replicas") is not None:
            made["spec"] = {"replicas": 1, **(made.get("spec") or {})}
        return made

    # Requests

    def another(self, credential: Credential | None = None) -> Client:
        """Another client, for the same user unless told, with a connection of its own until the check ends."""
        client = Client(self.client.target, credential)
        self._clients.append(client)
        return client

    def hang_up(self) -> None:
        """Close the connections of a check."""
        for client in self._clients:
            client.close()
        self._clients.clear()

    def create(self, body: Tree | None = None, **metadata: Any) -> Tree:
        """Create an object that has to be accepted; the object, when nobody else changes it any more."""
        answer = self.post(self.new(**metadata) if body is None else body)
        if answer.status != 201:
            raise Failed("201: the object is created", answer)
        return self.settled(answer.tree())

    def settled(self, obj: Tree) -> Tree:
        """The object as it is when whoever follows objects of this kind has done what he does with new ones."""
        if not self.unrest or "get" not in self.resource.verbs:
            return obj
        until = time.monotonic() + self.client.target.patience
        time.sleep(self.unrest)
        while True:
            before, obj = version(obj), self.read(name_of(obj))
            if version(obj) == before or time.monotonic() > until:
                return obj
            time.sleep(0.05)

    def watch_unrest(self, obj: Tree) -> None:
        """Find out whether a new object is changed by somebody else, and for how long."""
        begun = last = time.monotonic()
        latest = begun + self.client.target.patience
        while time.monotonic() < min(last + self.client.target.settle, latest):
            time.sleep(0.03)
            answer = self.get(name_of(obj))
            if answer.status != 200:
                return
            if version(answer.tree()) != version(obj):
                obj, last = answer.tree(), time.monotonic()
                self.unrest = 2 * (last - begun)

    def remove(self, name: str) -> Answer:
        """Delete an object and wait until it is gone; the answer to the deletion."""
        answer = success(self.delete(name), "the deletion", 200, 202)
        until = time.monotonic() + self.client.target.patience
        while (after := self.get(name)).status == 200:
            found = metadata(after.tree())
            demand(found.get("deletionTimestamp"), "gone, or deletionTimestamp is set", answer, after)
            if not found.get("finalizers") or time.monotonic() > until:
                raise Skipped("objects of this kind take their time to go")
            time.sleep(0.03)
        return answer

    def post(
        self,
        body: object,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        namespace: str | None = None,
        client: Client | None = None,
    ) -> Answer:
        """POST to the collection; what it may have made is remembered for removal."""
        path = self.path(namespace=namespace)
        answer = (client or self.client).request("POST", path, body, query=query, headers=headers)
        if answer.status in (200, 201, 202):
            self.remember(answer, path)
        return answer

    def remember(self, answer: Answer, collection: str) -> None:
        """The object of an answer has to go at the end."""
        try:
            name = answer.json()["metadata"]["name"]
        except (Failed, KeyError, TypeError, IndexError):
            return
        self.made[f"{collection}/{name}"] = None

    def get(self, name: str, query: Query | None = None, headers: Mapping[str, str] | None = None) -> Answer:
        return self.client.request("GET", self.path(name), query=query, headers=headers)

    def read(self, name: str) -> Tree:
        """The object as it is now; it has to be there."""
        answer = self.get(name)
        if answer.status != 200:
            raise Failed("200: the object is there", answer)
        return answer.tree()

    def put(self, body: Tree, query: Query | None = None, *, subresource: str = "", name: str = "") -> Answer:
        path = self.path(name or str(body["metadata"]["name"]), subresource)
        answer = self.client.request("PUT", path, body, query=query)
        if answer.status == 201:
            self.remember(answer, self.path())
        return answer

    def patch(
        self,
        name: str,
        body: object,
        query: Query | None = None,
        *,
        media: str = "application/merge-patch+json",
        subresource: str = "",
    ) -> Answer:
        answer = self.client.request(
            "PATCH", self.path(name, subresource), body, query=query, headers={"Content-Type": media}
        )
        if answer.status == 201:
            self.remember(answer, self.path())
        return answer

    def delete(self, name: str, body: object = None, query: Query | None = None) -> Answer:
        return self.client.request("DELETE", self.path(name), body, query=query)

    def listing(
        self,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        namespace: str | None = None,
    ) -> Answer:
        return self.client.request("GET", self.path(namespace=namespace), query=query, headers=headers)

    def listed(self, query: Query | None = None, *, namespace: str | None = None) -> tuple[list[Tree], Answer]:
        """The items of a list that has to succeed, and the answer."""
        answer = self.listing(query, namespace=namespace)
        return items(answer), answer

    def stranger(self) -> str:
        """An object of the collection that is not the kit's; empty when there is none. Nobody else's may be deleted."""
        for item in items(self.listing()):
            if (metadata(item).get("labels") or {}).get(LABEL) != self.around.run:
                return name_of(item) or "an object without a name"
        return ""

    def version(self) -> str:
        """The resource version of the collection, for a watch to start from."""
        _, answer = self.listed({"limit": 1})
        return version(answer.tree())

    def watch(
        self,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        namespace: str | None = None,
    ) -> Watch:
        """A watch that has to be accepted. Close it: `with t.watch(...) as watch`."""
        watch = self.client.watch(self.path(namespace=namespace), query, headers)
        if watch.answer.status != 200:
            watch.close()
            raise Failed("200: the watch begins", watch)
        return watch

    def existing(self) -> Tree:
        """An object that is there: one of the kit's own where it can create, else the first of the list."""
        if {"create", "delete"} <= self.resource.verbs and not self.refused:
            return self.create()
        if "list" in self.resource.verbs:
            found, _ = self.listed(namespace="")
            if found:
                return found[0]
        raise Skipped(self.refused or "there is no object, and none can be created")

    @cached_property
    def lingers(self) -> bool:
        """Whether objects of this kind take their time to go: without finalizers in their metadata, or held by those
        of the server that nobody takes away."""
        made = self.create()
        if self.delete(name_of(made)).status not in (200, 202):
            return False
        until = time.monotonic() + self.client.target.patience
        while (after := self.get(name_of(made))).status == 200:
            if not metadata(after.tree()).get("finalizers") or time.monotonic() > until:
                return True
            time.sleep(0.03)
        return False

    def prompt(self) -> None:
        """Skip where objects do not go at once: then it is not known when what is expected comes."""
        if self.lingers:
            raise Skipped("objects of this kind take their time to go")

    def where(self, obj: Tree) -> str:
        """The path of an object that may lie in any namespace."""
        return self.path(name_of(obj), namespace=str(obj["metadata"].get("namespace", "")))


def _named(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {key: _named(member, name) for key, member in value.items()}
    if isinstance(value, list):
        return [_named(member, name) for member in value]
    return value.replace(NAME, name) if isinstance(value, str) else value


def within(part: Any, whole: Any) -> bool:
    """Whether a merge of `part` into `whole` changes nothing."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(name in whole and within(value, whole[name]) for name, value in part.items())
    return bool(part == whole)


def metadata(obj: Tree) -> Tree:
    """The metadata of an object; empty when there is none."""
    found = obj.get("metadata")
    return found if isinstance(found, dict) else {}


def name_of(obj: Tree) -> str:
    return str(metadata(obj).get("name", ""))


def version(obj: Tree) -> str:
    return str(metadata(obj).get("resourceVersion", ""))


def names(objects: Sequence[Tree]) -> list[str]:
    return [name_of(obj) for obj in objects]


def items(answer: Answer) -> list[Tree]:
    """The items of a list that has to have succeeded."""
    if answer.status != 200:
        raise Failed("200: the list", answer)
    found = answer.tree().get("items")
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise Failed("items is a list of objects", answer)
    return found


def marked(obj: Tree, value: str, *, key: str = MARK) -> Tree:
    """A copy of an object with an annotation of the kit's."""
    copied = copy.deepcopy(obj)
    annotations = copied.setdefault("metadata", {}).setdefault("annotations", None) or {}
    copied["metadata"]["annotations"] = {**annotations, key: value}
    return copied


def mark(obj: Tree, *, key: str = MARK) -> str | None:
    """What `marked` has written."""
    value = (metadata(obj).get("annotations") or {}).get(key)
    return None if value is None else str(value)


def success(answer: Answer, what: str, *codes: int) -> Answer:
    """The answer, if it has one of these codes (200 unless given); else the check has failed."""
    expected = codes or (200,)
    demand(answer.status in expected, f"{' or '.join(map(str, expected))}: {what}", answer)
    return answer


def error(answer: Answer, codes: int | Sequence[int], reason: str = "", what: str = "") -> Tree:
    """The Status of an answer that has to be an error with one of these codes, in the right shape."""
    expected = (codes,) if isinstance(codes, int) else tuple(codes)
    told = f"{' or '.join(map(str, expected))}{' ' + reason if reason else ''}{': ' + what if what else ''}"
    demand(answer.status in expected, told, answer)
    status = status_of(answer)
    demand(not reason or status.get("reason") == reason, f"reason {reason}", answer)
    return status


def status_of(answer: Answer) -> Tree:
    """The body as a Status that fits its answer; a failed check when it is none."""
    status = answer.tree()
    demand(
        status.get("kind") == STATUS and status.get("apiVersion") == "v1", "the body is a Status of version v1", answer
    )
    demand(
        status.get("status") == "Failure" and status.get("code") == answer.status, "its code is the answer's", answer
    )
    demand(isinstance(status.get("message"), str) and status["message"], "it has a message", answer)
    return status
