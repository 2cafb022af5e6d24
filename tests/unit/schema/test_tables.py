"""The generated tables: up to date, complete, and as the contract says."""

import subprocess
import sys
from pathlib import Path

import pytest

from fastapi_core.schema import tables
from fastapi_core.schema.types import ABSENT

ROOT = Path(__file__).parents[3]
FACTS = ROOT.parent / "shared" / "facts"


@pytest.mark.skipif(not FACTS.is_dir(), reason="no facts here")
def test_data_is_what_the_generator_makes() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "make_types.py"), str(FACTS), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_every_type_and_reference_resolves() -> None:
    count = 0
    for group_version in tables.group_versions():
        assert tables.info(group_version)[0] in ("default", "optin", "none", "library")
        for name in tables.type_names(group_version):
            type_ = tables.type_of(f"{group_version}.{name}")
            assert type_ is tables.type_of(type_.ref)
            assert (type_.name, type_.group_version) == (name, group_version)
            for field in type_.declared:
                count += 1
                assert bool(field.scalar) != bool(field.ref)
                assert (field.type is None) == (not field.ref)
                assert field.number > 0
    assert count > 4000


def test_fields_say_what_patches_and_documents_need() -> None:
    fields = tables.type_of("core/v1.PodSpec").fields
    containers = fields["containers"]
    assert containers.type is tables.type_of("core/v1.Container")
    assert (containers.card, containers.number, containers.required, containers.omit) == ("list", 2, True, "")
    assert (containers.list_type, containers.list_keys, containers.merge_key) == ("map", ("name",), "name")
    assert fields["volumes"].patch_strategy == ("merge", "retainKeys")
    assert fields["nodeSelector"].map_type == "atomic"
    assert fields["hostPID"].default is ABSENT
    pull = tables.type_of("core/v1.Container").fields["imagePullPolicy"]
    assert (pull.enum, pull.alias) == (("Always", "IfNotPresent", "Never"), "core/v1.PullPolicy")
    assert tables.enum_values("core/v1.ConditionStatus") == ("True", "False", "Unknown")
    seconds = fields["terminationGracePeriodSeconds"]
    assert (seconds.pointer, seconds.scalar, seconds.wire, seconds.format) == (True, "int64", "varint", "int64")
    assert tables.type_of("meta/v1.LabelSelector").map_type == "atomic"
    assert tables.type_of("meta/v1.ObjectMeta").fields["creationTimestamp"].omit == "empty+zero"


def test_fields_come_in_the_order_of_json_not_of_numbers() -> None:
    names = list(tables.type_of("core/v1.PodSpec").fields)
    assert names[:4] == ["volumes", "initContainers", "containers", "ephemeralContainers"]
    inlined = tables.type_of("core/v1.EphemeralContainer")
    assert list(inlined.fields)[:2] == ["name", "image"]
    assert [field.inline for field in inlined.declared].count(True) == 1


def test_kinds_are_found_by_group_and_version() -> None:
    pod = tables.type_for("", "v1", "Pod")
    assert pod is tables.type_of("core/v1.Pod")
    assert pod is not None
    assert (pod.kind, pod.gvk) == (True, ("v1/Pod",))
    assert tables.type_for("apps", "v1", "DeleteOptions") is tables.type_of("meta/v1.DeleteOptions")
    assert tables.type_for("apps", "v1", "DeploymentSpec") is None
    assert tables.type_for("nowhere", "v1", "Pod") is None
    for ref in ("core/v1.Nothing", "", "a\0b/v1.Pod", "../core/v1.Pod", f"{'x' * 5000}/v1.Pod"):
        with pytest.raises(KeyError):
            tables.type_of(ref)
