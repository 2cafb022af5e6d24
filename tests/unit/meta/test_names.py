"""Formats of names and keys."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastapi_core.meta import gvk, names

FACTS = Path(__file__).parents[4] / "shared" / "facts" / "validation.json"


@pytest.mark.skipif(not FACTS.is_file(), reason="no facts here")
def test_texts_are_the_references() -> None:
    texts = json.loads(FACTS.read_text())["formatTexts"]
    assert texts == {
        "configMapKey": names.CONFIG_MAP_KEY,
        "dns1035Label": names.DNS1035_LABEL,
        "dns1123Label": names.DNS1123_LABEL,
        "dns1123Subdomain": names.DNS1123_SUBDOMAIN,
        "dns1123SubdomainWithUnderscore": names.DNS1123_UNDERSCORE,
        "httpHeaderName": names.HTTP_HEADER,
        "labelValue": names.LABEL_VALUE,
        "percent": names.PERCENT,
        "qualifiedName:name": "name part " + names.QUALIFIED_NAME,
        "qualifiedName:prefix": "prefix part " + names.DNS1123_SUBDOMAIN,
    }


def test_labels_and_subdomains() -> None:
    assert names.dns1123_label("a-1") == []
    assert names.dns1123_label("a.b") == ["must not contain dots"]
    assert names.dns1123_label("A") == [names.DNS1123_LABEL]
    assert names.dns1123_label("a" * 64) == ["must be no more than 63 characters"]
    assert names.dns1123_label("a\n") == [names.DNS1123_LABEL]
    assert names.dns1123_subdomain("a.b-c") == []
    assert names.dns1123_subdomain("a..b") == [names.DNS1123_SUBDOMAIN]
    assert names.dns1123_subdomain("") == [names.DNS1123_SUBDOMAIN]
    assert names.dns1123_subdomain("a" * 254, "bytes") == ["must be no more than 253 bytes"]
    assert names.dns1035_label("1a") == [names.DNS1035_LABEL]
    assert names.wildcard_dns1123_subdomain("*.a") == []
    assert names.wildcard_dns1123_subdomain("a") == [names.WILDCARD_SUBDOMAIN]
    assert names.dns1123_subdomain_underscore("_a.b") == []


def test_keys_and_values() -> None:
    assert names.qualified_name("example.com/a_b") == []
    assert names.qualified_name("a/b/c")[0].startswith("a valid label key must consist of")
    assert names.qualified_name("/a") == ["prefix part must be non-empty"]
    assert names.qualified_name("") == ["name part must be non-empty", "name part " + names.QUALIFIED_NAME]
    assert names.qualified_name("A/b") == ["prefix part " + names.DNS1123_SUBDOMAIN]
    assert names.annotation_key("A/b") == []
    assert names.qualified_name("a" * 64) == ["name part must be no more than 63 bytes"]
    assert names.label_value("") == []
    assert names.label_value("é") == [names.LABEL_VALUE]
    assert names.label_value("a" * 64) == ["must be no more than 63 bytes"]
    assert names.config_map_key("..a") == ["must not start with '..'"]
    assert names.config_map_key("a b") == [names.CONFIG_MAP_KEY]
    assert names.path_segment("..") == ["may not be '..'"]
    assert names.path_segment("a/b%") == ["may not contain '/'", "may not contain '%'"]
    assert names.port_name("http") == []
    assert names.port_name("8080") == ["must contain at least one letter (a-z)"]
    assert names.port_number(0) == ["must be between 1 and 65535, inclusive"]


@given(st.text(max_size=80))
def test_generated_names_keep_within_63_bytes(base: str) -> None:
    name = names.generate(base)
    assert len(name.encode()) <= 63
    assert name[-5:].isascii()
    assert base.startswith(name[:-5])


@given(st.from_regex(r"[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?-?", fullmatch=True))
def test_generated_names_of_labels_are_labels(base: str) -> None:
    assert names.dns1123_label(names.mask_trailing_dash(base)) == []
    assert names.dns1123_label(names.generate(base)) == []


def test_group_versions() -> None:
    assert gvk.parse("apps/v1") == ("apps", "v1")
    assert gvk.parse("v1") == ("", "v1")
    assert gvk.parse("") == ("", "")
    assert [str(gvk.GroupVersion("", "v1")), str(gvk.GroupVersion("apps", "v1"))] == ["v1", "apps/v1"]
    assert str(gvk.GroupVersionKind("apps", "v1", "Deployment")) == "apps/v1, Kind=Deployment"
    with pytest.raises(ValueError, match="unexpected GroupVersion string: a/b/c"):
        gvk.parse("a/b/c")
