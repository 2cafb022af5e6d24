"""The public surface: names others may rely on. A change here is a change of a promise."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "fastapi_core"

PUBLIC = {
    "errors.py": {
        "APIError", "CAUSE_REASONS", "FieldError", "OMITTED", "REASON_CODES", "already_exists", "bad_request", "conflict",
        "expired", "forbidden", "go_float", "go_json_number",
        "go_quote", "go_value", "internal", "invalid", "method_not_allowed", "no_such_resource",
        "not_acceptable", "not_found", "qualified", "timeout", "too_large", "too_large_resource_version", "unauthorized",
        "unsupported_media_type",
    },
    "storage/interface.py": {"Code", "Event", "Events", "KeyValue", "Listener", "Page", "Storage", "StorageError"},
    "http/exchange.py": {"Answer", "Handler", "Header", "Response", "Stream", "StreamWriter"},
    "testing/server.py": {"RunningServer"},
    "testing/conformance/target.py": {"Credential", "NOBODY", "Target", "TargetError"},
    "testing/conformance/report.py": {"Outcome", "REFUSED", "Report", "Result", "UNSERVED"},
    "testing/conformance/runner.py": {"Listener", "Options", "Session", "outcome_of", "run", "run_async", "selected"},
}  # fmt: skip


def public_names(path: Path) -> set[str]:
    """Names a module defines at its top level, without those that begin with an underscore."""
    names: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("module", sorted(PUBLIC))
def test_public_names(module: str) -> None:
    assert public_names(PACKAGE / module) == PUBLIC[module]


EXTENSION = {
    "AGE", "APIError", "Column", "Connection", "Description", "Event", "Extension", "Feed", "Field", "FieldError",
    "GroupVersion", "IntOrString", "KindOptions", "Listing", "ModelError", "ObjectMeta", "Objects", "OwnerReference",
    "Quantity", "Request", "Resource", "Scale", "Storage", "Stored", "Subresource", "User", "Version", "quick",
}  # fmt: skip


def test_the_names_of_the_extension_framework() -> None:
    from fastapi_core import extension

    assert set(extension.__all__) == EXTENSION
    assert all(getattr(extension, name).__doc__ for name in EXTENSION - {"AGE", "IntOrString"})
