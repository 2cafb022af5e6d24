"""Recorded creates of built-in kinds: normalise, default, prepare and validate give the recorded object or errors.

What another object or a later stage decides (default classes, allocations, limit ranges, policies) is left out by name.
"""

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from fastapi_core import errors
from fastapi_core.apis.allocation import ServiceAllocator
from fastapi_core.apis.defaults import apply_defaults
from fastapi_core.apis.resources import builtin
from fastapi_core.registry.metadata import dedup_owner_references, validate_metadata
from fastapi_core.schema import defaults as type_defaults
from fastapi_core.schema.normalize import normalize

GOLDEN = Path(__file__).parents[4] / "shared" / "golden"
AREAS = ("access", "builtins", "core", "listwatch", "patch")
NEEDS_MORE = {
    "csr-create-fills-requester": "the requester",
    "csr-create-and-approve": "the requester",
    "default-ingress-class": "the default class",
    "default-storage-class": "the default class",
    "default-storageclass-admission": "the default class",
    "limitranger-min-max-errors": "a limit range",
    "map-json-patch-and-variables": "a mutating policy",
    "priority-custom-class": "a priority class",
    "runtimeclass-rules": "a runtime class",
    "pod-minimal-defaults": "the token volume",
    "serviceaccount-token-volume-shape": "the token volume",
}
#: Members of a pod's spec that admission fills in.
ADMITTED = ("serviceAccountName", "serviceAccount", "tolerations", "priority", "preemptionPolicy")
_PATH = re.compile(r"(/api/v1|/apis/[^/]+/[^/]+)(?:/namespaces/[^/]+)?/([a-z]+)")
_BASES = {(f"/apis/{d.group}/{d.version}" if d.group else "/api/v1", d.plural): d for d in builtin() if d.key_prefix}
_ALLOCATOR = ServiceAllocator()


def recorded() -> list[Any]:
    found = []
    for area in AREAS:
        for path in sorted((GOLDEN / area).glob("*.json")):
            if path.stem in NEEDS_MORE:
                continue
            for index, step in enumerate(json.loads(path.read_text())["steps"]):
                match = _PATH.fullmatch(step["path"])
                body, answer = step.get("body"), step.get("expect", {}).get("body")
                if (
                    step["method"] == "POST"
                    and step["expect"]["status"] == 201
                    and match is not None
                    and match.groups() in _BASES
                    and isinstance(body, dict)
                    and isinstance(answer, dict)
                    and not re.search(r"\{(?!rand|ns)\w+\}", json.dumps(body))
                ):
                    found.append(pytest.param(_BASES[match.groups()], step, id=f"{path.stem}-{index}"))
    return found


@pytest.fixture(scope="session")
def replay() -> Any:
    spec = importlib.util.spec_from_file_location("replay", GOLDEN / "replay.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def created(definition: Any, body: dict[str, Any]) -> dict[str, Any]:
    tree = normalize(definition.type, body).tree
    type_defaults.apply(definition.type, tree)
    apply_defaults(definition, tree)
    metadata = tree["metadata"]
    for name in ("resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"):
        metadata.pop(name, None)
    if definition.namespaced:
        metadata["namespace"] = "g-abcdef"
    metadata["uid"] = "11111111-2222-3333-4444-555555555555"
    metadata["creationTimestamp"] = "2020-01-01T00:00:00Z"
    metadata.setdefault("name", metadata.get("generateName", "") + "x")
    dedup_owner_references(tree)
    if definition.kind == "Service":
        definition = _ALLOCATOR.bind(definition)
    definition.strategy.prepare(tree, None)
    problems = validate_metadata(tree, None, definition=definition) + definition.strategy.validate(tree, None)
    if problems:
        raise errors.invalid(definition.kind, definition.group, metadata["name"], problems)
    definition.strategy.canonicalize(tree, None)
    tree = normalize(definition.type, tree).tree
    return {"kind": definition.kind, "apiVersion": definition.group_version, **tree}


@pytest.mark.parametrize(("definition", "step"), recorded())
def test_recorded_create(definition: Any, step: dict[str, Any], replay: Any) -> None:
    body = json.loads(json.dumps(step["body"]).replace("{rand}", "abcdef").replace("{ns}", "g-abcdef"))
    got, want = created(definition, body), step["expect"]["body"]
    for path in ("metadata.managedFields", "metadata.resourceVersion", "metadata.name", *step.get("ignore", ())):
        replay.drop(got, path)
        replay.drop(want, path)
    if definition.kind == "Pod":
        for name in ADMITTED:
            got["spec"].pop(name, None)
            want["spec"].pop(name, None)
    got = replay.normalise(got, [("g-abcdef", "<ns>"), ("abcdef", "<rand>")])
    assert replay.difference(want, got) == []
