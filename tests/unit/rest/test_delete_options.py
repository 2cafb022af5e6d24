"""DeleteOptions from a query or a body: what is refused, and with which words."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fastapi_core import errors
from fastapi_core.request.context import RequestContext
from fastapi_core.rest.delete import read_options
from fastapi_core.rest.options import DeleteOptions, delete_options_from_query


def read(body: object) -> DeleteOptions:
    request = SimpleNamespace(body=json.dumps(body).encode(), header=lambda name: None, query="")
    return read_options(cast("RequestContext", cast("Any", SimpleNamespace(request=request, audit=None))))


def test_preconditions_of_the_query() -> None:
    options = delete_options_from_query("uid=u&resourceVersion=7")
    assert (options.uid, options.resource_version) == ("u", "7")


@pytest.mark.parametrize("given", ["query", "body"])
def test_an_empty_policy_is_no_policy(given: str) -> None:
    with pytest.raises(errors.APIError) as caught:
        delete_options_from_query("propagationPolicy=") if given == "query" else read({"propagationPolicy": ""})
    assert caught.value.code == 422
    assert 'Unsupported value: ""' in caught.value.message


SCHEME = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"apiVersion": "a/b/c"}, "unexpected GroupVersion string: a/b/c"),
        (
            {"apiVersion": "v1", "kind": "Secret"},
            f'no kind "Secret" is registered for version "v1" in scheme "{SCHEME}"',
        ),
        ({"kind": "Status"}, "converting (v1.Status) to (v1.DeleteOptions): unknown conversion"),
    ],
)
def test_other_kinds(body: object, text: str) -> None:
    with pytest.raises(errors.APIError) as caught:
        read(body)
    assert (caught.value.code, caught.value.message) == (400, text)


@pytest.mark.parametrize("body", [{"apiVersion": 5}, {"kind": 5}, {"dryRun": [5]}, {"gracePeriodSeconds": "5"}])
def test_wrong_types(body: object) -> None:
    with pytest.raises(errors.APIError) as caught:
        read(body)
    assert caught.value.code == 400


def test_null_is_an_empty_text() -> None:
    with pytest.raises(errors.APIError, match="Unsupported value") as caught:
        read({"dryRun": [None]})
    assert caught.value.code == 422
