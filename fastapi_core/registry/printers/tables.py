"""Columns and row functions of every built-in kind that prints more than its name and creation time."""

from __future__ import annotations

from fastapi_core.registry.printers import cluster, control, network, pods, workloads
from fastapi_core.registry.printers.engine import Column, RowFunction

TABLES: dict[str, tuple[Column, ...]] = {
    "Pod": pods.COLUMNS,
    **workloads.TABLES,
    **network.TABLES,
    **cluster.TABLES,
    **control.TABLES,
}
ROWS: dict[str, RowFunction] = {"Pod": pods.pod_row, "IPAddress": network.address_row}
