"""What both document versions share: operations grouped by path, common parameters taken out."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi_core.openapi.operations import Operation
from fastapi_core.openapi.parameters import Parameter

PHRASES = {"200": "OK", "201": "Created", "202": "Accepted", "401": "Unauthorized"}

Found = list[tuple[Operation, list[Parameter]]]


def by_path(operations: list[Operation]) -> Iterator[tuple[str, list[Parameter], Found]]:
    """Paths in order of text, each with the parameters all its operations have, and its operations with the others.

    Parameters are in order of name.
    """
    paths: dict[str, list[Operation]] = {}
    for operation in operations:
        paths.setdefault(operation.path, []).append(operation)
    for path, found in sorted(paths.items()):
        shared = set(found[0].parameters).intersection(*(operation.parameters for operation in found))
        yield (
            path,
            sorted(shared),
            [(operation, sorted(set(operation.parameters) - shared)) for operation in found],
        )
