"""Expressions in recordings of the reference: what it took compiles, and costs what it let pass."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastapi_core import cel
from fastapi_core.cel.estimate import estimate
from fastapi_core.cel.schemas import from_schema
from fastapi_core.cel.types import BOOL, STRING, optional_of

GOLDEN = Path(__file__).parents[4] / "shared" / "golden"
pytestmark = pytest.mark.golden
RULE_LIMIT = 10_000_000


def _rules(schema: Any, path: str, root: bool) -> Iterator[tuple[str, dict[str, Any], dict[str, Any], bool]]:
    if not isinstance(schema, dict):
        return
    for rule in schema.get("x-kubernetes-validations") or ():
        yield path, schema, rule, root
    for name, inner in (schema.get("properties") or {}).items():
        yield from _rules(inner, f"{path}.properties[{name}]", False)
    yield from _rules(schema.get("items"), f"{path}.items", False)
    yield from _rules(schema.get("additionalProperties"), f"{path}.additionalProperties", False)


def _definitions() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    for file in sorted((GOLDEN / "crd").glob("*.json")) if GOLDEN.exists() else ():
        for step in json.loads(file.read_text())["steps"]:
            body = step.get("body")
            if isinstance(body, dict) and body.get("kind") == "CustomResourceDefinition":
                yield file.name, body, step["expect"]


def _cases() -> list[Any]:
    cases = []
    for name, body, expect in _definitions():
        for version in body["spec"].get("versions") or ():
            schema = (version.get("schema") or {}).get("openAPIV3Schema")
            for path, node, rule, root in _rules(schema, "openAPIV3Schema", True):
                cases.append(pytest.param(path, node, rule, root, expect, id=f"{name}:{len(cases)}"))
    return cases


@pytest.mark.skipif(not GOLDEN.exists(), reason="no recordings")
@pytest.mark.parametrize(("path", "schema", "rule", "root", "expect"), _cases())
def test_rules(path: str, schema: dict[str, Any], rule: dict[str, Any], root: bool, expect: dict[str, Any]) -> None:
    decl = from_schema(schema, root=root)
    if decl is None:
        pytest.skip("not seen by expressions")
    decl = decl.named("selfType")
    old = optional_of(decl.type) if rule.get("optionalOldSelf") else decl.type
    environment = cel.Environment({"self": decl, "oldSelf": old})
    causes = ((expect.get("body") or {}).get("details") or {}).get("causes") or []
    told = [cause["message"] for cause in causes if cause["field"].startswith(f"spec.validation.{path}.x-kube")]
    refusal = ""
    try:
        program = cel.compile_expression(rule["rule"], environment, [BOOL])
    except cel.CompileError as error:
        refusal = str(error)
    if refusal:
        assert any(refusal in message for message in told)
        return
    assert not any("compilation failed" in message for message in told)
    over = estimate(program.node, decl).high > RULE_LIMIT
    if expect["status"] == 201:
        # Within lists the cost counts as often as the list has items, so only what is cheap alone is known here.
        assert not over
    if over:
        assert any("estimated rule cost exceeds budget" in message for message in told)
    if rule.get("messageExpression"):
        cel.compile_expression(rule["messageExpression"], environment, [STRING])
