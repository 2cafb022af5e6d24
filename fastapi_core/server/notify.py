"""Telling the service manager how far we are (systemd's notification socket)."""

from __future__ import annotations

import os
import socket


def notify(state: str) -> bool:
    """Send one state (`READY=1`, `STOPPING=1`); False when nobody asked for it or the socket takes nothing."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path.startswith(("/", "@")):
        return False
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            # A leading @ stands for the null byte of Linux's abstract name space.
            sender.connect("\0" + path[1:] if path[0] == "@" else path)
            sender.sendall(state.encode())
    except OSError:
        return False
    return True
