"""The clock of times to live: Unix time as it was at the start, from then on by a clock that nobody sets.

Times to live are kept on disk and outlast the process, so they are Unix times; but a wall clock that jumps by hours must
not remove what has just been written.
"""

from __future__ import annotations

import time

_OFFSET = time.time() - time.monotonic()


def now() -> float:
    """Seconds since 1970, without the jumps since the process started."""
    return _OFFSET + time.monotonic()
