"""The way to servers in another network: EgressSelectorConfiguration, and HTTP CONNECT through the proxy it names.

Only what it says about `cluster` matters here. A proxy is reached by TCP (with or without TLS) or a Unix socket; its
connection is joined to a socket pair, so that TLS to the server behind it works as on any socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from typing import Any
from urllib.parse import urlsplit

from fastapi_core.records import dataclass
from fastapi_core.schema.errors import DecodeError

Tree = dict[str, Any]
VERSIONS = ("apiserver.k8s.io/v1beta1", "apiserver.k8s.io/v1alpha1")
KIND = "EgressSelectorConfiguration"
NAMES = ("controlplane", "etcd", "cluster", "master")
_HEAD_LIMIT = 1 << 16
_PIECE = 1 << 16

_MEMBERS = {
    "": {"apiVersion", "kind", "egressSelections"},
    "egressSelections": {"name", "connection"},
    "connection": {"proxyProtocol", "transport"},
    "transport": {"tcp", "uds"},
    "tcp": {"url", "tlsConfig"},
    "tlsConfig": {"caBundle", "clientKey", "clientCert"},
    "uds": {"udsName"},
}


@dataclass(frozen=True, slots=True)
class ConnectProxy:
    """A `http.client.Tunnel` through an HTTP proxy, at `host`:`port` or the Unix socket `path`."""

    host: str = ""
    port: int = 0
    path: str = ""
    tls: ssl.SSLContext | None = None

    async def open(self, host: str, port: int) -> socket.socket:
        reader, writer = await self._reach()
        try:
            authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            if not authority.isascii() or not authority.isprintable() or " " in authority:
                raise OSError(f"no such host {host!r}")
            writer.write(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
            await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            parts = head.split(b"\r\n", 1)[0].split(b" ", 2)
            if not parts[0].startswith(b"HTTP/1.") or len(parts) < 2 or parts[1] != b"200":
                said = b" ".join(parts[1:]).decode("latin-1")
                raise OSError(f"error from proxy while dialing {authority}: {said}")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            writer.close()
            raise OSError("the proxy does not speak HTTP") from error
        except BaseException:
            writer.close()
            raise
        near, far = socket.socketpair()
        near.setblocking(False)
        try:
            ends = await asyncio.open_connection(sock=far)
        except BaseException:
            near.close()
            writer.close()
            raise
        _keep(asyncio.ensure_future(_join((reader, writer), ends)))
        return near

    async def _reach(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self.path:
            return await asyncio.open_unix_connection(self.path, limit=_HEAD_LIMIT)
        return await asyncio.open_connection(self.host, self.port, ssl=self.tls, limit=_HEAD_LIMIT)


_Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_running: set[asyncio.Future[None]] = set()


def _keep(task: asyncio.Future[None]) -> None:
    _running.add(task)
    task.add_done_callback(_running.discard)


async def _join(one: _Ends, other: _Ends) -> None:
    """Pass bytes on both ways until either side ends."""
    ways = [asyncio.ensure_future(_pass(a, b)) for a, b in ((one, other), (other, one))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        for _, writer in (one, other):
            writer.close()


async def _pass(source: _Ends, sink: _Ends) -> None:
    with contextlib.suppress(OSError, ssl.SSLError):
        while data := await source[0].read(_PIECE):
            sink[1].write(data)
            await sink[1].drain()


# The file


def load(path: str) -> ConnectProxy | None:
    """The proxy for the cluster network; None for direct. Raises OSError, ValueError (a line for each problem)."""
    from fastapi_core.codec import decode

    with open(path, "rb") as file:
        data = file.read()
    try:
        tree = decode.parse(data, "yaml").tree
    except DecodeError as error:
        raise ValueError(str(error)) from None
    if not isinstance(tree, dict):
        raise ValueError("an object is expected")
    wrong = _unknown(tree, "", "")
    if tree.get("apiVersion") not in VERSIONS or tree.get("kind") != KIND:
        wrong.append(f"apiVersion and kind must be {VERSIONS[0]} and {KIND}")
    chosen: Tree | None = None
    for position, entry in enumerate(_list(tree.get("egressSelections"))):
        where = f"egressSelections[{position}]"
        name = entry.get("name")
        if name not in NAMES:
            wrong.append(f"{where}.name: {name!r} is none of {', '.join(NAMES)}")
        wrong += _connection(entry.get("connection"), f"{where}.connection")
        if name == "cluster":
            chosen = entry.get("connection")
    if wrong:
        raise ValueError("\n".join(wrong))
    return None if chosen is None else _proxy(chosen)


def _list(value: Any) -> list[Tree]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _unknown(tree: Tree, kind: str, where: str) -> list[str]:
    wrong = []
    for name, value in tree.items():
        at = f"{where}.{name}" if where else name
        if name not in _MEMBERS[kind]:
            wrong.append(f'unknown field "{at}"')
        elif name in _MEMBERS:
            for index, child in enumerate(value if isinstance(value, list) else [value]):
                here = f"{at}[{index}]" if isinstance(value, list) else at
                if isinstance(child, dict):
                    wrong += _unknown(child, name, here)
                elif child is not None:
                    wrong.append(f"{here}: an object is expected")
    return wrong


def _connection(connection: Any, where: str) -> list[str]:
    if not isinstance(connection, dict):
        return [f"{where}: is needed"]
    protocol = connection.get("proxyProtocol")
    transport = connection.get("transport") or {}
    if protocol == "Direct":
        return [f"{where}.transport: a direct connection has none"] if transport else []
    if protocol == "GRPC":
        return [f"{where}.proxyProtocol: GRPC is not supported, use HTTPConnect"]
    if protocol != "HTTPConnect":
        return [f"{where}.proxyProtocol: {protocol!r} is none of Direct, HTTPConnect"]
    if not isinstance(transport, dict):
        return [f"{where}.transport: an object is expected"]
    tcp, uds = transport.get("tcp"), transport.get("uds")
    if (tcp is None) == (uds is None):
        return [f"{where}.transport: one of tcp and uds is needed"]
    if isinstance(uds, dict):
        return (
            []
            if isinstance(uds.get("udsName"), str) and uds["udsName"]
            else [f"{where}.transport.uds.udsName: is needed"]
        )
    return _tcp(tcp, f"{where}.transport.tcp")


def _tcp(tcp: Any, where: str) -> list[str]:
    url = tcp.get("url") if isinstance(tcp, dict) else None
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        return [f"{where}.url: {url!r} is not a URL, use for example https://proxy:8131"]
    config = tcp.get("tlsConfig") or {}
    if parts.scheme == "http":
        return [f"{where}.tlsConfig: there is none with http"] if config else []
    wrong = []
    for name in ("caBundle", "clientKey", "clientCert"):
        path = config.get(name)
        if path and not (isinstance(path, str) and os.access(path, os.R_OK)):
            wrong.append(f"{where}.tlsConfig.{name}: {path!r} cannot be read")
    if bool(config.get("clientKey")) != bool(config.get("clientCert")):
        wrong.append(f"{where}.tlsConfig: clientKey and clientCert come together")
    return wrong


def _proxy(connection: Tree) -> ConnectProxy | None:
    if connection["proxyProtocol"] == "Direct":
        return None
    transport = connection["transport"]
    if transport.get("uds"):
        return ConnectProxy(path=transport["uds"]["udsName"])
    parts = urlsplit(transport["tcp"]["url"])
    tls = None
    if parts.scheme == "https":
        config = transport["tcp"].get("tlsConfig") or {}
        try:
            tls = ssl.create_default_context(cafile=config.get("caBundle") or None)
            if config.get("clientCert"):
                tls.load_cert_chain(config["clientCert"], config["clientKey"])
        except ssl.SSLError as error:
            raise ValueError(f"tlsConfig: {error}") from None
    return ConnectProxy(parts.hostname or "", parts.port or (443 if tls else 80), tls=tls)
