"""The `process_*` metrics, read from the kernel when somebody scrapes."""

from __future__ import annotations

import os
import resource
import sys
import time

from fastapi_core.obs.metrics import Registry

STARTED = time.time()


def register(registry: Registry) -> None:
    """Declare the process metrics and their collector."""
    plain = {"stability": ""}
    cpu = registry.counter("process_cpu_seconds_total", "User and system CPU seconds.", **plain).labels()
    start = registry.gauge("process_start_time_seconds", "Start of the process, Unix time.", **plain).labels()
    resident = registry.gauge("process_resident_memory_bytes", "Resident memory.", **plain).labels()
    virtual = registry.gauge("process_virtual_memory_bytes", "Virtual memory.", **plain).labels()
    fds = registry.gauge("process_open_fds", "Open file descriptors.", **plain).labels()
    fd_limit = registry.gauge("process_max_fds", "Limit of open file descriptors.", **plain).labels()
    start.set(STARTED)

    def collect() -> None:
        times = os.times()
        cpu.set(times.user + times.system)
        fd_limit.set(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        if sys.platform == "linux":
            with open("/proc/self/statm", "rb") as statm:
                pages = statm.read().split()
            size = resource.getpagesize()
            virtual.set(int(pages[0]) * size)
            resident.set(int(pages[1]) * size)
            fds.set(len(os.listdir("/proc/self/fd")))
        else:
            resident.set(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)

    registry.collector(collect)
