"""The declared resources against the recorded facts, and what the data leaves out."""

import importlib.util
import json
from pathlib import Path

import pytest

from fastapi_core.apis.resources import builtin, deprecation
from fastapi_core.registry.definition import ResourceDefinition

ROOT = Path(__file__).parents[3]
FACTS = ROOT.parent / "shared" / "facts" / "resources.json"
needs_facts = pytest.mark.skipif(not FACTS.exists(), reason="the recorded facts are absent")


def by_key() -> dict[str, ResourceDefinition]:
    return {f"{d.group}/{d.version}/{d.plural}": d for d in builtin()}


def served() -> dict[str, dict]:
    records = json.loads(FACTS.read_text())["resources"]
    return {key: record for key, record in records.items() if record["served"] == "default"}


@needs_facts
def test_every_served_resource_is_declared() -> None:
    assert set(by_key()) == set(served())


@needs_facts
@pytest.mark.parametrize("key", sorted(by_key()))
def test_declaration_matches_the_facts(key: str) -> None:
    definition, fact = by_key()[key], served()[key]
    assert definition.kind == fact["kind"]
    assert definition.singular == fact["singular"]
    assert definition.namespaced is (fact["scope"] == "Namespaced")
    assert list(definition.verbs) == fact["verbs"]
    assert list(definition.short_names) == fact.get("short", [])
    assert list(definition.categories) == fact.get("categories", [])
    assert definition.type.ref == f"{fact['group'] or 'core'}/{fact['version']}.{fact['kind']}"
    subresources = fact.get("subresources", {})
    assert {name: list(sub.verbs) for name, sub in definition.subresources.items()} == {
        name: sub["verbs"] for name, sub in subresources.items()
    }
    for name, sub in definition.subresources.items():
        text = "/".join(part for part in (sub.group, sub.version, sub.kind) if part)
        assert text == subresources[name]["kind"]
    if "etcdPrefix" not in fact:
        assert definition.key_prefix == ""
        return
    prefix = fact["etcdKey"].removesuffix("{name}").removesuffix("{ns}/")
    assert definition.key_prefix == prefix
    storage = "/".join(part for part in (definition.storage_group, definition.storage_version) if part)
    assert storage == fact["storage"]
    assert definition.storage_version_hash == fact["storageVersionHash"]
    assert {"metadata.name", *definition.selectable_fields} == set(fact["fieldSelectors"]) - {"metadata.namespace"}
    assert definition.create_on_update is fact["createOnUpdate"]
    assert definition.unconditional_update is fact["unconditionalUpdate"]
    assert definition.graceful is fact["graceful"]
    assert definition.return_deleted is fact["returnDeletedObject"]
    # Cron jobs were orphaned in v1beta1 only, which the facts do not tell.
    expected = "background" if fact["plural"] == "cronjobs" else fact["deletePropagation"]
    assert definition.default_propagation == expected
    assert definition.initial_generation == (fact["generation"]["create"] or 0)
    assert definition.bump_generation is fact["generation"]["bump"]
    assert bool(definition.ttl) is ("ttl" in fact)


@needs_facts
def test_data_file_is_what_the_generator_makes() -> None:
    path = ROOT / "tools" / "make_resources.py"
    spec = importlib.util.spec_from_file_location("make_resources", path)
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    facts = json.loads(FACTS.read_text())
    for name, how in generator.FILES.items():
        assert (generator.DATA / name).read_text() == generator.build(facts, how)


def test_reviews_and_bindings_have_no_storage() -> None:
    virtual = {d.plural for d in builtin() if not d.key_prefix}
    assert virtual == {
        "bindings",
        "componentstatuses",
        "localsubjectaccessreviews",
        "selfsubjectaccessreviews",
        "selfsubjectreviews",
        "selfsubjectrulesreviews",
        "subjectaccessreviews",
        "tokenreviews",
    }


def test_key_prefixes_are_shared_only_by_versions_of_one_kind() -> None:
    kinds: dict[str, set[str]] = {}
    for definition in builtin():
        kinds.setdefault(definition.key_prefix, set()).add(definition.kind)
    kinds.pop("")
    assert all(len(found) == 1 for found in kinds.values())


def test_events_live_an_hour() -> None:
    assert {d.ttl for d in builtin() if d.plural == "events"} == {3600}


def test_deprecated_resources_warn() -> None:
    warned = {d.plural: deprecation(d) for d in builtin() if deprecation(d)}
    assert set(warned) == {"endpoints", "componentstatuses"}
    assert warned["endpoints"].startswith("v1 Endpoints is deprecated")


def test_definitions_are_made_once() -> None:
    assert builtin() is builtin()
