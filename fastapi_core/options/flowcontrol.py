"""Flags of flow control: how much is served at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi_core.options.flags import BOOL, flag
from fastapi_core.records import dataclass

if TYPE_CHECKING:
    from fastapi_core.options.groups import Generic


@dataclass(slots=True)
class FlowControl:
    """How what is served at once is shared; how much that is say the flags of the generic group."""

    enable_priority_and_fairness: bool = flag(
        "enable-priority-and-fairness",
        BOOL,
        True,
        "Share the seats of --max-requests-inflight and --max-mutating-requests-inflight by priority and fairness.",
    )


def check(group: FlowControl, generic: Generic) -> list[str]:
    """Everything that is wrong, each line with the flag and the fix."""
    total = generic.max_requests_inflight + generic.max_mutating_requests_inflight
    if group.enable_priority_and_fairness and total == 0:
        fix = "give it or --max-mutating-requests-inflight, or turn --enable-priority-and-fairness off"
        return [f"--max-requests-inflight: there must be something to share, {fix}"]
    return []
