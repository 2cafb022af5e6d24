"""Feature gates, API versions on demand, and the flags of serving."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fastapi_core.apis.resources import builtin, optional
from fastapi_core.options import gates
from fastapi_core.options.enablement import served
from fastapi_core.options.flags import OptionsError
from fastapi_core.options.options import Options

FACTS = Path(__file__).parents[3].parent / "shared/facts/flags.json"


def errors(*arguments: str) -> list[str]:
    with pytest.raises(OptionsError) as caught:
        Options.parse(arguments)
    return caught.value.errors


def test_every_gate_of_the_reference_is_known() -> None:
    if not FACTS.exists():
        pytest.skip("facts are not here")
    facts = json.loads(FACTS.read_text())["featureGates"]
    for name, known in facts.items():
        if not name.startswith("All"):
            assert (gates.KNOWN[name].default, gates.KNOWN[name].stage.lower()) == (known["default"], known["stage"])


def test_gates_are_set_by_name_component_and_stage() -> None:
    options = Options.parse(
        [
            "--feature-gates=AllAlpha=true,MemoryQoS=false",
            "--feature-gates=kube:WatchList=false",
            "--feature-gates=AllBeta=1",
        ]
    )
    given = options.gates
    assert given.enabled("PodsAPI")
    assert not given.enabled("MemoryQoS")
    assert not given.enabled("WatchList")
    assert given.enabled("ClusterTrustBundle")
    assert given.enabled("RetryGenerateName")
    assert not gates.Gates().enabled("PodsAPI")
    with pytest.raises(KeyError):
        given.enabled("NoSuchThing")


@pytest.mark.parametrize(
    ("argument", "error"),
    [
        ("NoSuchThing=true", "--feature-gates: unrecognized feature gate: NoSuchThing"),
        (
            "RetryGenerateName=false",
            "--feature-gates: cannot set feature gate RetryGenerateName to false, feature is locked to true",
        ),
        (
            "WatchList=yes",
            '--feature-gates: invalid value of WatchList=yes, err: strconv.ParseBool: parsing "yes": invalid syntax',
        ),
        ("etcd:WatchList=true", "--feature-gates: component not registered: etcd"),
        (
            "WatchList",
            "--feature-gates: 'WatchList' does not fit: name=value pairs are expected, 'WatchList' has no value",
        ),
    ],
)
def test_wrong_gates_are_refused_in_the_words_of_the_reference(argument: str, error: str) -> None:
    assert errors(f"--feature-gates={argument}") == [error]


def names(*settings: str, feature_gates: str = "") -> set[str]:
    """group/version/plural of what is served beyond (+) and less (-) than by default."""
    arguments = [f"--runtime-config={setting}" for setting in settings]
    options = Options.parse([*arguments, *([f"--feature-gates={feature_gates}"] if feature_gates else [])])
    found = {f"{d.group}/{d.version}/{d.plural}" for d in served(options.features.runtime_config, options.gates)}
    usual = {f"{d.group}/{d.version}/{d.plural}" for d in builtin()}
    return {f"+{name}" for name in found - usual} | {f"-{name}" for name in usual - found}


def test_alpha_and_beta_versions_are_served_on_demand_only() -> None:
    assert names() == set()
    assert all("alpha" in d.version or "beta" in d.version for d, _ in optional())
    assert names("networking.k8s.io/v1beta1=true") == {
        "+networking.k8s.io/v1beta1/ipaddresses", "+networking.k8s.io/v1beta1/servicecidrs",
    }  # fmt: skip
    beta = names("api/beta=true")
    assert "+resource.k8s.io/v1beta2/deviceclasses" in beta
    assert not any("alpha" in name for name in beta)
    assert "+resource.k8s.io/v1alpha3/devicetaintrules" in names("api/all=true")


def test_a_gate_is_needed_where_the_reference_needs_it() -> None:
    asked = "certificates.k8s.io/v1beta1=true"
    assert names(asked) == set()
    assert names(asked, feature_gates="ClusterTrustBundle=true") == {"+certificates.k8s.io/v1beta1/clustertrustbundles"}


def test_the_more_specific_setting_wins() -> None:
    assert names("batch/v1=false") == {"-batch/v1/jobs", "-batch/v1/cronjobs"}
    assert names("batch/v1=false,batch/v1/jobs=true") == {"-batch/v1/cronjobs"}
    assert names("apps/v1/daemonsets=false") == {"-apps/v1/daemonsets"}
    left = names("api/all=false,api/v1=true,apps/v1=true")
    assert "-batch/v1/jobs" in left
    assert not any(name.startswith(("-/v1/", "-apps/")) for name in left)
    assert names("api/beta=true,networking.k8s.io/v1beta1=false") == {
        name for name in names("api/beta=true") if "networking" not in name
    }


@pytest.mark.parametrize(
    ("setting", "error"),
    [
        ("api/all=false", "invalid key with only api/all=false"),
        ("nosuch.io/v1=true", "unknown api groups nosuch.io"),
        ("apps/v9=true", "group version apps/v9 that has not been registered"),
        ("apps=true", "runtime-config invalid key apps"),
        ("apps/v1=maybe", 'invalid value of apps/v1: maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax'),
    ],
)
def test_wrong_versions_are_refused(setting: str, error: str) -> None:
    assert errors(f"--runtime-config={setting}") == [f"--runtime-config: {error}"]


def test_tls_flags(tmp_path: Path) -> None:
    cert, key = tmp_path / "a.crt", tmp_path / "a.key"
    for file in (cert, key):
        file.write_text("x")
    options = Options.parse(
        [
            f"--tls-sni-cert-key={cert},{key}:*.example.com, example.com", f"--tls-sni-cert-key={cert},{key}",
            "--tls-min-version=VersionTLS13", "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_AES_128_GCM_SHA256",
        ]
    )  # fmt: skip
    assert options.serving.tls_sni_cert_key == (
        (str(cert), str(key), ("*.example.com", "example.com")),
        (str(cert), str(key), ()),
    )
    assert errors("--tls-min-version=TLS12", "--tls-cipher-suites=ECDHE", f"--tls-sni-cert-key={cert},/no.key") == [
        '--tls-min-version: unknown tls version "TLS12", it is one of VersionTLS10, VersionTLS11, VersionTLS12, VersionTLS13',
        "--tls-cipher-suites: Cipher suite ECDHE not supported or doesn't exist",
        "--tls-sni-cert-key: '/no.key' does not exist, check the path",
    ]
    for wrong in (str(cert), f"{cert},{key}:", f"{cert},"):
        assert "does not fit" in errors(f"--tls-sni-cert-key={wrong}")[0]


def test_metrics_and_debugging_flags() -> None:
    options = Options.parse(
        ["--profiling=false", "--disabled-metrics=a_b,c:d", "--show-hidden-metrics-for-version=1.35"]
    )
    assert options.features.profiling is False
    assert options.features.disabled_metrics == ("a_b", "c:d")
    assert errors("--show-hidden-metrics-for-version=1.20", "--disabled-metrics=a-b") == [
        "--show-hidden-metrics-for-version must be omitted or have the value '1.35'. "
        "Only the previous minor version is allowed",
        "--disabled-metrics: 'a-b' is not the name of a metric",
    ]
