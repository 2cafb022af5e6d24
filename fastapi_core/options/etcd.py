"""The flags of a store in etcd, which several servers share. Without `--etcd-servers` they change nothing but
`--etcd-compaction-interval`, which is about history in any store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fastapi_core.options.flags import DURATION, INT, STRING, STRINGS, flag
from fastapi_core.records import dataclass

if TYPE_CHECKING:
    from fastapi_core.storage.etcd.settings import Settings


@dataclass(slots=True)
class Etcd:
    """Where etcd is, and how it is used."""

    etcd_servers: tuple[str, ...] = flag(
        "etcd-servers",
        STRINGS,
        (),
        "URLs of an etcd cluster that keeps the objects; empty: they are kept by the server.",
    )
    etcd_prefix: str = flag("etcd-prefix", STRING, "/registry", "Folder of all keys in etcd.")
    etcd_cafile: str = flag("etcd-cafile", STRING, "", "PEM bundle that etcd's certificates are checked with.")
    etcd_certfile: str = flag("etcd-certfile", STRING, "", "PEM file of the client certificate shown to etcd.")
    etcd_keyfile: str = flag("etcd-keyfile", STRING, "", "PEM file of its key.")
    etcd_compaction_interval: float = flag(
        "etcd-compaction-interval", DURATION, 300.0, "Age at which history is given up; 0: never (but by others)."
    )
    etcd_healthcheck_timeout: float = flag(
        "etcd-healthcheck-timeout", DURATION, 2.0, "Time in which etcd has to answer health checks."
    )
    etcd_readycheck_timeout: float = flag(
        "etcd-readycheck-timeout", DURATION, 2.0, "Time in which etcd has to answer the check of /readyz."
    )
    lease_reuse_duration_seconds: int = flag(
        "lease-reuse-duration-seconds", INT, 60, "Seconds in which events of one time to live share a lease of etcd."
    )
    storage_initialization_timeout: float = flag(
        "storage-initialization-timeout", DURATION, 60.0, "Time in which etcd has to answer at the start."
    )
    storage_backend: str = flag("storage-backend", STRING, "", "etcd3 or empty, which means the same.")


def check(etcd: Etcd) -> list[str]:
    """Everything that is wrong, each line with the flag and the fix."""
    wrong = []
    if etcd.storage_backend not in ("", "etcd3"):
        wrong.append(f"--storage-backend: {etcd.storage_backend!r} is not known, use etcd3 or leave it out")
    for name, seconds in (
        ("etcd-compaction-interval", etcd.etcd_compaction_interval),
        ("lease-reuse-duration-seconds", etcd.lease_reuse_duration_seconds),
    ):
        if seconds < 0:
            wrong.append(f"--{name}: cannot be negative, use 0 or more")
    for name, seconds in (
        ("etcd-healthcheck-timeout", etcd.etcd_healthcheck_timeout),
        ("etcd-readycheck-timeout", etcd.etcd_readycheck_timeout),
        ("storage-initialization-timeout", etcd.storage_initialization_timeout),
    ):
        if seconds <= 0:
            wrong.append(f"--{name}: must be longer than nothing, use for example 2s")
    return wrong + _check_servers(etcd) if etcd.etcd_servers else wrong


def _check_servers(etcd: Etcd) -> list[str]:
    from importlib.util import find_spec

    from fastapi_core.storage.etcd.settings import wrong_endpoint

    wrong = []
    if find_spec("grpc") is None:
        wrong.append("--etcd-servers: needs grpcio, install it with: pip install 'fastapi-core[etcd]'")
    for endpoint in etcd.etcd_servers:
        problem = wrong_endpoint(endpoint)
        if problem:
            wrong.append(
                f"--etcd-servers: {endpoint!r} is no endpoint ({problem}), use for example https://10.0.0.1:2379"
            )
    if bool(etcd.etcd_certfile) != bool(etcd.etcd_keyfile):
        lacking = "etcd-keyfile" if etcd.etcd_certfile else "etcd-certfile"
        wrong.append(f"--{lacking}: is needed too, certificate and key come together")
    for name, path in (
        ("etcd-cafile", etcd.etcd_cafile),
        ("etcd-certfile", etcd.etcd_certfile),
        ("etcd-keyfile", etcd.etcd_keyfile),
    ):
        if path and not os.access(path, os.R_OK):
            reason = (
                "cannot be read, check its permissions" if os.path.exists(path) else "does not exist, check the path"
            )
            wrong.append(f"--{name}: {path!r} {reason}")
    return wrong


def settings(etcd: Etcd, folder: str = "") -> Settings | None:
    """What the store is made with; None without servers. `folder` stands below the prefix: of an extension's objects."""
    if not etcd.etcd_servers:
        return None
    from fastapi_core.storage.etcd.settings import Settings, physical_root

    return Settings(
        etcd.etcd_servers,
        prefix=physical_root(f"{etcd.etcd_prefix}/{folder}"),
        ca_file=etcd.etcd_cafile,
        cert_file=etcd.etcd_certfile,
        key_file=etcd.etcd_keyfile,
        lease_reuse=float(etcd.lease_reuse_duration_seconds),
        opening=etcd.storage_initialization_timeout,
        check_seconds=etcd.etcd_healthcheck_timeout,
    )
