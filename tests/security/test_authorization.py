"""Who reaches what on a running server: strangers, somebody without rights, somebody with exactly one, administrators."""

from __future__ import annotations

import http.client
import ssl
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from fastapi_core.testing.server import RunningServer
from tests.fixtures.server import Api

RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1"
PUBLIC = {"/healthz", "/livez", "/readyz", "/version", "/version/"}
#: What everybody with an identity may ask, beside the public paths and discovery.
SELF = {"selfsubjectreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"}
METHODS = {
    "get": "GET", "list": "GET", "watch": "GET", "create": "POST", "update": "PUT", "patch": "PATCH",
    "delete": "DELETE", "deletecollection": "DELETE",
}  # fmt: skip


class Stranger(Api):
    """No client certificate, and only the token given."""

    def __init__(self, server: RunningServer, token: str = "") -> None:
        super().__init__(server, token)
        context = ssl.create_default_context(cafile=str(server.data_dir / "pki/ca.crt"))
        self.connection.close()
        self.connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=60)

    def __call__(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        sent = {"Content-Type": "application/json", **(headers or {})}
        if self.token:
            sent["Authorization"] = f"Bearer {self.token}"
        self.connection.request(method, path, body, sent)
        answer = self.connection.getresponse()
        return answer.status, answer.read().decode("utf-8", "replace")


@pytest.fixture
def alice(server: RunningServer) -> Iterator[Stranger]:
    client = Stranger(server, "usertoken")
    yield client
    client.connection.close()


@pytest.fixture
def stranger(server: RunningServer) -> Iterator[Stranger]:
    client = Stranger(server)
    yield client
    client.connection.close()


def requests(api: Api) -> Iterator[tuple[str, str, str]]:
    """(method, path, resource) of every verb of every resource and subresource, from discovery."""
    _, core = api("GET", "/api/v1")
    lists = [("/api/v1", core)]
    for group in api("GET", "/apis")[1]["groups"]:
        for version in group["versions"]:
            root = f"/apis/{version['groupVersion']}"
            lists.append((root, api("GET", root)[1]))
    for root, document in lists:
        for resource in document["resources"]:
            plural, _, subresource = resource["name"].partition("/")
            scope = f"{root}/namespaces/nowhere" if resource["namespaced"] else root
            for verb in resource["verbs"]:
                path = f"{scope}/{plural}"
                if subresource or verb in ("get", "update", "patch", "delete"):
                    path += "/nothing"
                if subresource:
                    path += f"/{subresource}"
                query = "?watch=1&resourceVersion=nonsense" if verb == "watch" else ""
                yield METHODS[verb], path + query, plural


def paths(api: Api) -> list[str]:
    """Every path the server lists that is no API of a group."""
    listed: list[str] = api("GET", "/")[1]["paths"]
    return [path for path in listed if not path.startswith(("/api", "/openapi", "/.well-known", "/openid"))]


def test_strangers_get_no_further_than_health_and_version(api: Api, stranger: Stranger) -> None:
    for path in paths(api):
        code, _ = stranger("GET", path)
        assert code == (200 if path in PUBLIC else 403), path
        assert stranger("POST", path, "{")[0] == 403, path
    for method, path, _ in requests(api):
        # The body is no JSON: who may not ask does not hear about it.
        code, text = stranger(method, path, "{" if method != "GET" else None)
        assert (code, "system:anonymous" in text) == (403, True), (method, path)
    for path in ("/", "/api", "/apis", "/openapi/v2", "/openapi/v3", "/nosuch", "/apis/nosuch.example.com/v1/x"):
        assert stranger("GET", path)[0] == 403, path


def test_somebody_without_rights_sees_discovery_and_may_ask_about_himself(api: Api, alice: Stranger) -> None:
    for path in paths(api):
        assert alice("GET", path)[0] == (200 if path in PUBLIC else 403), path
    for path in ("/api", "/api/v1", "/apis", "/apis/apps/v1", "/openapi/v2", "/openapi/v3"):
        assert alice("GET", path)[0] == 200, path
        assert alice("DELETE", path)[0] == 403, path
    for method, path, plural in requests(api):
        code, _ = alice(method, path, "{" if method != "GET" else None)
        assert (code == 403) is (plural not in SELF), (method, path, code)


def test_administrators_are_refused_nothing(api: Api) -> None:
    for path in paths(api):
        assert api("GET", path)[0] not in (401, 403), path
    for method, path, _ in requests(api):
        # Nothing may happen: a dry run of another kind than All is refused, behind authorization. A deletion with a
        # body would not look at the query.
        target = path if method == "GET" else f"{path}?dryRun=nonsense"
        code, _ = api(method, target, {} if method not in ("GET", "DELETE") else None)
        assert code not in (200, 401, 403) or method == "GET", (method, path)


def test_one_right_opens_one_verb_of_one_resource(api: Api, alice: Stranger, namespace: str) -> None:
    grant(api, namespace, {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["list"]})
    here = f"/apis/apps/v1/namespaces/{namespace}"
    assert alice("GET", f"{here}/deployments")[0] == 200
    for method, path in (
        ("GET", f"{here}/deployments?watch=1"), ("GET", f"{here}/deployments/x"), ("GET", f"{here}/statefulsets"),
        ("DELETE", f"{here}/deployments"), ("GET", "/apis/apps/v1/deployments"), ("GET", f"{here}/deployments/x/scale"),
        ("GET", "/apis/apps/v1/namespaces/default/deployments"), ("GET", f"/api/v1/namespaces/{namespace}/deployments"),
    ):  # fmt: skip
        assert alice(method, path)[0] == 403, (method, path)


def grant(api: Api, namespace: str, *rules: dict[str, Any], name: str = "r", user: str = "alice") -> None:
    """A role of its own for a user."""
    role = {"metadata": {"name": name}, "rules": list(rules)}
    assert api("POST", f"{RBAC}/namespaces/{namespace}/roles", role)[0] == 201
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "User", "name": user}],
    }
    assert api("POST", f"{RBAC}/namespaces/{namespace}/rolebindings", binding)[0] == 201


def test_a_changed_role_counts_from_the_request_after_its_acknowledgement(
    server: RunningServer, api: Api, namespace: str
) -> None:
    """Readers never stop; after each acknowledged change no request that begins sees the verdict from before."""
    allowed = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}
    other = {**allowed, "verbs": ["get"]}
    grant(api, namespace, other)
    role, target = f"{RBAC}/namespaces/{namespace}/roles/r", f"/api/v1/namespaces/{namespace}/configmaps"
    # The verdict that holds, and how many changes have begun: a reader that saw no change in between knows what to expect.
    state = {"expected": 403, "begun": 0, "done": 0}
    wrong: list[tuple[int, int]] = []
    checked = [0]
    stop = threading.Event()

    def read() -> None:
        client = Stranger(server, "usertoken")
        while not stop.is_set():
            expected, done = state["expected"], state["done"]
            code, _ = client("GET", target)
            if state["begun"] == done and state["done"] == done:
                checked[0] += 1
                if code != expected:
                    wrong.append((expected, code))
        client.connection.close()

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    try:
        for turn in range(60):
            state["begun"] += 1
            rules = [allowed] if turn % 2 == 0 else [other]
            code, _ = api("PUT", role, {"metadata": {"name": "r"}, "rules": rules})
            assert code == 200
            state["expected"] = 200 if turn % 2 == 0 else 403
            state["done"] += 1
            # The writer itself is the strictest reader: its next request begins right after the acknowledgement.
            headers = {"Impersonate-User": "alice"}
            assert api("GET", target, headers=headers)[0] == state["expected"]
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert not wrong
    assert checked[0] > 20


@pytest.mark.parametrize("plural", ["roles", "clusterroles"])
def test_rights_to_escalate_and_to_bind(api: Api, namespace: str, plural: str) -> None:
    user = f"u-{uuid.uuid4().hex[:8]}"
    writes = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": [plural, "rolebindings"], "verbs": ["create"]}
    as_user = {"Impersonate-User": user}
    secret = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    binding = {
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "User", "name": user}],
    }
    bindings, roles = f"{RBAC}/namespaces/{namespace}/rolebindings", f"{RBAC}/namespaces/{namespace}/roles"
    grant(api, namespace, {**writes, "resources": ["roles", "rolebindings"]}, user=user)
    code, answer = api("POST", bindings, binding, as_user)
    assert code == 403
    assert answer["message"] == (
        f'rolebindings.rbac.authorization.k8s.io "{user}" is forbidden: user "{user}" (groups=["system:authenticated"]) '
        'is attempting to grant RBAC permissions not currently held:\n{APIGroups:["*"], Resources:["*"], Verbs:["*"]}\n'
        '{NonResourceURLs:["*"], Verbs:["*"]}'
    )
    lost = {**binding, "roleRef": {**binding["roleRef"], "name": "nosuch"}}
    code, answer = api("POST", bindings, lost, as_user)
    assert (code, answer["message"]) == (404, 'rolebindings.rbac.authorization.k8s.io "nosuch" not found')
    assert api("POST", roles, {"metadata": {"name": "s"}, "rules": [secret]}, as_user)[0] == 403
    bind = {
        "apiGroups": ["rbac.authorization.k8s.io"],
        "resources": ["clusterroles"],
        "verbs": ["bind"],
        "resourceNames": ["cluster-admin"],
    }
    escalate = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["escalate"]}
    grant(api, namespace, bind, escalate, name="more", user=user)
    assert api("POST", roles, {"metadata": {"name": "s"}, "rules": [secret]}, as_user)[0] == 201
    assert api("POST", bindings, binding, as_user)[0] == 201
    assert api("GET", f"/api/v1/namespaces/{namespace}/secrets", headers=as_user)[0] == 200


def test_collecting_garbage_needs_no_rights_of_the_role(api: Api, namespace: str) -> None:
    grant(
        api,
        namespace,
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["patch"]},
        user="gc",
    )
    rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]
    role = {"metadata": {"name": "held", "finalizers": ["a.b/c"]}, "rules": rules}
    assert api("POST", f"{RBAC}/namespaces/{namespace}/roles", role)[0] == 201
    headers = {"Impersonate-User": "gc", "Content-Type": "application/merge-patch+json"}
    path = f"{RBAC}/namespaces/{namespace}/roles/held"
    assert api("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, headers)[0] == 403
    assert api("PATCH", path, {"metadata": {"finalizers": None}}, headers)[0] == 200


def review(api: Api, kind: str, spec: dict[str, Any], path: str, metadata: Any = None) -> tuple[int, Any]:
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "metadata": metadata or {}, "spec": spec}
    return api("POST", path, body)


def test_local_reviews_stay_in_their_namespace(api: Api, namespace: str) -> None:
    grant(api, namespace, {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]})
    path = f"{REVIEWS}/namespaces/{namespace}/localsubjectaccessreviews"
    asked = {"verb": "get", "resource": "pods", "namespace": namespace}
    code, answer = review(api, "LocalSubjectAccessReview", {"user": "alice", "resourceAttributes": asked}, path)
    assert (code, answer["status"]["allowed"]) == (201, True)
    elsewhere = {**asked, "namespace": "default"}
    code, answer = review(api, "LocalSubjectAccessReview", {"user": "alice", "resourceAttributes": elsewhere}, path)
    assert code == 422
    assert answer["message"].endswith(
        'spec.resourceAttributes.namespace: Invalid value: "default": must match metadata.namespace'
    )
    spec = {"user": "alice", "nonResourceAttributes": {"path": "/", "verb": "get"}}
    code, answer = review(api, "LocalSubjectAccessReview", spec, path)
    assert code == 422
    assert "disallowed on this kind of request" in answer["message"]


@pytest.mark.parametrize(
    ("spec", "metadata", "text"),
    [
        ({"resourceAttributes": {}}, {}, 'spec.user: Invalid value: "": at least one of user or group must be specified'),
        ({"user": "x", "resourceAttributes": {}}, {"name": "n"}, 'metadata: Invalid value: {"name":"n"}: must be empty'),
        (
            {"user": "x", "resourceAttributes": {"fieldSelector": {"requirements": [{"operator": "In"}]}}}, {},
            "[spec.resourceAttributes.fieldSelector.requirements[0].key: Required value: must be specified, "
            "spec.resourceAttributes.fieldSelector.requirements[0].values: Required value: must be specified when "
            "`operator` is 'In' or 'NotIn']",
        ),
    ],
)  # fmt: skip
def test_reviews_that_ask_nothing(api: Api, spec: dict[str, Any], metadata: dict[str, str], text: str) -> None:
    code, answer = review(api, "SubjectAccessReview", spec, f"{REVIEWS}/subjectaccessreviews", metadata)
    assert (code, answer["message"]) == (422, f'.authorization.k8s.io "" is invalid: {text}')


@pytest.mark.parametrize(
    ("selectors", "error"),
    [
        ({"fieldSelector": {"rawSelector": "a=b,c!=d"}}, ""),
        (
            {"labelSelector": {"rawSelector": "a ~ b"}},
            "spec.resourceAttributes.labelSelector ignored due to parse error",
        ),
        (
            {"fieldSelector": {"requirements": [{"key": "a", "operator": "Exists"}]}},
            "spec.resourceAttributes.fieldSelector ignored due to parse error",
        ),
        (
            {
                "labelSelector": {
                    "requirements": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Later"}]
                }
            },
            "spec.resourceAttributes.labelSelector partially ignored due to parse error",
        ),
    ],
)
def test_selectors_that_are_not_understood_are_left_out_and_said_so(api: Api, selectors: Any, error: str) -> None:
    spec = {"user": "x", "resourceAttributes": {"verb": "list", "resource": "pods", **selectors}}
    code, answer = review(api, "SubjectAccessReview", spec, f"{REVIEWS}/subjectaccessreviews")
    assert (code, answer["status"].get("evaluationError", "")) == (201, error)


def test_a_node_finds_its_way_by_selectors_in_reviews(api: Api) -> None:
    def allowed(selector: dict[str, Any]) -> bool:
        attributes = {"verb": "list", "resource": "pods", "fieldSelector": selector}
        spec = {"user": "system:node:n1", "groups": ["system:nodes"], "resourceAttributes": attributes}
        found: bool = review(api, "SubjectAccessReview", spec, f"{REVIEWS}/subjectaccessreviews")[1]["status"][
            "allowed"
        ]
        return found

    assert allowed({"rawSelector": "spec.nodeName=n1"})
    assert allowed({"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["n1"]}]})
    assert not allowed({"requirements": [{"key": "spec.nodeName", "operator": "NotIn", "values": ["n1"]}]})
    assert not allowed({"rawSelector": "spec.nodeName=n2"})


def test_default_policies_come_back_at_the_next_start(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("policies")
    first = RunningServer(folder, tokens=(("admintoken", "admin", "1", "system:masters"),))
    api = Api(first)
    discovery = f"{RBAC}/clusterroles/system:discovery"
    viewer = f"{RBAC}/clusterroles/system:public-info-viewer"
    _, before = api("GET", discovery)
    assert api("PUT", discovery, {**before, "rules": []})[0] == 200
    assert api("DELETE", f"{RBAC}/clusterrolebindings/system:basic-user")[0] == 200
    _, kept = api("GET", viewer)
    kept["metadata"]["annotations"] = {"rbac.authorization.kubernetes.io/autoupdate": "false"}
    assert api("PUT", viewer, {**kept, "rules": []})[0] == 200
    revision = api("GET", f"{RBAC}/clusterroles/view")[1]["metadata"]["resourceVersion"]
    api.connection.close()
    assert first.stop() == 0
    second = RunningServer(folder, tokens=(("admintoken", "admin", "1", "system:masters"),))
    api = Api(second)
    urls = {rule["nonResourceURLs"][0] for rule in api("GET", discovery)[1]["rules"]}
    assert urls == set(before["rules"][0]["nonResourceURLs"])
    assert api("GET", f"{RBAC}/clusterrolebindings/system:basic-user")[0] == 200
    assert not api("GET", viewer)[1].get("rules")
    assert api("GET", f"{RBAC}/clusterroles/view")[1]["metadata"]["resourceVersion"] == revision
    assert api("GET", "/readyz/poststarthook/rbac/bootstrap-roles") == (200, "ok")
    api.connection.close()
    assert second.stop() == 0


def test_a_mode_that_allows_everything_is_not_for_strangers(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("open")
    tokens = (("usertoken", "alice", "2", "devs"),)
    running = RunningServer(folder, tokens=tokens, flags=["--authorization-mode=Node,RBAC,AlwaysAllow"])
    stranger, alice = Stranger(running), Stranger(running, "usertoken")
    for path, open_to_all in (("/livez", True), ("/version", True), ("/api/v1/secrets", False), ("/metrics", False)):
        assert stranger("GET", path)[0] == (200 if open_to_all else 401), path
        assert alice("GET", path)[0] == 200, path
    stranger.connection.close()
    alice.connection.close()
    assert running.stop() == 0
