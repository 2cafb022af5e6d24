"""What ListOptions of a watch may hold together, and which complaints come in which order."""

from __future__ import annotations

import pytest

from fastapi_core import errors
from fastapi_core.rest.options import list_options, revision_of

UNLESS = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
REQUIRES = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
WITH_CONTINUE = "resourceVersionMatch is forbidden when continue is provided"
UNSUPPORTED = 'Unsupported value: "Exact": supported values: "NotOlderThan"'


@pytest.mark.parametrize(
    ("query", "causes"),
    [
        ("resourceVersionMatch=Exact", [f"Forbidden: {UNLESS}", UNSUPPORTED]),
        ("sendInitialEvents=false", [f"Forbidden: {REQUIRES}"]),
        ("sendInitialEvents=1&resourceVersionMatch=Exact", [f"Forbidden: {REQUIRES}", UNSUPPORTED]),
        # A watch without a version counts as one that asks for its initial events.
        ("continue=x", [f"Forbidden: {WITH_CONTINUE}"]),
        ("continue=x&resourceVersion=0", [f"Forbidden: {WITH_CONTINUE}"]),
        ("continue=x&resourceVersionMatch=Exact", [f"Forbidden: {UNLESS}", UNSUPPORTED, f"Forbidden: {WITH_CONTINUE}"]),
    ],
)
def test_refused(query: str, causes: list[str]) -> None:
    with pytest.raises(errors.APIError) as caught:
        list_options("watch=1&" + query)
    assert [cause["message"] for cause in caught.value.to_status()["details"]["causes"]] == causes


@pytest.mark.parametrize(
    "query", ["continue=x&resourceVersion=7", "resourceVersionMatch=NotOlderThan&sendInitialEvents=true", "limit=1"]
)
def test_accepted(query: str) -> None:
    assert list_options("watch=1&" + query).watch


def test_a_list_says_that_the_version_is_wrong() -> None:
    with pytest.raises(errors.APIError, match=r"^invalid resource version: resourceVersion: Invalid value") as caught:
        revision_of("abc", listing=True)
    assert caught.value.code == 400
    with pytest.raises(errors.APIError, match=r"^resourceVersion: Invalid value") as caught:
        revision_of("abc")
    assert caught.value.code == 500
