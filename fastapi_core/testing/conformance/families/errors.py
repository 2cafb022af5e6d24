"""The shape of errors: one Status, whatever went wrong."""

from __future__ import annotations

from fastapi_core.testing.conformance.subject import Subject, error, status_of
from fastapi_core.testing.conformance.verdicts import Skipped, check, demand

#: Reasons by code; clients look at either.
_REASONS = {
    400: {"BadRequest"},
    403: {"Forbidden"},
    404: {"NotFound"},
    405: {"MethodNotAllowed"},
    406: {"NotAcceptable"},
    409: {"Conflict", "AlreadyExists"},
    410: {"Expired", "Gone"},
    413: {"RequestEntityTooLarge"},
    415: {"UnsupportedMediaType"},
    422: {"Invalid"},
}


@check("error.shape")
def error_shape(t: Subject) -> None:
    """Every error is a Status of v1 with code, reason and message, as JSON; clients decode nothing else."""
    verbs = t.resource.verbs
    tried = []
    if "get" in verbs:
        tried.append(t.get("conformance-nothing"))
    if "list" in verbs:
        tried += [t.listing({"labelSelector": "a in"}), t.listing(headers={"Accept": "application/x-conformance"})]
    if {"create", "delete"} <= verbs:
        tried += [t.post(b"{"), t.post(t.new(labels={"conformance": "not a valid value!"}))]
    if "delete" in verbs:
        tried.append(t.delete("conformance-nothing"))
    for answer in tried:
        demand(answer.status >= 400, "an error", answer)
        demand(answer.media == "application/json", "Content-Type application/json", answer)
        status = status_of(answer)
        reasons = _REASONS.get(answer.status)
        demand(reasons is None or status.get("reason") in reasons, f"a reason that fits {answer.status}", answer)


@check("error.not-found", needs="get")
def error_not_found(t: Subject) -> None:
    """The message of a 404 names resource and object, as people read it: `leases.coordination.k8s.io "x" not found`."""
    answer = t.get("conformance-nothing")
    status = error(answer, 404, "NotFound")
    demand(
        "conformance-nothing" in status["message"] and "not found" in status["message"], "both in the message", answer
    )


@check("error.method")
def error_method(t: Subject) -> None:
    """A method that makes no sense for a path is a 405, or another 4xx, of a reason that fits; never a success."""
    tried = [t.client.request("PUT", t.path(), {}), t.client.request("POST", t.path("conformance-nothing"), {})]
    for answer in tried:
        demand(answer.status in (400, 403, 404, 405), "405", answer)
        if answer.status == 405:
            error(answer, 405, "MethodNotAllowed")


@check("error.invalid", needs="create delete")
def error_invalid(t: Subject) -> None:
    """A 422 names the object and each wrong field among its causes; forms show them beside the fields."""
    body = t.new(labels={"conformance": "not a valid value!"})
    answer = t.post(body)
    if answer.status == 400:
        raise Skipped("answered as 400")
    details = error(answer, 422, "Invalid").get("details") or {}
    demand(
        details.get("kind") == t.resource.kind and details.get("group", "") == t.resource.group,
        "details.kind, group",
        answer,
    )
    causes = details.get("causes") or []
    demand(causes, "details.causes", answer)
    for cause in causes:
        demand(
            cause.get("field") and cause.get("message") and cause.get("reason"),
            "field, message and reason of each",
            answer,
        )
