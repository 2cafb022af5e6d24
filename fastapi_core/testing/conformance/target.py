"""What is tested: an address, whom to trust there, and as whom to ask.

Credentials are PEM bytes and tokens, never files: a kubeconfig may hold either, and the kit should not care.
"""

from __future__ import annotations

import base64
import binascii
import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any


class TargetError(Exception):
    """The target cannot be used as described: a file is missing, a kubeconfig holds what the kit does not speak."""


@dataclass(frozen=True)
class Credential:
    """A bearer token or a client certificate with its key (PEM). Neither: nobody."""

    token: str = field(default="", repr=False)
    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)


#: Who asks without any credential.
NOBODY = Credential()


@dataclass(frozen=True)
class Target:
    """A server to be tested.

    `url` is its base address, `https://host:port` or `http://...`, with a path when everything is served below one.
    `ca` are PEM certificates to trust instead of the system's; `insecure` trusts anybody. `server_name` is the name
    expected in the certificate when it is not the host of the address. `other` is a credential that may do nothing
    with the tested resources: with it the checks of 403 run. `timeout` is how many seconds an answer may take,
    `patience` how many an event of a watch; `settle` how long nothing must happen to a new object before nobody but
    the kit is taken to change such objects.

        Target("https://localhost:8443", ca=Path("ca.crt").read_bytes(), credential=Credential(token="secret"))
        Target.from_kubeconfig("~/.kube/config")
    """

    url: str
    ca: bytes = b""
    insecure: bool = False
    server_name: str = ""
    credential: Credential = NOBODY
    other: Credential | None = None
    timeout: float = 30.0
    patience: float = 10.0
    settle: float = 0.2

    def context(self, credential: Credential) -> ssl.SSLContext | None:
        """TLS as this target wants it, showing the certificate of a credential; None for plain HTTP."""
        if not self.url.startswith("https://"):
            return None
        context = ssl.create_default_context()
        try:
            if self.ca:
                context = ssl.create_default_context(cadata=self.ca.decode())
            if credential.certificate:
                _show(context, credential)
        except (ssl.SSLError, ValueError) as error:
            raise TargetError(f"certificates cannot be used: {error}") from None
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    @classmethod
    def from_kubeconfig(cls, path: str | Path, context: str = "") -> Target:
        """The cluster and user of a context of a kubeconfig file, the current one unless named."""
        file = Path(path).expanduser()
        config = _load(file)
        chosen = _named(config, "contexts", context or config.get("current-context", ""), "context")
        cluster = _named(config, "clusters", chosen.get("cluster", ""), "cluster")
        user = _named(config, "users", chosen["user"], "user") if chosen.get("user") else {}
        target = cls(
            url=str(cluster.get("server", "")).rstrip("/"),
            ca=_bytes(cluster, "certificate-authority", file),
            insecure=bool(cluster.get("insecure-skip-tls-verify")),
            server_name=str(cluster.get("tls-server-name", "")),
        )
        return replace(target, credential=_credential(user, file))


def _show(context: ssl.SSLContext, credential: Credential) -> None:
    # OpenSSL's binding reads files only.
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
        certificate.write_bytes(credential.certificate)
        key.touch(mode=0o600)
        key.write_bytes(credential.key)
        context.load_cert_chain(certificate, key)


def _load(file: Path) -> Mapping[str, Any]:
    import yaml

    try:
        config = yaml.safe_load(file.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise TargetError(f"kubeconfig {file}: {error}") from None
    if not isinstance(config, dict):
        raise TargetError(f"kubeconfig {file}: not a mapping")
    return config


def _named(config: Mapping[str, Any], section: str, name: str, member: str) -> Mapping[str, Any]:
    for entry in config.get(section) or ():
        if entry.get("name") == name:
            return entry.get(member) or {}
    raise TargetError(f"kubeconfig: {section} has no {name!r}")


def _bytes(section: Mapping[str, Any], name: str, file: Path) -> bytes:
    try:
        if section.get(f"{name}-data"):
            return base64.b64decode(section[f"{name}-data"], validate=True)
        if section.get(name):
            return file.parent.joinpath(os.path.expanduser(section[name])).read_bytes()
    except (OSError, binascii.Error) as error:
        raise TargetError(f"kubeconfig {file}: {name}: {error}") from None
    return b""


def _credential(user: Mapping[str, Any], file: Path) -> Credential:
    unknown = {"exec", "auth-provider", "username"} & user.keys()
    if unknown:
        raise TargetError(f"kubeconfig {file}: users with {', '.join(sorted(unknown))} are not supported, give a token")
    token = str(user.get("token", ""))
    if user.get("tokenFile"):
        try:
            token = (file.parent / user["tokenFile"]).read_text().strip()
        except OSError as error:
            raise TargetError(f"kubeconfig {file}: tokenFile: {error}") from None
    return Credential(token, _bytes(user, "client-certificate", file), _bytes(user, "client-key", file))
