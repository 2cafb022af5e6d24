"""A watch as Table refuses an unknown includeObject before it begins."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from fastapi_core import errors
from fastapi_core._ext.reqinfo import parse
from fastapi_core.rest.options import ListOptions
from fastapi_core.rest.watch import WatchServer

TABLE = b"application/json;as=Table;v=v1;g=meta.k8s.io"


def test_refused_before_the_stream() -> None:
    info = parse("GET", "/api/v1/namespaces/a/pods", "watch=1&includeObject=none")
    ctx: Any = SimpleNamespace(
        info=info, request=SimpleNamespace(header=lambda name: TABLE if name == b"accept" else None)
    )
    scope = SimpleNamespace(definition=SimpleNamespace(custom=False, group=""), matcher=lambda options: None)
    with pytest.raises(errors.APIError, match="includeObject") as caught:
        WatchServer(1.0).start(ctx, cast("Any", scope), ListOptions(watch=True))
    assert caught.value.code == 400
