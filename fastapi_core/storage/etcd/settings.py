"""What the etcd store is made with."""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi_core.records import dataclass

#: The folder that keys have inside the process. `--etcd-prefix` decides what stands for it in etcd.
ROOT = "/registry/"


@dataclass(frozen=True, slots=True)
class Settings:
    """Endpoints with scheme, as of `--etcd-servers`; files in PEM, empty where there is none."""

    endpoints: tuple[str, ...]
    prefix: str = ROOT
    """What stands in etcd for `root`; both are either empty or end with a slash."""
    root: str = ROOT
    """Keys the store is asked for begin with it."""
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    lease_reuse: float = 60.0
    """Seconds in which keys of one time to live get the same lease, and so live longer by that (5 % at most)."""
    patience: float = 34.0
    """Seconds after which a request has failed, with all attempts and endpoints that were tried (as the reference)."""
    attempt: float = 5.0
    """Seconds after which a read that is not answered is asked of the next endpoint."""
    opening: float = 60.0
    """Seconds in which etcd has to answer when the store is opened."""
    check_seconds: float = 2.0
    """Seconds in which a health check has to be answered."""


def physical_root(prefix: str) -> str:
    """The folder in etcd that `--etcd-prefix` means: with one slash at either end."""
    inner = prefix.strip("/")
    return f"/{inner}/" if inner else "/"


def wrong_endpoint(text: str) -> str:
    """Why a text is no endpoint; empty when it is one."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme not in ("http", "https"):
        return "it needs a scheme, http:// or https://"
    if not parts.hostname:
        return "it has no host"
    if parts.path.strip("/") or parts.query or parts.fragment or parts.username is not None:
        return "it is more than a scheme, a host and a port"
    return "port 0 is none" if port == 0 else ""


def target(endpoint: str) -> tuple[str, bool]:
    """What an endpoint is called by gRPC, and whether it is reached through TLS."""
    parts = urlsplit(endpoint)
    host, port = parts.hostname or "", parts.port or 2379
    if ":" in host:
        return f"ipv6:[{host}]:{port}", parts.scheme == "https"
    if host.replace(".", "").isdigit():
        return f"ipv4:{host}:{port}", parts.scheme == "https"
    return f"dns:///{host}:{port}", parts.scheme == "https"
