"""The subresources status and scale: written apart from the rest of the object."""

from __future__ import annotations

import copy
from collections.abc import Callable

from fastapi_core.testing.conformance.client import Answer, Tree
from fastapi_core.testing.conformance.subject import Subject, error, mark, marked, metadata, name_of, success, version
from fastapi_core.testing.conformance.verdicts import SHOULD, Skipped, check, demand

_ATTEMPTS = 8


def _again(write: Callable[[], Answer]) -> Answer:
    """The answer to a write; tried again while somebody else, a controller for example, is faster (409)."""
    answer = write()
    for _ in range(_ATTEMPTS):
        if answer.status != 409:
            break
        answer = write()
    return answer


def _with_status(t: Subject) -> tuple[Tree, Tree, Tree]:
    """An object whose status has been written, as it was made, and as it was before."""
    made = t.create()
    before = made

    def write() -> Answer:
        nonlocal before
        before = t.read(name_of(made))
        return t.put({**before, "status": t.status(before)}, subresource="status")

    answer = _again(write)
    _taken(t, answer, "the status is written")
    written = answer.tree()
    demand(written.get("status") != before.get("status"), "the status that was sent", answer)
    return written, made, before


def _taken(t: Subject, answer: Answer, what: str) -> None:
    if answer.status in (400, 422) and not any(sample.get("status") for sample in t.samples):
        raise Skipped("the status made from the schema is refused: give a sample that has one")
    success(answer, what)


def _left_alone(after: Tree, *known: Tree) -> None:
    """Skip when the object has been written again since: then its status is somebody else's."""
    if version(after) not in map(version, known):
        raise Skipped("a controller writes the status again at once: what is sent does not stay")


@check("status.written", needs="status create get delete")
def status_written(t: Subject) -> None:
    """A PUT to /status stores the status and nothing else; controllers report there and must not change the spec."""
    written, made, before = _with_status(t)
    answer = t.get(name_of(made))
    after = t.read(name_of(made))
    demand(version(after) != version(before), "another resourceVersion", answer)
    demand(after.get("spec") == made.get("spec"), "the spec stays", answer)
    demand(metadata(after).get("generation") == metadata(made).get("generation"), "generation stays", answer)
    if after.get("status") != written.get("status"):
        _left_alone(after, before, written)
    demand(after.get("status") == written.get("status"), "the status is stored as it was answered", answer)


@check("status.spec-kept", needs="status create get delete")
def status_spec_kept(t: Subject) -> None:
    """A write to /status leaves the spec as it is, whatever it sends for it."""
    made = t.create()
    other = {**copy.deepcopy(made), "spec": _another_spec(t, made)}
    answer = t.put(other, subresource="status")
    demand(answer.status in (200, 400, 422), "200, or refused", answer)
    demand(t.read(name_of(made)).get("spec") == made.get("spec"), "the spec stays", answer, t.get(name_of(made)))


def _another_spec(t: Subject, made: Tree) -> Tree:
    """A spec that is not the object's: that of the second sample, else one with another text in it."""
    if len(t.samples) > 1:
        return dict(t.new(name_of(made), sample=1).get("spec") or {})
    path = next(iter(t.schema.strings()), ()) if t.schema is not None else ()
    if path[:1] != ("spec",):
        raise Skipped("no field of the spec is known that takes any text: give a second sample")
    other = copy.deepcopy(made)
    node = other
    for name in path[:-1]:
        node = node.setdefault(name, {})
    node[path[-1]] = "conformance-changed"
    return dict(other["spec"])


@check("status.kept", needs="status create get update delete")
def status_kept(t: Subject) -> None:
    """A write to the object leaves its status as it is; users do not overwrite what controllers report."""
    _, made, _ = _with_status(t)
    before = made

    def write() -> Answer:
        nonlocal before
        before = t.read(name_of(made))
        return t.put({**marked(before, "new"), "status": {}})

    answer = success(_again(write), "the update")
    demand(answer.tree().get("status") == before.get("status"), "the status stays", answer)
    after = t.read(name_of(made))
    demand(mark(after) == "new", "what else was sent is stored", t.get(name_of(made)))
    if after.get("status") != before.get("status"):
        _left_alone(after, before, answer.tree())
    demand(after.get("status") == before.get("status"), "so it is stored", t.get(name_of(made)))


@check("status.not-created", SHOULD, needs="status create get delete")
def status_not_created(t: Subject) -> None:
    """A status sent with a create is not taken; nobody has reported anything yet."""
    wanted = t.status()
    plain = success(t.post(t.new()), "the create", 201).tree()
    answer = t.post({**t.new(), "status": wanted})
    if answer.status in (400, 422) and not any(sample.get("status") for sample in t.samples):
        raise Skipped("the status made from the schema is refused: give a sample that has one")
    success(answer, "the create", 201)
    demand(answer.tree().get("status") == plain.get("status"), "the status of a new object", answer)


@check("status.conflict", needs="status create get delete")
def status_conflict(t: Subject) -> None:
    """A write of /status with an old resourceVersion is a 409, as any other."""
    written, made, _ = _with_status(t)
    error(t.put({**made, "status": written["status"]}, subresource="status"), 409, "Conflict", "an old resourceVersion")


@check("status.missing", needs="status get")
def status_missing(t: Subject) -> None:
    """The status of what is not there is a 404 NotFound."""
    error(t.client.request("GET", t.path("conformance-nothing", "status")), 404, "NotFound")


@check("status.patch", SHOULD, needs="status create get patch delete")
def status_patch(t: Subject) -> None:
    """A merge patch to /status changes the status and leaves the rest."""
    if "patch" not in t.resource.subresources["status"]:
        raise Skipped("status is not patched here")
    made = t.create()
    before = made

    def write() -> Answer:
        nonlocal before
        before = t.read(name_of(made))
        return t.patch(name_of(made), {"status": t.status(before)}, subresource="status")

    answer = _again(write)
    _taken(t, answer, "the patch")
    demand(answer.tree().get("status") != before.get("status"), "the status changes", answer)
    after = t.read(name_of(made))
    demand(after.get("spec") == made.get("spec"), "the spec stays", answer, t.get(name_of(made)))
    demand(version(after) != version(before), "another resourceVersion", answer)
    if after.get("status") != answer.tree().get("status"):
        _left_alone(after, before, answer.tree())
    demand(after.get("status") == answer.tree().get("status"), "the status is stored", answer, t.get(name_of(made)))


@check("scale.read", needs="scale create get delete")
def scale_read(t: Subject) -> None:
    """/scale is a Scale of autoscaling/v1 that names the object; autoscalers know nothing but it."""
    made = t.create(t.scalable())
    answer = success(t.client.request("GET", t.path(name_of(made), "scale")), "the scale")
    tree = answer.tree()
    demand(
        tree.get("kind") == "Scale" and tree.get("apiVersion") == "autoscaling/v1", "a Scale of autoscaling/v1", answer
    )
    demand(metadata(tree).get("uid") == metadata(made).get("uid"), "the uid of the object", answer)
    demand(isinstance((tree.get("spec") or {}).get("replicas", 0), int), "spec.replicas is a number", answer)


@check("scale.write", needs="scale create get delete")
def scale_write(t: Subject) -> None:
    """A write of /scale changes the replicas of the object; `kubectl scale` and autoscalers do."""
    made = t.create(t.scalable())
    path = t.path(name_of(made), "scale")
    body = success(t.client.request("GET", path), "the scale").tree()
    wanted = int((body.get("spec") or {}).get("replicas", 0)) + 1
    body["spec"] = {"replicas": wanted}
    answer = success(t.client.request("PUT", path, body), "the scale is written")
    demand((answer.tree().get("spec") or {}).get("replicas") == wanted, f"replicas {wanted}", answer)
    again = success(t.client.request("GET", path), "the scale")
    demand((again.tree().get("spec") or {}).get("replicas") == wanted, f"replicas {wanted} is stored", again)
    demand(version(t.read(name_of(made))) != version(made), "the object has changed", t.get(name_of(made)))
