"""Flags of aggregation: everything that is wrong is said at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastapi_core.options.flags import OptionsError
from fastapi_core.options.options import Options


def test_defaults_are_the_references() -> None:
    made = Options.parse([]).aggregation
    assert made.aggregator_reject_forwarding_redirect
    assert not made.enable_aggregator_routing
    assert (made.aggregator_health_period, made.aggregator_health_failures) == (30.0, 1)


def test_all_errors_at_once(tmp_path: Path) -> None:
    file = tmp_path / "cert"
    file.write_text("x")
    with pytest.raises(OptionsError) as caught:
        Options.parse(
            [
                f"--proxy-client-cert-file={file}", "--aggregator-health-failures=0", "--aggregator-health-path=x",
                "--egress-selector-config-file=/nonexistent", "--aggregator-health-period=0s",
                "--aggregator-proxy-timeout=-1s",
            ]
        )  # fmt: skip
    assert [line.partition(":")[0] for line in caught.value.errors] == [
        "--aggregator-health-failures", "--aggregator-health-period", "--aggregator-proxy-timeout",
        "--aggregator-health-path", "--proxy-client-key-file", "--egress-selector-config-file",
    ]  # fmt: skip
