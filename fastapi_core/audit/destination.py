"""Where a webhook is, as a kubeconfig file tells it: server, trust, credentials."""

from __future__ import annotations

import os
import tempfile
from base64 import b64decode, b64encode
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fastapi_core.http.client import Target

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

    from fastapi_core.http.exchange import Header

Tree = dict[str, Any]


class DestinationError(ValueError):
    """A kubeconfig that does not lead anywhere; the text says what is missing."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where to send to. `token_file` is read for each request: such tokens are short-lived."""

    target: Target
    path: str
    headers: tuple[Header, ...] = ()
    token_file: str = ""

    def credentials(self) -> list[Header]:
        """Headers of the moment. Raises OSError when the token file cannot be read."""
        if not self.token_file:
            return list(self.headers)
        token = Path(self.token_file).read_text(encoding="utf-8").strip()
        return [*self.headers, (b"Authorization", b"Bearer " + token.encode())]


def load(file: str) -> Destination:
    """The current context of a kubeconfig file. Raises DestinationError, OSError."""
    from fastapi_core.codec import decode

    data = Path(file).read_bytes()
    try:
        tree = decode.parse(data, "json" if data.lstrip()[:1] == b"{" else "yaml").tree
    except decode.DecodeError as error:
        raise DestinationError(f"it is no YAML: {error}") from None
    if not isinstance(tree, dict):
        raise DestinationError("it is no kubeconfig")
    context = _named(tree, "contexts", "context", str(tree.get("current-context") or ""))
    cluster = _named(tree, "clusters", "cluster", str(context.get("cluster") or ""))
    user = _named(tree, "users", "user", str(context["user"])) if context.get("user") else {}
    folder = os.path.dirname(os.path.abspath(file))
    server = str(cluster.get("server") or "")
    parts = urlsplit(server)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise DestinationError(f"{server!r} is not the URL of a server")
    context_ = _tls(cluster, user, folder) if parts.scheme == "https" else None
    try:
        port = parts.port
    except ValueError:
        raise DestinationError(f"{server!r} has no usable port") from None
    target = Target(parts.hostname, port or (443 if parts.scheme == "https" else 80), context_)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    token_file = str(user.get("tokenFile") or "")
    return Destination(target, path, tuple(_headers(user)), os.path.join(folder, token_file) if token_file else "")


def _named(tree: Tree, plural: str, singular: str, name: str) -> Tree:
    for entry in tree.get(plural) or ():
        if isinstance(entry, dict) and entry.get("name") == name:
            found = entry.get(singular)
            if isinstance(found, dict):
                return found
    raise DestinationError(f"it has no {singular} {name!r}")


def _headers(user: Tree) -> list[Header]:
    if user.get("tokenFile"):
        return []
    if user.get("token"):
        return [(b"Authorization", b"Bearer " + str(user["token"]).encode())]
    if user.get("username"):
        pair = f"{user['username']}:{user.get('password') or ''}".encode()
        return [(b"Authorization", b"Basic " + b64encode(pair))]
    return []


def _tls(cluster: Tree, user: Tree, folder: str) -> ssl.SSLContext:
    import ssl

    context = ssl.create_default_context()
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    authority = _material(cluster, "certificate-authority", folder)
    try:
        if authority is not None:
            context = ssl.create_default_context(cadata=authority.decode("ascii"))
        certificate, key = (_material(user, name, folder) for name in ("client-certificate", "client-key"))
        if certificate is not None and key is not None:
            with _file(certificate) as certificate_file, _file(key) as key_file:
                context.load_cert_chain(certificate_file, key_file)
    except (ssl.SSLError, ValueError) as error:
        raise DestinationError(f"its certificates cannot be used: {error}") from None
    return context


def _material(tree: Tree, name: str, folder: str) -> bytes | None:
    """PEM of a member that is given as data or as a file."""
    data = tree.get(f"{name}-data")
    if data:
        try:
            return b64decode(str(data), validate=True)
        except ValueError:
            raise DestinationError(f"{name}-data is no base64") from None
    file = tree.get(name)
    return Path(folder, str(file)).read_bytes() if file else None


@contextmanager
def _file(data: bytes) -> Iterator[str]:
    """The ssl module reads certificates from files only."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        yield file.name
