"""Asking other servers by HTTPS: the webhooks' kubeconfig files, one question and its whole answer."""

from __future__ import annotations

import asyncio
import os
import ssl
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Protocol
from urllib.parse import urlsplit

import orjson

from fastapi_core.http.asking import Whole
from fastapi_core.http.asking import ask as whole
from fastapi_core.http.client import Target, UpstreamError, request_head
from fastapi_core.http.exchange import Header
from fastapi_core.http.pool import Pool
from fastapi_core.records import dataclass

#: Longest answer read.
ANSWER_LIMIT = 3 << 20
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class OutboundError(Exception):
    """A question that got no usable answer; the text says why. `again`: another attempt may do better.

    One that had its time and did not answer is not asked again: as in the reference, who waits has waited long enough.
    """

    def __init__(self, text: str, *, again: bool = False) -> None:
        super().__init__(text)
        self.again = again


class KubeconfigError(ValueError):
    """A kubeconfig file that cannot be used."""


class Asked(Protocol):
    """Somebody who answers reviews."""

    async def post(self, body: bytes, *, timeout: float) -> Whole:
        """The answer within `timeout` seconds. Raises OutboundError."""
        ...


@dataclass(frozen=True, slots=True)
class Remote:
    """A server to ask: its URL, TLS, and what every request carries. `tls` None speaks plain HTTP."""

    url: str
    tls: ssl.SSLContext | None = None
    headers: tuple[Header, ...] = ()
    token_file: str = ""
    """Read for every request: such files are renewed."""
    server_name: str = ""
    """Whom the certificate must be of, where that is not the host of the URL."""
    pool: Pool | None = field(default=None, compare=False)
    """Where connections to it are kept; None: each question has one of its own."""

    async def post(self, body: bytes, *, timeout: float) -> Whole:
        """`Asked`: one question to this server."""
        return await ask(self, "POST", body, timeout=timeout)

    def authorization(self) -> list[Header]:
        if not self.token_file:
            return []
        try:
            with open(self.token_file, encoding="utf-8") as file:
                return [(b"authorization", b"Bearer " + file.read().strip().encode())]
        except OSError as error:
            raise OutboundError(f"{self.token_file}: {error.strerror}") from None


def client_tls(ca: bytes | None = None, *, insecure: bool = False) -> ssl.SSLContext:
    """TLS of a client: the given authorities (PEM), or the system's. Raises ValueError for broken ones."""
    try:
        context = ssl.create_default_context(cadata=ca.decode("ascii") if ca is not None else None)
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise ValueError(f"unable to load the certificate authorities: {error}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


async def ask(
    remote: Remote,
    method: str = "GET",
    body: bytes = b"",
    headers: Sequence[Header] = (),
    *,
    timeout: float,
    url: str = "",
    redirects: int = 0,
) -> Whole:
    """One request and its whole answer within `timeout` seconds. Raises OutboundError when there is none.

    `url` stands for another address of the same server; at most `redirects` redirects are followed, to HTTPS only.
    """
    address = url or remote.url
    try:
        async with asyncio.timeout(timeout):
            for _ in range(redirects + 1):
                answer = await _once(remote, address, method, body, headers)
                location = answer.header(b"location")
                if answer.status not in _REDIRECTS or not location:
                    break
                address = location.decode("latin-1")
    except TimeoutError:
        raise OutboundError(f'{method} "{address}": context deadline exceeded') from None
    except (UpstreamError, ValueError) as error:
        broken = isinstance(error.__cause__, ConnectionResetError | BrokenPipeError | EOFError)
        raise OutboundError(f'{method} "{address}": {error}', again=broken) from None
    return answer


async def _once(remote: Remote, address: str, method: str, body: bytes, headers: Sequence[Header]) -> Whole:
    parts = urlsplit(address)
    secure = parts.scheme == "https"
    if not parts.hostname or parts.scheme not in ("https", "http") or (remote.tls is not None and not secure):
        raise ValueError(f"unsupported address {address!r}")
    host = parts.hostname
    target = Target(host, parts.port or (443 if secure else 80), remote.tls if secure else None, remote.server_name)
    own = [
        (b"host", parts.netloc.rpartition("@")[2].encode()), (b"accept", b"application/json, */*"),
        (b"user-agent", b"fastapi-core"), *remote.headers, *remote.authorization(),
    ]  # fmt: skip
    if remote.pool is None:
        own.append((b"connection", b"close"))
    if body or method == "POST":
        own += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    question = request_head(method, path, [*own, *headers]) + body
    return await whole(remote.pool or Pool(idle_limit=0), target, question, limit=ANSWER_LIMIT)


def kept(remote: Remote) -> Remote:
    """The same server, asked so often that connections to it are kept. They end when they have been idle for a while."""
    return replace(remote, pool=Pool())


def review_status(answer: Whole, who: str, kind: str) -> dict[str, Any]:
    """The status of the review (`kind`) that the webhook `who` answered. Raises OutboundError when there is none."""
    if answer.status not in (200, 201):
        again = answer.status == 429 or answer.status >= 500
        raise OutboundError(f"the {who} webhook answered {answer.status}", again=again)
    try:
        tree = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        tree = None
    status = tree.get("status") if isinstance(tree, dict) else None
    if not isinstance(status, dict):
        raise OutboundError(f"the {who} webhook answered no {kind}")
    return status


@dataclass(slots=True)
class _Entry:
    """A named entry of a kubeconfig, and where its relative paths start."""

    tree: Mapping[str, Any]
    folder: str
    where: str

    def text(self, name: str) -> str:
        value = self.tree.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise KubeconfigError(f"{self.where}.{name}: a text is expected")
        return value

    def path(self, name: str) -> str:
        value = self.text(name)
        return os.path.join(self.folder, value) if value else ""

    def data(self, name: str) -> bytes | None:
        """The content of `NAME-data`, or of the file `NAME`; None without either."""
        inline, path = self.text(f"{name}-data"), self.path(name)
        try:
            if inline:
                return b64decode(inline, validate=True)
            if path:
                with open(path, "rb") as file:
                    return file.read()
        except ValueError:
            raise KubeconfigError(f"{self.where}.{name}-data: not base64") from None
        except OSError as error:
            raise KubeconfigError(f"{self.where}.{name}: {path!r}: {error.strerror}") from None
        return None


def load_kubeconfig(path: str, run: Program | None = None) -> Remote:
    """The server of the current context, as webhooks are configured. Raises OSError or KubeconfigError.

    `run` is for users whose credentials a program knows (`exec`).
    """
    return _remote(*_current(path), run)


def kubeconfig_files(path: str) -> tuple[str, ...]:
    """The file itself and those it names, for who wants to follow them. Raises as `load_kubeconfig`."""
    cluster, user = _current(path)
    named = (cluster.path("certificate-authority"), user.path("client-certificate"), user.path("client-key"))
    return (path, *filter(None, named))


def _current(path: str) -> tuple[_Entry, _Entry]:
    """Cluster and user of the current context."""
    tree, folder = _read_kubeconfig(path)
    current = tree.get("current-context")
    if not isinstance(current, str) or not current:
        raise KubeconfigError("current-context is not set")
    context = _entry(tree, "contexts", "context", current, folder)
    cluster = _entry(tree, "clusters", "cluster", context.text("cluster"), folder)
    name = context.text("user")
    user = _entry(tree, "users", "user", name, folder) if name else _Entry({}, folder, "user")
    return cluster, user


def _read_kubeconfig(path: str) -> tuple[Mapping[str, Any], str]:
    """(tree, the folder its relative paths start from)."""
    from fastapi_core.codec import decode
    from fastapi_core.schema.errors import DecodeError

    with open(path, "rb") as file:
        data = file.read()
    try:
        tree = decode.parse(data, "yaml").tree
    except DecodeError as error:
        raise KubeconfigError(str(error)) from None
    if not isinstance(tree, dict):
        raise KubeconfigError("not a kubeconfig: an object is expected")
    return tree, os.path.dirname(os.path.abspath(path))


def _entry(tree: Mapping[str, Any], plural: str, kind: str, name: str, folder: str) -> _Entry:
    entries = tree.get(plural)
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("name") == name:
            found = entry.get(kind)
            return _Entry(found if isinstance(found, dict) else {}, folder, f"{plural}[{name}]")
    raise KubeconfigError(f"{plural}: there is no {kind} {name!r}")


def _remote(cluster: _Entry, user: _Entry, run: Program | None = None) -> Remote:
    server = cluster.text("server")
    parts = urlsplit(server)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise KubeconfigError(f"{cluster.where}.server: {server!r} is not a URL, use for example https://host/path")
    who = _identity(user, run)
    if parts.scheme == "http":
        return Remote(server, None, who.headers, who.token_file)
    name = cluster.text("tls-server-name")
    try:
        tls = client_tls(
            cluster.data("certificate-authority"), insecure=cluster.tree.get("insecure-skip-tls-verify") is True
        )
        if who.pair is not None:
            load_pair(tls, *who.pair)
    except (ValueError, ssl.SSLError) as error:
        raise KubeconfigError(str(error)) from None
    return Remote(server, tls, who.headers, who.token_file, name)


@dataclass(frozen=True, slots=True)
class Identity:
    """A user entry of a kubeconfig: what its requests carry, and the certificate and key (PEM) of its connections."""

    headers: tuple[Header, ...] = ()
    token_file: str = ""
    pair: tuple[bytes, bytes] | None = None


Program = Callable[[Mapping[str, Any], str], Identity]
"""Runs the program of an `exec` entry; the folder is where its relative path starts. Raises KubeconfigError."""


def _identity(user: _Entry, run: Program | None = None) -> Identity:
    program = user.tree.get("exec")
    if run is not None and isinstance(program, dict):
        return run(program, user.folder)
    for unsupported in ("exec", "auth-provider"):
        if user.tree.get(unsupported):
            raise KubeconfigError(f"{user.where}.{unsupported}: not supported, use a certificate or a token")
    headers: tuple[Header, ...] = ()
    if user.text("token"):
        headers = ((b"authorization", b"Bearer " + user.text("token").encode()),)
    elif user.text("username"):
        named = f"{user.text('username')}:{user.text('password')}".encode()
        headers = ((b"authorization", b"Basic " + b64encode(named)),)
    certificate, key = user.data("client-certificate"), user.data("client-key")
    pair = (certificate, key) if certificate is not None and key is not None else None
    return Identity(headers, "" if headers else user.path("tokenFile"), pair)


def kubeconfig_users(path: str) -> tuple[dict[str, Identity], str]:
    """All users of a kubeconfig by name, and the name of the current context's. Raises OSError or KubeconfigError."""
    tree, folder = _read_kubeconfig(path)
    entries = tree.get("users")
    users = {
        entry["name"]: _identity(_entry(tree, "users", "user", entry["name"], folder))
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict) and isinstance(entry.get("name"), str)
    }
    current = tree.get("current-context")
    if not isinstance(current, str) or not current:
        return users, ""
    return users, _entry(tree, "contexts", "context", current, folder).text("user")


def load_pair(tls: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """The ssl module reads pairs from files only; this one is ours alone and gone at once."""
    import tempfile

    with tempfile.NamedTemporaryFile() as file:
        file.write(certificate + b"\n" + key)
        file.flush()
        tls.load_cert_chain(file.name)
