"""Credentials that a program of the kubeconfig prints."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.authn.outbound import KubeconfigError, load_kubeconfig
from fastapi_core.extension.registration.program import _identity, credential
from tests.fixtures.pki import authority, pem

V1 = "client.authentication.k8s.io/v1"


def program(tmp_path: Path, code: str, **more: Any) -> dict[str, Any]:
    (tmp_path / "helper.py").write_text(code)
    return {"apiVersion": V1, "command": sys.executable, "args": [str(tmp_path / "helper.py")], **more}


def printing(tree: Any) -> str:
    return f"print({json.dumps(json.dumps(tree))})"


def answer(**status: str) -> dict[str, Any]:
    return {"apiVersion": V1, "kind": "ExecCredential", "status": status}


def test_a_token(tmp_path: Path) -> None:
    found = credential(program(tmp_path, printing(answer(token="t"))), "")
    assert (found.headers, found.pair) == (((b"authorization", b"Bearer t"),), None)


def test_a_certificate_in_a_kubeconfig(tmp_path: Path) -> None:
    ca = authority("core")
    pair = ca.issue("me")
    (tmp_path / "ca.crt").write_bytes(ca.pem)
    status = answer(clientCertificateData=pair.pem.decode(), clientKeyData=pem(pair.key).decode())
    document = {
        "clusters": [{"name": "c", "cluster": {"server": "https://x", "certificate-authority": "ca.crt"}}],
        "users": [{"name": "u", "user": {"exec": program(tmp_path, printing(status))}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(document))
    assert load_kubeconfig(str(file), credential).tls is not None
    with pytest.raises(KubeconfigError, match=r"exec: not supported"):
        load_kubeconfig(str(file))


def test_what_the_program_is_told(tmp_path: Path) -> None:
    code = """
import json, os, sys
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
assert info["spec"] == {"interactive": False}, info
token = os.environ["GIVEN"] + "-".join(sys.argv[1:])
print(json.dumps({"apiVersion": info["apiVersion"], "kind": info["kind"], "status": {"token": token}}))
"""
    entry = program(tmp_path, code, env=[{"name": "GIVEN", "value": "g"}], interactiveMode="Never")
    entry["args"] += ["a", "b"]
    assert credential(entry, "").headers == ((b"authorization", b"Bearer ga-b"),)


def test_a_program_beside_the_kubeconfig(tmp_path: Path) -> None:
    script = tmp_path / "helper"
    script.write_text(f"#!{sys.executable}\n{printing(answer(token='t'))}\n")
    script.chmod(0o755)
    assert credential({"apiVersion": V1, "command": "./helper"}, str(tmp_path)).headers


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "is none of client.authentication.k8s.io/v1,"),
        ({"command": ""}, "command is not set"),
        ({"command": "/no/such/program", "installHint": "brew install it"}, r"No such file.*\nbrew install it"),
        ({"args": ["-c", "import sys; sys.exit(3)"]}, "ended with exit code 3"),
        ({"args": ["-c", "print('?')"]}, "printed no ExecCredential of"),
        ({"args": ["-c", printing({**answer(token="t"), "apiVersion": "v1"})]}, "printed no ExecCredential of"),
        ({"args": ["-c", printing(answer())]}, "printed neither a token nor a certificate"),
        ({"interactiveMode": "Always"}, "has to ask somebody, and this is no terminal"),
    ],
)
def test_what_goes_wrong_is_said(
    tmp_path: Path, change: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(KubeconfigError, match=r"(?s)^exec: .*" + said):
        credential({**program(tmp_path, printing(answer(token="t"))), **change}, "")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda c: st.lists(c) | st.dictionaries(st.text(), c)
)
CLOSE = st.fixed_dictionaries(
    {"apiVersion": st.just(V1) | JSON, "kind": st.just("ExecCredential") | JSON},
    optional={
        "status": st.dictionaries(st.sampled_from(["token", "clientCertificateData", "clientKeyData"]), JSON) | JSON
    },
)


@settings(max_examples=150, deadline=None)
@given(st.binary() | JSON.map(lambda t: json.dumps(t).encode()) | CLOSE.map(lambda t: json.dumps(t).encode()))
def test_no_output_breaks_it(output: bytes) -> None:
    try:
        found = _identity(output, "p", V1)
    except KubeconfigError:
        return
    assert found.headers or found.pair
