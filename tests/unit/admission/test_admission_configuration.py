"""The admission configuration file: strictly read, wrong values named with their place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.admission import settings as plugin_settings
from fastapi_core.admission.configuration import ConfigurationError, Source, read
from fastapi_core.admission.plugins.events import Limit
from fastapi_core.admission.podsecurity.policy import Standard
from fastapi_core.options.flags import OptionsError
from fastapi_core.options.options import Options

HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n"
SECURITY = "{apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, %s}"


def written(folder: Path, text: str, name: str = "admission.yaml") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_inline_and_in_a_file_of_its_own(tmp_path: Path) -> None:
    written(tmp_path, "podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: a=b}", "selectors.yaml")
    security = SECURITY % "defaults: {enforce: baseline, enforce-version: v1.30}, exemptions: {namespaces: [free]}"
    text = f"{HEAD}plugins:\n- name: PodSecurity\n  configuration: {security}\n"
    sources = read(written(tmp_path, text + "- name: PodNodeSelector\n  path: selectors.yaml\n"))
    found = plugin_settings.pod_security(sources["PodSecurity"])
    assert found.defaults.enforce == Standard("baseline", "v1.30")
    assert found.defaults.warn == Standard("privileged")
    assert found.exemptions.namespaces == {"free"}
    assert plugin_settings.node_selectors(sources["PodNodeSelector"]) == {"clusterDefaultNodeSelector": "a=b"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kind: Other", 'no kind "Other" is registered for version "None"'),
        (HEAD + "odd: 1", 'strict decoding error: unknown field "odd"'),
        (HEAD + "plugins: {}", "plugins: a list is expected"),
        (HEAD + "plugins: [1]", "plugins[0]: an object is expected"),
        (HEAD + "plugins: [{name: Odd}]", 'plugins[0].name: plugin "Odd" is unknown'),
        (HEAD + "plugins: [{name: PodSecurity}, {name: PodSecurity}]", "is configured twice"),
        (HEAD + "plugins: [{name: PodSecurity, configuration: 1}]", "configuration: an object is expected"),
        (HEAD + HEAD, "strict decoding error"),
        ("{", "admission.yaml: "),
        ("[]", "an object is expected"),
    ],
)
def test_what_is_no_configuration(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read(written(tmp_path, text))
    assert problem in str(raised.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="selectors"):
        read(written(tmp_path, HEAD + "plugins: [{name: PodNodeSelector, path: selectors.yaml}]"))


def test_pod_security_defaults_are_validated() -> None:
    tree = {
        "apiVersion": "pod-security.admission.config.k8s.io/v1",
        "kind": "PodSecurityConfiguration",
        "defaults": {"enforce": "odd", "warn-version": "1"},
        "exemptions": {"namespaces": ["A", "b", "b"], "usernames": [""]},
    }
    with pytest.raises(ConfigurationError) as raised:
        plugin_settings.pod_security(Source(tree, "f", ""))
    text = str(raised.value)
    assert 'defaults.enforce: Invalid value: "odd": must be one of privileged, baseline, restricted' in text
    assert 'defaults.warn-version: Invalid value: "1": must be "latest" or "v1.x"' in text
    assert 'exemptions.namespaces[0]: Invalid value: "A"' in text
    assert 'exemptions.namespaces[2]: Duplicate value: "b"' in text
    assert "username must not be empty" in text


def test_limits_of_events() -> None:
    head = {"apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "kind": "Configuration"}
    limits = [{"type": "Server", "qps": 5, "burst": 10}, {"type": "User", "qps": 1, "burst": 1, "cacheSize": 7}]
    found = plugin_settings.event_limits(Source({**head, "limits": limits}, "f", ""))
    assert found == [Limit("Server", 5, 10), Limit("User", 1, 1, 7)]
    for tree, text in (
        (head, "limits: Invalid value: []: must not be empty"),
        ({**head, "limits": [{"type": "Odd", "qps": 0, "burst": 1}]}, 'Unsupported value: "Odd"'),
        ({**head, "limits": [{"type": "Odd", "qps": 0, "burst": 1}]}, "qps: Invalid value: 0: must be positive"),
        ({**head, "limits": [{"type": "User", "qps": True, "burst": 1}]}, "a whole number is expected"),
    ):
        with pytest.raises(ConfigurationError) as raised:
            plugin_settings.event_limits(Source(tree, "f", ""))
        assert text in str(raised.value)


def test_quota_tolerations_and_images() -> None:
    head = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "ResourceQuotaConfiguration"}
    rule = {"resource": "pods", "matchContains": ["cpu"], "matchScopes": [{"scopeName": "PriorityClass"}]}
    (limited,) = plugin_settings.limited_resources(Source({**head, "limitedResources": [rule]}, "f", ""))
    assert (limited.plural, limited.contains, limited.scopes) == ("pods", ("cpu",), ({"scopeName": "PriorityClass"},))
    with pytest.raises(ConfigurationError, match="Required value"):
        plugin_settings.limited_resources(Source({**head, "limitedResources": [{}]}, "f", ""))
    tree = {"imagePolicy": {"kubeConfigFile": "k", "allowTTL": 50, "denyTTL": -1, "defaultAllow": True}}
    policy = plugin_settings.image_policy(Source(tree, "f", "/etc"))
    assert (policy.kubeconfig, policy.allow_seconds, policy.deny_seconds) == ("/etc/k", 50.0, 0.0)
    assert (policy.backoff, policy.default_allow) == (0.5, True)
    with pytest.raises(ConfigurationError, match="allowTTL: 9999 is not between 1 and 1800"):
        plugin_settings.image_policy(Source({"imagePolicy": {"kubeConfigFile": "k", "allowTTL": 9999}}, "f", ""))
    lists = {"apiVersion": "podtolerationrestriction.admission.k8s.io/v1alpha1", "kind": "Configuration"}
    both = {**lists, "default": [{"key": "a"}], "whitelist": [{"key": "b"}]}
    assert plugin_settings.toleration_lists(Source(both, "f", "")) == ([{"key": "a"}], [{"key": "b"}])


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a", "Configuration", "v1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["kind", "apiVersion", "defaults", "exemptions", "limits", "type", "qps", "imagePolicy", "default"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@settings(max_examples=150)
@given(st.dictionaries(st.sampled_from(["kind", "apiVersion", "limits", "imagePolicy", "defaults"]), anything))
def test_configurations_are_understood_or_refused(tree: dict[str, object]) -> None:
    for reader in plugin_settings.READERS.values():
        try:
            reader(Source(dict(tree), "f", "/"))
        except ConfigurationError:
            continue


# Flags


def wrong(*arguments: str) -> list[str]:
    with pytest.raises(OptionsError) as raised:
        Options.parse(arguments)
    return raised.value.errors


def test_flags_choose_plugins() -> None:
    options = Options.parse(
        ["--enable-admission-plugins=NodeRestriction,AlwaysDeny", "--disable-admission-plugins=Priority"]
    )
    assert {"NodeRestriction", "AlwaysDeny"} <= set(options.admission.plugins)
    assert "Priority" not in options.admission.plugins
    only = Options.parse(["--admission-control=AlwaysAdmit,NamespaceLifecycle"])
    assert only.admission.plugins == ("AlwaysAdmit", "NamespaceLifecycle")


def test_flags_that_cannot_be(tmp_path: Path) -> None:
    found = wrong("--enable-admission-plugins=NodeRestricton", "--disable-admission-plugins=X")
    assert found[0] == ('--enable-admission-plugins: plugin "NodeRestricton" is unknown, did you mean NodeRestriction?')
    assert found[1].startswith('--disable-admission-plugins: plugin "X" is unknown, known are AlwaysAdmit, ')
    (text,) = wrong("--enable-admission-plugins=AlwaysDeny", "--disable-admission-plugins=AlwaysDeny")
    assert "leave one out" in text
    (text,) = wrong("--admission-control=AlwaysDeny", "--enable-admission-plugins=AlwaysAdmit")
    assert "cannot go with" in text
    (text,) = wrong("--enable-admission-plugins=EventRateLimit")
    assert "limits: Invalid value" in text
    (text,) = wrong("--enable-admission-plugins=ImagePolicyWebhook")
    assert "kubeConfigFile: is needed" in text
    (text,) = wrong(f"--admission-control-config-file={tmp_path}/none")
    assert "cannot be read" in text
    path = written(
        tmp_path, f"{HEAD}plugins: [{{name: PodSecurity, configuration: {SECURITY % 'defaults: {warn: odd}'}}}]"
    )
    (text,) = wrong(f"--admission-control-config-file={path}")
    assert "must be one of privileged, baseline, restricted" in text
