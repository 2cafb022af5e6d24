"""Credentials of a kubeconfig that a program knows (`exec`), as clouds and single sign-on have them.

For commands that somebody runs: a server would have to run it again and again, and wait for it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from fastapi_core.authn.outbound import Identity, KubeconfigError

VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_MINUTES = 5
"""How long somebody may take to sign in."""


def credential(program: Mapping[str, Any], folder: str) -> Identity:
    """Run the program of an `exec` entry and take the credential it prints. Raises KubeconfigError."""
    version, command = program.get("apiVersion"), program.get("command")
    if version not in VERSIONS:
        raise KubeconfigError(f"exec: apiVersion {version!r} is none of {', '.join(VERSIONS)}")
    if not isinstance(command, str) or not command:
        raise KubeconfigError("exec: command is not set")
    if os.path.dirname(command):
        command = os.path.join(folder, command)
    mode = program.get("interactiveMode")
    interactive = mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
    if mode == "Always" and not interactive:
        raise KubeconfigError(f"exec: {command}: has to ask somebody, and this is no terminal")
    info = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": interactive}}
    given = {
        e["name"]: e["value"] for e in program.get("env") or () if isinstance(e, dict) and {"name", "value"} <= e.keys()
    }
    try:
        done = subprocess.run(
            [command, *map(str, program.get("args") or ())],
            stdin=None if interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env={**os.environ, **given, "KUBERNETES_EXEC_INFO": json.dumps(info)},
            timeout=_MINUTES * 60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        hint = program.get("installHint")
        raise KubeconfigError(f"exec: {command}: {error}" + (f"\n{hint}" if hint else "")) from None
    if done.returncode:
        raise KubeconfigError(f"exec: {command}: ended with exit code {done.returncode}")
    return _identity(done.stdout, command, str(version))


def _identity(output: bytes, command: str, version: str) -> Identity:
    try:
        found = json.loads(output)
        status = found["status"]
        wrong = found["apiVersion"] != version or found["kind"] != "ExecCredential" or not isinstance(status, dict)
    except (ValueError, KeyError, TypeError):
        wrong = True
    if wrong:
        raise KubeconfigError(f"exec: {command}: printed no ExecCredential of {version}")
    token, certificate, key = (_text(status.get(name)) for name in ("token", "clientCertificateData", "clientKeyData"))
    headers = ((b"authorization", b"Bearer " + token),) if token and b"\n" not in token and b"\r" not in token else ()
    pair = (certificate, key) if certificate and key else None
    if not headers and pair is None:
        raise KubeconfigError(f"exec: {command}: printed neither a token nor a certificate and its key")
    return Identity(headers, "", pair)


def _text(value: Any) -> bytes:
    """What can stand in a header or a PEM file; empty for anything else."""
    return value.encode() if isinstance(value, str) and value.isascii() else b""
