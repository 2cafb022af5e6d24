"""The kubeconfig of the generated admin."""

from __future__ import annotations

from base64 import b64encode

from fastapi_core.options.certificates import Pki, write

_TEMPLATE = """\
apiVersion: v1
kind: Config
clusters:
- name: fastapi-core
  cluster:
    server: {server}
    certificate-authority-data: {ca}
users:
- name: admin
  user:
    client-certificate-data: {cert}
    client-key-data: {key}
contexts:
- name: fastapi-core
  context:
    cluster: fastapi-core
    user: admin
current-context: fastapi-core
"""


def write_kubeconfig(path: str, pki: Pki, server: str, ca_file: str = "") -> None:
    """Write a kubeconfig with everything embedded; `ca_file` (default: the generated CA) verifies `server`."""

    def embedded(file: str) -> str:
        with open(file, "rb") as source:
            return b64encode(source.read()).decode()

    text = _TEMPLATE.format(
        server=server, ca=embedded(ca_file or pki.ca), cert=embedded(pki.admin_cert), key=embedded(pki.admin_key)
    )
    write(path, text.encode(), 0o600)


def server_url(bind_address: str, port: int) -> str:
    """The URL under which this machine reaches the server."""
    host = bind_address
    if bind_address in ("0.0.0.0", "::", ""):
        host = "127.0.0.1"
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
