"""Normalisation: the reference's samples, its rules one by one, and the compiled walk against the oracle."""

import copy
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.schema import tables
from fastapi_core.schema.errors import TypeMismatch
from fastapi_core.schema.normalize import normalize
from fastapi_core.schema.types import Field, Type
from tests.oracles import typed as oracle

SAMPLES = Path(__file__).parents[4] / "shared" / "facts" / "samples"


def sample_type(path: Path) -> Type | None:
    sample = json.loads(path.read_text())
    group, _, version = sample.get("apiVersion", "v1").rpartition("/")
    return tables.type_for(group, version, sample["kind"]) if "kind" in sample else None


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="no samples of the reference here")
def test_samples_come_back_unchanged() -> None:
    tried = 0
    for path in sorted(SAMPLES.glob("*.json")):
        type_ = sample_type(path)
        if type_ is None:
            assert "WatchEvent" in path.name
            continue
        sample = json.loads(path.read_text())
        result = normalize(type_, sample)
        assert json.dumps(result.tree) == json.dumps(sample), path.name
        assert result.unknown == []
        tried += 1
    assert tried > 150


def pod(**spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": [], **spec}}


POD = tables.type_of("core/v1.Pod")


def test_members_come_in_the_order_of_the_type() -> None:
    tree = {
        "status": {},
        "spec": {"containers": [{"image": "i", "name": "n"}], "volumes": [{"emptyDir": {}, "name": "v"}]},
        "metadata": {"labels": {"b": "1", "a": "2"}, "name": "x"},
        "apiVersion": "v1",
        "kind": "Pod",
    }
    before = copy.deepcopy(tree)
    out = normalize(POD, tree).tree
    assert json.dumps(out) == json.dumps(
        {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"name": "x", "labels": {"a": "2", "b": "1"}},
            "spec": {
                "volumes": [{"name": "v", "emptyDir": {}}],
                "containers": [{"name": "n", "image": "i", "resources": {}}],
            },
            "status": {},
        }
    )
    assert tree == before


def test_unknown_members_are_located_and_dropped() -> None:
    tree = {"spec": {"containers": [{"ports": [{"containerPort": 80, "nope": 1}], "zz": {}}], "colour": 1}, "x": 1}
    result = normalize(POD, tree)
    assert result.unknown == ["spec.containers[0].ports[0].nope", "spec.containers[0].zz", "spec.colour", "x"]
    assert result.tree["spec"] == {"containers": [{"name": "", "ports": [{"containerPort": 80}], "resources": {}}]}


def test_no_more_than_a_hundred_complaints() -> None:
    assert len(normalize(POD, {f"x{i}": 1 for i in range(300)}).unknown) == 100


@pytest.mark.parametrize(
    ("ref", "tree", "expected"),
    [
        ("core/v1.ConfigMap", {"data": {"k": None}}, {"metadata": {}, "data": {"k": ""}}),
        ("core/v1.ConfigMap", {"data": None, "metadata": None}, {"metadata": {}}),
        ("core/v1.ConfigMap", None, {"metadata": {}}),
        ("core/v1.ConfigMap", {"immutable": False}, {"metadata": {}, "immutable": False}),
        ("core/v1.Secret", {"data": {"a": "YQ==", "b": None}}, {"metadata": {}, "data": {"a": "YQ==", "b": ""}}),
        ("core/v1.Secret", {"data": {"a": "YW\nJj"}}, {"metadata": {}, "data": {"a": "YWJj"}}),
        ("core/v1.Secret", {"data": {"a": "YR=="}}, {"metadata": {}, "data": {"a": "YQ=="}}),
        ("rbac.authorization.k8s.io/v1.Role", {"rules": []}, {"metadata": {}, "rules": None}),
        (
            "coordination.k8s.io/v1.Lease",
            {"spec": {"renewTime": "2021-02-03T06:05:06.500000+02:00", "leaseTransitions": 0}},
            {"metadata": {}, "spec": {"renewTime": "2021-02-03T04:05:06.500000Z", "leaseTransitions": 0}},
        ),
        (
            "meta/v1.ObjectMeta",
            {"creationTimestamp": None, "deletionTimestamp": "2021-02-03T06:05:06.9+02:00", "generation": 0},
            {"deletionTimestamp": "2021-02-03T04:05:06Z"},
        ),
        ("meta/v1.ObjectMeta", {"creationTimestamp": "0001-01-01T00:00:00Z"}, {}),
        (
            "core/v1.TypedLocalObjectReference",
            {"kind": "x", "name": "y"},
            {"apiGroup": None, "kind": "x", "name": "y"},
        ),
        (
            "core/v1.PodCondition",
            {"type": "t"},
            {"type": "t", "status": "", "lastProbeTime": None, "lastTransitionTime": None},
        ),
        (
            "core/v1.ResourceQuotaSpec",
            {"hard": {"m": "1024Mi", "c": 0.5, "n": "5n", "z": None}},
            {"hard": {"c": "500m", "m": "1Gi", "n": "1m", "z": "0"}},
        ),
        ("core/v1.ResourceFieldSelector", {"resource": "cpu"}, {"resource": "cpu", "divisor": "0"}),
        ("core/v1.TCPSocketAction", {}, {"port": 0}),
        ("core/v1.TCPSocketAction", {"port": "http"}, {"port": "http"}),
        (
            "apps/v1.ControllerRevision",
            {"data": {"b": 1.0, "a": None}},
            {"metadata": {}, "data": {"b": 1.0, "a": None}, "revision": 0},
        ),
        ("apps/v1.ControllerRevision", {}, {"metadata": {}, "data": None, "revision": 0}),
        (
            "apiextensions.k8s.io/v1.JSONSchemaProps",
            {
                "items": {"type": "object", "maximum": 2.0},
                "additionalProperties": False,
                "enum": [None, 1],
                "minLength": 0,
                "properties": {"b": None, "a": {"default": None}},
            },
            {
                "maximum": None,
                "minLength": 0,
                "enum": [None, 1],
                "items": {"type": "object", "maximum": 2},
                "properties": {"a": {}, "b": {}},
                "additionalProperties": False,
            },
        ),
        (
            "authorization.k8s.io/v1.SubjectAccessReviewSpec",
            {"extra": {"a": ["x"], "b": None}},
            {"extra": {"a": ["x"], "b": None}},
        ),
        # absent it is defaulted, empty it is refused
        ("autoscaling/v2.HPAScalingRules", {"policies": []}, {"policies": []}),
        ("autoscaling/v2.HPAScalingRules", {"policies": None}, {}),
    ],
)
def test_rules(ref: str, tree: Any, expected: dict[str, Any]) -> None:
    result = normalize(tables.type_of(ref), tree)
    expected = {key: value for key, value in expected.items() if (key, value) != ("maximum", None)}
    assert result.tree == expected
    assert list(result.tree) == list(expected)
    assert result.unknown == []


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (pod(hostPID="x"), "json: cannot unmarshal string into Go struct field PodSpec.spec.hostPID of type bool"),
        (
            pod(containers=[{"name": 1}]),
            "json: cannot unmarshal number into Go struct field Container.spec.containers.name of type string",
        ),
        (
            pod(containers={}),
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            pod(containers=[{"imagePullPolicy": []}]),
            "json: cannot unmarshal array into "
            "Go struct field Container.spec.containers.imagePullPolicy of type v1.PullPolicy",
        ),
        (
            pod(nodeSelector=[]),
            "json: cannot unmarshal array into Go struct field PodSpec.spec.nodeSelector of type map[string]string",
        ),
        (
            pod(terminationGracePeriodSeconds=1.5),
            "json: cannot unmarshal number 1.5 into "
            "Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64",
        ),
        (
            pod(priority=2**31),
            "json: cannot unmarshal number 2147483648 into Go struct field PodSpec.spec.priority of type int32",
        ),
        (pod(priority=True), "json: cannot unmarshal bool into Go struct field PodSpec.spec.priority of type int32"),
        (
            {"metadata": {"creationTimestamp": 1}},
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
        ),
        (
            {"metadata": {"creationTimestamp": "2021"}},
            'parsing time "2021" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "-"',
        ),
        (
            pod(overhead={"cpu": "x"}),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        ([], "json: cannot unmarshal array into Go value of type v1.Pod"),
    ],
)
def test_wrong_types(tree: Any, text: str) -> None:
    with pytest.raises(TypeMismatch) as caught:
        normalize(POD, tree)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("data", "at"), [("!!!", 0), ("YWJ", 0), ("YWJj!", 4), ("YW=j", 2), ("YQ==YQ==", 4), ("Y===", 1)]
)
def test_broken_base64(data: str, at: int) -> None:
    with pytest.raises(TypeMismatch, match=f"illegal base64 data at input byte {at}$"):
        normalize(tables.type_of("core/v1.Secret"), {"data": {"a": data}})


def test_deep_schemas_do_not_exhaust_the_stack() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(900):
        schema = {"properties": {"a": schema}}
    type_ = tables.type_of("apiextensions.k8s.io/v1.JSONSchemaProps")
    inner = normalize(type_, schema).tree
    for _ in range(900):
        inner = inner["properties"]["a"]
    assert inner == {"type": "string"}
    for _ in range(2000):
        schema = {"properties": {"a": schema}}
    with pytest.raises(TypeMismatch, match="exceeded max depth"):
        normalize(type_, schema)


JUNK: list[Any] = [
    None,
    True,
    0,
    -1,
    2**31,
    2**63,
    -(2**63),
    2**65,
    0.5,
    1.0,
    1e30,
    "",
    "a",
    [],
    {},
    [None],
    {"a": None},
]
TEXTS = ["", "a", "x/y", "é"]
SCALARS: dict[str, list[Any]] = {
    "string": TEXTS,
    "bool": [True, False],
    "int32": [0, 1, -(2**31), 2**31 - 1],
    "int64": [0, 1, -(2**63), 2**63 - 1],
    "double": [0, 0.0, 2.0, 0.25, -1e22],
    "bytes": ["", "YQ==", "YWJj", "YR==", "YW\nJj", "YWJjZA=="],
}
FORMS: dict[str, list[Any]] = {
    "time": [
        "2021-02-03T04:05:06Z",
        "2020-02-29T23:59:59.25+01:00",
        "0001-01-01T00:00:00Z",
        "0999-01-01T00:00:00Z",
        "2021-02-28T24:00:00Z",
        "2021-02-03T04:05:06Z",
        "2021-02-03T04:05:06Z",
        "2021-12-31T04:05:06Z",
    ],
    "microtime": ["2021-02-03T04:05:06.000001Z", "0001-01-01T00:00:00.000000Z", "2021-02-03T04:05:06.5Z"],
    "duration": ["1h", "90m", "0", "-1.5s", "1"],
    "quantity": ["1", "0.5", "1024Mi", "1e3", "5n", " 1 ", 0.25, 3, "100m", "0"],
    "intOrString": [0, 80, 2**33, "", "http"],
    "list": [[], ["a", None], [""]],
}


def value(random: Random, field: Field, depth: int) -> Any:
    if field.card == "list":
        return [single(random, field, depth) for _ in range(random.randrange(3))]
    if field.card == "map":
        return {random.choice(TEXTS): single(random, field, depth) for _ in range(random.randrange(3))}
    return single(random, field, depth)


def single(random: Random, field: Field, depth: int) -> Any:
    if random.random() < 0.07:
        return None
    if field.type is None:
        return random.choice(SCALARS[field.scalar])
    if not field.type.json:
        return tree_of(random, field.type, depth - 1)
    if field.type.json.startswith("schema"):
        inner = next(inner.type for inner in field.type.declared if inner.type is not None)
        schema = tree_of(random, inner, depth - 1)
        return random.choice([schema, schema, True, False, [], ["a", None], [schema, None]])
    return random.choice(FORMS.get(field.type.json, JUNK))


def tree_of(random: Random, type_: Type, depth: int) -> dict[str, Any]:
    if depth <= 0:
        return {}
    names = [*type_.fields, "kind", "nope"]
    out: dict[str, Any] = {}
    for name in random.sample(names, min(len(names), random.randrange(8))):
        field = type_.fields.get(name)
        junk = field is None or random.random() < 0.01
        out[name] = random.choice(JUNK) if field is None or junk else value(random, field, depth)
    return out


ROOTS = [
    "core/v1.Pod",
    "core/v1.Service",
    "core/v1.Secret",
    "core/v1.Node",
    "apps/v1.Deployment",
    "batch/v1.CronJob",
    "apiextensions.k8s.io/v1.CustomResourceDefinition",
    "apiextensions.k8s.io/v1.JSONSchemaProps",
    "coordination.k8s.io/v1.Lease",
    "autoscaling/v2.HorizontalPodAutoscaler",
    "authorization.k8s.io/v1.SubjectAccessReview",
    "networking.k8s.io/v1.Ingress",
    "core/v1.Event",
    "flowcontrol.apiserver.k8s.io/v1.FlowSchema",
    "rbac.authorization.k8s.io/v1.Role",
    "apps/v1.ControllerRevision",
    "core/v1.ResourceQuota",
    "core/v1.EphemeralContainer",
    "core/v1.Volume",
]


@settings(max_examples=200)
@given(st.sampled_from(ROOTS), st.integers(0, 2**64))
def test_compiled_equals_oracle(ref: str, seed: int) -> None:
    type_ = tables.type_of(ref)
    for random in (Random(seed + i) for i in range(5)):
        tree = tree_of(random, type_, 6)
        before = copy.deepcopy(tree)
        try:
            expected = oracle.normalize(type_, tree)
        except oracle.RefusedError:
            with pytest.raises(TypeMismatch):
                normalize(type_, tree)
            continue
        result = normalize(type_, tree)
        assert json.dumps(result.tree) == json.dumps(expected[0])
        assert result.unknown == expected[1]
        assert tree == before
        sharing = normalize(type_, tree, share=True)
        assert json.dumps(sharing) == json.dumps(result)
        assert json.dumps(tree) == json.dumps(before)
        settled = normalize(type_, result.tree)  # a pointer to the zero time prints null, which then means unset
        again = normalize(type_, settled.tree)
        assert (json.dumps(again.tree), again.unknown) == (json.dumps(settled.tree), [])


@settings(max_examples=100)
@given(st.sampled_from(ROOTS), st.integers(0, 2**64))
def test_parts_of_a_normal_tree_are_taken_as_they_are(ref: str, seed: int) -> None:
    """With members changed on two levels, the result is that of normalising a copy that shares nothing."""
    type_ = tables.type_of(ref)
    random = Random(seed)
    try:
        known = normalize(type_, normalize(type_, tree_of(random, type_, 6)).tree).tree
        other = normalize(type_, tree_of(random, type_, 6)).tree
    except TypeMismatch:
        return
    kept = json.dumps(known)
    tree = {name: other.get(name) if random.random() < 0.3 else value for name, value in known.items()}
    for name, value in tree.items():
        if isinstance(value, dict) and value and value is known[name] and random.random() < 0.5:
            tree[name] = {key: inner for key, inner in value.items() if random.random() < 0.8}
    for share in (False, True):
        wanted = outcome(type_, copy.deepcopy(tree), share, None)
        assert outcome(type_, tree, share, known) == wanted
        assert json.dumps(known) == kept


def outcome(type_: Type, tree: Any, share: bool, known: Any) -> str:
    try:
        return json.dumps(normalize(type_, tree, share=share, known=known))
    except TypeMismatch as error:
        return f"error: {error}"


def test_what_is_normal_already_is_shared_on_demand() -> None:
    type_ = tables.type_of("core/v1.ConfigMap")
    tree = {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "a", "labels": {"x": "y"}},
        "data": {"b": "", "a": ""},
    }
    result = normalize(type_, tree, share=True).tree
    assert result is not tree
    assert result["metadata"] is tree["metadata"]
    assert list(result["data"]) == ["a", "b"]
    assert normalize(type_, result, share=True).tree is result
    assert normalize(type_, result).tree is not result
