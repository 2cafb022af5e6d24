"""What paths are declared to produce and to take, asked of the composed server."""

from typing import Any

import pytest

from fastapi_core import errors
from fastapi_core.codec.negotiate import MediaType
from fastapi_core.rest import patch, render


class Request:
    def __init__(self, **headers: str) -> None:
        self._headers = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
        self.query = ""

    def header(self, name: bytes) -> bytes | None:
        return self._headers.get(name)


class Context:
    def __init__(self, **headers: str) -> None:
        self.request = Request(**headers)


def context(**headers: str) -> Any:
    return Context(**headers)


def test_tables_are_for_kinds_that_have_columns() -> None:
    accept = "application/json;as=Table;g=meta.k8s.io;v=v1"
    asked: list[Any] = []
    render.negotiated(asked.append, tables=True)(context(accept=accept))
    with pytest.raises(errors.APIError, match="only the following media types are accepted"):
        render.negotiated(asked.append)(context(accept=accept))
    assert len(asked) == 1
    render.negotiated(asked.append)(context(accept=accept.replace("Table", "PartialObjectMetadata")))
    assert len(asked) == 2


def test_metadata_of_a_list_is_of_a_list() -> None:
    one = MediaType(as_kind="PartialObjectMetadata", as_group="meta.k8s.io", as_version="v1")
    many = one._replace(as_kind="PartialObjectMetadataList")
    render.check_form(one, "ConfigMap")
    render.check_form(many, "ConfigMapList")
    for media, kind in ((one, "ConfigMapList"), (many, "ConfigMap")):
        with pytest.raises(errors.APIError) as caught:
            render.check_form(media, kind)
        assert (caught.value.code, caught.value.reason) == (406, "NotAcceptable")


def test_patches_of_services_are_declared() -> None:
    assert patch.patch_form(context(content_type="application/merge-patch+json; charset=utf-8"), service=True) == (
        "application/merge-patch+json"
    )
    for header in ("application/json", "application/MERGE-patch+json", "application/apply-patch+cbor"):
        with pytest.raises(errors.APIError) as caught:
            patch.patch_form(context(content_type=header), service=True)
        assert caught.value.message == "415: Unsupported Media Type"
        assert patch.patch_form(context(content_type=header), service=False) == header
