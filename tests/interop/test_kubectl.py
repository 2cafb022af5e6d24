"""A day's work with the real kubectl."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fastapi_core.testing.server import RunningServer

pytestmark = pytest.mark.interop

MANIFEST = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: web}}
data: {mode: production, level: "3"}
---
apiVersion: v1
kind: Secret
metadata: {name: password}
data: {password: Z2VoZWlt}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: runner}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules:
- {apiGroups: [""], resources: [pods], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: runner}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: "registry.example.test/web:1", ports: [{containerPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "registry.example.test/job:1"}]
"""


def find_kubectl() -> str:
    beside = Path(sys.executable).parent / "kubectl"
    found = str(beside) if beside.exists() else shutil.which("kubectl")
    if not found:
        pytest.skip("kubectl is not installed")
    return found


class Kubectl:
    def __init__(self, server: RunningServer, namespace: str, home: Path) -> None:
        self.command = [find_kubectl(), "--namespace", namespace]
        self.env = {"PATH": os.environ["PATH"], "KUBECONFIG": str(server.kubeconfig), "HOME": str(home)}
        self.home = home

    def __call__(self, *arguments: str, stdin: str | None = None, code: int = 0) -> str:
        done = subprocess.run(
            [*self.command, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            env=self.env,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen([*self.command, *arguments], stdout=subprocess.PIPE, text=True, env=self.env)


@pytest.fixture
def kubectl(server: RunningServer, namespace: str, tmp_path: Path) -> Kubectl:
    return Kubectl(server, namespace, tmp_path)


@pytest.fixture
def applied(kubectl: Kubectl) -> Kubectl:
    out = kubectl("apply", "-f", "-", stdin=MANIFEST)
    assert out.count("created") == 8
    return kubectl


def test_apply_again_changes_nothing(applied: Kubectl) -> None:
    assert applied("apply", "-f", "-", stdin=MANIFEST).count("unchanged") == 8
    changed = applied("apply", "-f", "-", stdin=MANIFEST.replace("production", "testing"))
    assert "configmap/settings configured" in changed
    assert applied("get", "configmap", "settings", "-o", "jsonpath={.data.mode}") == "testing"


def test_get_in_all_forms(applied: Kubectl) -> None:
    table = applied("get", "deployments,services,configmaps,jobs", "-o", "wide")
    assert "deployment.apps/web" in table
    assert "READY" in table
    assert json.loads(applied("get", "deployment", "web", "-o", "json"))["spec"]["replicas"] == 2
    assert "replicas: 2" in applied("get", "deployment", "web", "-o", "yaml")
    assert applied("get", "cm", "settings", "-o", "name").strip() == "configmap/settings"
    assert applied("get", "cm", "-l", "app=web", "--no-headers").startswith("settings")
    columns = applied("get", "cm", "settings", "-o", "custom-columns=N:.metadata.name,M:.data.mode")
    assert columns.split() == ["N", "M", "settings", "production"]
    template = applied("get", "deploy", "web", "-o", "go-template={{.spec.replicas}}")
    assert template == "2"
    assert "web" in applied("get", "all")
    assert "not found" in applied("get", "cm", "nothing", code=1)


def test_describe(applied: Kubectl) -> None:
    text = applied("describe", "deployment", "web")
    assert "registry.example.test/web:1" in text
    assert "Labels:" in applied("describe", "configmap", "settings")
    assert "Z2VoZWlt" not in applied("describe", "secret", "password")
    applied("describe", "service", "web")


def test_change_objects(applied: Kubectl) -> None:
    applied("patch", "deployment", "web", "--type", "merge", "-p", '{"spec":{"paused":true}}')
    strategic = '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"side:1"}]}}}}'
    applied("patch", "deployment", "web", "-p", strategic)
    names = applied("get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[*].name}")
    assert set(names.split()) == {"side", "main"}
    applied("patch", "cm", "settings", "--type", "json", "-p", '[{"op":"add","path":"/data/x","value":"y"}]')
    applied("label", "cm", "settings", "tier=front")
    applied("annotate", "cm", "settings", "note=read me")
    assert "tier=front" in applied("get", "cm", "settings", "--show-labels")
    assert "already has a value" in applied("label", "cm", "settings", "tier=back", code=1)
    applied("label", "cm", "settings", "tier-")
    applied("set", "image", "deployment/web", "main=registry.example.test/web:2")
    assert "web:2" in applied("get", "deploy", "web", "-o", "yaml")


def test_scale_and_history(applied: Kubectl) -> None:
    assert "scaled" in applied("scale", "deployment", "web", "--replicas", "5")
    assert applied("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "5"
    applied("scale", "deployment", "web", "--current-replicas", "4", "--replicas", "1", code=1)
    assert "deployment.apps/web" in applied("rollout", "history", "deployment", "web")


def test_edit(applied: Kubectl, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/production/edited/' \"$1\"\n")
    editor.chmod(0o755)
    applied.env["KUBE_EDITOR"] = str(editor)
    assert "edited" in applied("edit", "configmap", "settings")
    assert applied("get", "cm", "settings", "-o", "jsonpath={.data.mode}") == "edited"


def test_diff(applied: Kubectl) -> None:
    assert applied("diff", "-f", "-", stdin=MANIFEST) == ""
    out = applied("diff", "-f", "-", stdin=MANIFEST.replace("production", "other"), code=1)
    assert "+  mode: other" in out


def test_create_imperatively(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "c", "--from-literal", "a=b")
    kubectl("create", "secret", "generic", "s", "--from-literal", "a=b")
    kubectl("create", "deployment", "d", "--image", "img:1", "--replicas", "3")
    kubectl("expose", "deployment", "d", "--port", "80")
    kubectl("create", "role", "r", "--verb", "get", "--resource", "pods")
    kubectl("create", "job", "j", "--image", "img:1")
    kubectl("create", "cronjob", "cj", "--image", "img:1", "--schedule", "*/5 * * * *")
    kubectl("run", "p", "--image", "img:1")
    assert "already exists" in kubectl("create", "configmap", "c", code=1)
    assert 'unknown field "spec.replica"' in kubectl(
        "create", "-f", "-", stdin=MANIFEST.split("---")[5].replace("replicas", "replica"), code=1
    )
    kubectl("replace", "-f", "-", stdin="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: c}\n")
    assert kubectl("get", "cm", "c", "-o", "jsonpath={.data.a}") == "c"


def test_wait_and_delete(applied: Kubectl) -> None:
    waiting = applied.start("wait", "--for=delete", "configmap/settings", "--timeout=30s")
    applied("delete", "configmap", "settings")
    assert waiting.wait(30) == 0
    assert waiting.stdout is not None
    waiting.stdout.close()
    applied("wait", "--for=jsonpath={.spec.replicas}=2", "deployment/web", "--timeout=10s")
    applied("delete", "deployment,service,secret", "--all")
    assert "No resources found" in applied("get", "deployments,services,secrets")
    applied("delete", "job", "once", "--cascade=background")


def test_watch(applied: Kubectl) -> None:
    watching = applied.start("get", "configmap", "settings", "-w", "-o", 'jsonpath={.data.mode}{"\\n"}')
    assert watching.stdout is not None
    killer = threading.Timer(30, watching.kill)
    killer.start()
    try:
        assert watching.stdout.readline().strip() == "production"
        applied("patch", "cm", "settings", "--type", "merge", "-p", '{"data":{"mode":"seen"}}')
        assert watching.stdout.readline().strip() == "seen"
    finally:
        killer.cancel()
        watching.kill()
        watching.wait()
        watching.stdout.close()


def test_discovery_and_rights(kubectl: Kubectl) -> None:
    resources = kubectl("api-resources", "-o", "wide")
    assert "deployments" in resources
    assert "deploy" in resources
    assert "apps/v1" in kubectl("api-versions")
    assert "yes" in kubectl("auth", "can-i", "create", "pods")
    assert "system:masters" in kubectl("auth", "whoami")
    assert "Server Version: v1.36" in kubectl("version")
    assert "ok" in kubectl("get", "--raw", "/readyz")
    kubectl("cluster-info")
    kubectl("get", "namespaces")


def test_explain(kubectl: Kubectl) -> None:
    text = kubectl("explain", "deployment.spec.template.spec.containers")
    assert "image" in text
    assert "FIELD" in text
    assert "strategy" in kubectl("explain", "deployments", "--recursive")


def test_server_side_dry_run(applied: Kubectl) -> None:
    changed = MANIFEST.replace("production", "dry")
    assert "(server dry run)" in applied("apply", "--dry-run=server", "-f", "-", stdin=changed)
    assert applied("get", "cm", "settings", "-o", "jsonpath={.data.mode}") == "production"
