"""What the server is told to allow."""

from __future__ import annotations


class Policy:
    """Set once, from the flags."""

    privileged = False
