"""How the storage thread gets its turn at the interpreter lock.

Each call into SQLite gives the lock up. A thread that wants it back from a loop that never idles asks for it only after
the switch interval has passed (5 ms by default, and Linux adds 50 us to every such wait), and the wait begins anew each
time the loop lets go for an instant, which uvloop does at every callback: a saturated server hardly writes. Measured,
writes per second beside a loop made of 50 us callbacks, 8 writers, 2 cores: 325 with the defaults and 27 calls per
group, 200 to 4,500 with one call per group, 12,000 with that and both settings below.
"""

from __future__ import annotations

import sys
import threading
from contextlib import suppress


def share_interpreter(seconds: float) -> None:
    """Shorten the switch interval of the process to `seconds`, unless it is shorter."""
    sys.setswitchinterval(min(sys.getswitchinterval(), seconds))


def wait_precisely() -> None:
    """Let timed waits of the calling thread end on time; where the system has no such setting, nothing changes."""
    with suppress(OSError), open(f"/proc/{threading.get_native_id()}/timerslack_ns", "w") as setting:
        setting.write("1")
