"""Unknown and doubled fields, and metadata that cannot be."""

from __future__ import annotations

import json

from fastapi_core.testing.conformance.client import Answer, Query
from fastapi_core.testing.conformance.subject import Subject, error, success
from fastapi_core.testing.conformance.verdicts import SHOULD, Skipped, check, demand

_UNKNOWN = "conformanceUnknown"


def _unknown(t: Subject, query: Query) -> Answer:
    schema = t.schema
    if schema is not None and schema.open:
        raise Skipped("the kind takes fields that nobody has declared")
    return t.post({**t.new(), _UNKNOWN: 1}, query)


@check("fields.strict", needs="create delete")
def fields_strict(t: Subject) -> None:
    """fieldValidation=Strict refuses unknown fields and names them; `kubectl apply` sends it by default."""
    status = error(_unknown(t, {"fieldValidation": "Strict"}), 400, "BadRequest", "an unknown field")
    demand(
        _UNKNOWN in status["message"],
        "the field in the message",
        t.post({**t.new(), _UNKNOWN: 1}, {"fieldValidation": "Strict"}),
    )


@check("fields.strict-nested", SHOULD, needs="create delete")
def fields_strict_nested(t: Subject) -> None:
    """Strict looks into the spec, too."""
    body = t.new()
    spec = t.schema.member("spec") if t.schema is not None else None
    if spec is None or spec.open or not isinstance(body.get("spec"), dict):
        raise Skipped("no spec with declared fields")
    body["spec"][_UNKNOWN] = 1
    error(t.post(body, {"fieldValidation": "Strict"}), 400, "BadRequest", "an unknown field in the spec")


@check("fields.warn", SHOULD, needs="create delete")
def fields_warn(t: Subject) -> None:
    """fieldValidation=Warn, which is the default, accepts unknown fields with a Warning that names them."""
    for query in ({"fieldValidation": "Warn"}, {}):
        answer = success(_unknown(t, query), "the create", 201)
        warning = answer.header("Warning")
        demand(warning.startswith("299 ") and _UNKNOWN in warning, f"a Warning 299 with {_UNKNOWN}", answer)
        demand(_UNKNOWN not in answer.tree(), "the field is dropped", answer)


@check("fields.ignore", needs="create delete")
def fields_ignore(t: Subject) -> None:
    """fieldValidation=Ignore accepts unknown fields in silence."""
    answer = success(_unknown(t, {"fieldValidation": "Ignore"}), "the create", 201)
    # There may be others, of a deprecated version for example.
    demand(_UNKNOWN not in answer.header("Warning"), "no Warning of the field", answer)


@check("fields.bad-level", SHOULD, needs="create delete")
def fields_bad_level(t: Subject) -> None:
    """An unknown value of fieldValidation is refused."""
    error(t.post(t.new(), {"fieldValidation": "Nearly"}), (400, 422))


@check("fields.doubled", SHOULD, needs="create delete")
def fields_doubled(t: Subject) -> None:
    """Strict refuses a field that comes twice: one of both would be lost."""
    body = json.dumps(t.new())
    doubled = f'{body[:-1]}, "kind": "{t.resource.kind}"}}'.encode()
    error(t.post(doubled, {"fieldValidation": "Strict"}), 400, "BadRequest", "a doubled field")


@check("fields.metadata", needs="create delete")
def fields_metadata(t: Subject) -> None:
    """Labels, annotations and owner references that cannot be are a 422 that names the field."""
    wrong = (
        {"labels": {"-conformance-": "x"}},
        {"annotations": {"a b": "x"}},
        {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": ""}]},
        {"finalizers": ["not a finalizer"]},
    )
    for metadata in wrong:
        answer = t.post(t.new(**metadata))
        status = error(answer, 422, "Invalid", f"metadata {json.dumps(metadata)}")
        causes = (status.get("details") or {}).get("causes") or []
        field = next(iter(metadata))
        demand(
            any(str(cause.get("field")).startswith(f"metadata.{field}") for cause in causes),
            "a cause that names it",
            answer,
        )


@check("fields.type", needs="create delete")
def fields_type(t: Subject) -> None:
    """A field of the wrong JSON type is a 400 or 422, never accepted as something else."""
    for metadata in ({"annotations": {"a": 1}}, {"annotations": "text"}):
        body = t.new()
        body["metadata"].update(metadata)
        error(t.post(body), (400, 422), what=f"metadata {json.dumps(metadata)}")
