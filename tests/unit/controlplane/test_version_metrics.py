from __future__ import annotations

from fastapi_core.discovery.index import VersionInfo
from fastapi_core.obs.catalog import Metrics
from fastapi_core.server.exports import export_version_metrics


def test_versions_and_the_number_of_metrics_are_exposed() -> None:
    metrics = Metrics()
    metrics.registry.hidden = frozenset({"apiserver_request_total", "no_such_metric"})
    export_version_metrics(metrics, VersionInfo(product_version="9").tree())
    text = metrics.registry.expose().decode()
    assert 'git_version="v1.36.2+fastapi-core.9"' in text
    assert 'version_info{binary="1.36",component="kube",emulation="1.36",min_compat="1.35"} 1' in text
    assert 'registered_metrics_total{deprecated_version="",stability_level="STABLE"}' in text
    assert "\ndisabled_metrics_total 1\n" in text
    assert "\nhidden_metrics_total 0\n" in text
    assert "apiserver_request_total" not in text
