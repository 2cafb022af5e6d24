"""The chain of a whole server follows its flags."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastapi_core.admission.catalog import ORDER
from fastapi_core.controlplane.compose import compose
from fastapi_core.options.complete import complete
from fastapi_core.options.options import Options

LATER = {"PodGroupProtection", "PodGroupWorkloadExists", "JobValidation"}


async def chain_of(monkeypatch: pytest.MonkeyPatch, *flags: str) -> list[str]:
    from fastapi_core.controlplane import gates

    made: list[str] = []
    plain = gates.chain

    def chain(*arguments: object) -> object:
        result = plain(*arguments)  # type: ignore[arg-type]
        made.extend(plugin.name for plugin in result.plugins)
        return result

    monkeypatch.setattr(gates, "chain", chain)
    completed = complete(Options.parse(["--secure-port=0", "--bind-address=127.0.0.1", *flags]))
    try:
        server = await compose(completed)
        await server.stop()
    finally:
        completed.close()
    return made


async def test_the_default_plugins_run_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    made = await chain_of(monkeypatch)
    assert made == [name for name in ORDER if name in made]
    assert {"NamespaceLifecycle", "LimitRanger", "PodSecurity", "ResourceQuota"} <= set(made)
    assert not {"AlwaysDeny", "NodeRestriction"} & set(made)


async def test_flags_files_and_gates_change_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    off = (
        "NamespaceAutoProvision,NamespaceExists,NodeRestriction,AlwaysPullImages,ImagePolicyWebhook,PodNodeSelector,"
        "PodTolerationRestriction,EventRateLimit,OwnerReferencesPermissionEnforcement,AlwaysDeny"
    )
    kubeconfig = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: images}}]
clusters: [{name: images, cluster: {server: "http://127.0.0.1:1/review"}}]
"""
    (tmp_path / "images.kubeconfig").write_text(kubeconfig)
    config = tmp_path / "admission.yaml"
    config.write_text(
        """
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ImagePolicyWebhook
  configuration: {imagePolicy: {kubeConfigFile: images.kubeconfig}}
- name: EventRateLimit
  configuration:
    apiVersion: eventratelimit.admission.k8s.io/v1alpha1
    kind: Configuration
    limits: [{type: Server, qps: 1, burst: 1}]
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults: {enforce: baseline}
- name: ResourceQuota
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ResourceQuotaConfiguration
    limitedResources: [{resource: pods, matchContains: [pods]}]
"""
    )
    made = await chain_of(
        monkeypatch,
        f"--enable-admission-plugins={off}",
        "--disable-admission-plugins=LimitRanger",
        f"--admission-control-config-file={config}",
        "--feature-gates=NodeDeclaredFeatures=false",
    )
    assert set(off.split(",")) <= set(made)
    assert not {"LimitRanger", "NodeDeclaredFeatureValidator"} & set(made)
