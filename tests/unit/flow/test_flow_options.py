"""Flags of flow control."""

from __future__ import annotations

import pytest

from fastapi_core.options.flags import OptionsError
from fastapi_core.options.options import Options


def test_it_is_on_unless_switched_off() -> None:
    assert Options.parse([]).flowcontrol.enable_priority_and_fairness
    options = Options.parse(["--enable-priority-and-fairness=false"])
    assert not options.flowcontrol.enable_priority_and_fairness
    assert not options.inert


def test_there_must_be_something_to_share() -> None:
    nothing = ["--max-requests-inflight=0", "--max-mutating-requests-inflight=0"]
    with pytest.raises(OptionsError) as caught:
        Options.parse([*nothing, "--min-request-timeout=-1"])
    assert [line.partition(":")[0] for line in caught.value.errors] == [
        "--min-request-timeout",
        "--max-requests-inflight",
    ]
    Options.parse([*nothing, "--enable-priority-and-fairness=false"])
    Options.parse(["--max-requests-inflight=0"])
