"""A measured server process: CPU time and memory from /proc."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")


class Measured:
    """A child process whose CPU seconds and resident bytes can be read while it runs."""

    def __init__(self, command: list[str], log: Path) -> None:
        self.started = time.monotonic()
        self._log = log.open("wb")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, text=True)

    def cpu(self) -> float:
        """User and system seconds of all threads so far, to the nanosecond where the kernel tells."""
        total = 0.0
        tasks = Path(f"/proc/{self.process.pid}/task")
        try:
            for task in tasks.iterdir():
                total += int((task / "schedstat").read_text().split()[0]) / 1e9
            return total
        except (OSError, ValueError, IndexError):
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / TICK

    def resident(self) -> int:
        """Resident bytes."""
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{self.process.pid}/status").read_text())
        assert found is not None
        return int(found[1]) * 1024

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        self._log.close()


class Served(Measured):
    """Our server on a data directory; `ready_seconds` from exec to the printed address, `ready_cpu` what it took."""

    def __init__(self, data: Path, log: Path, *flags: str) -> None:
        command = [
            sys.executable,
            "-m",
            "fastapi_core.cli.main",
            "serve",
            "--data-dir",
            str(data),
            "--secure-port",
            "0",
        ]
        super().__init__([*command, "--bind-address", "127.0.0.1", *flags], log)
        assert self.process.stdout is not None
        self.port = 0
        for line in self.process.stdout:
            found = re.search(r"https://127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found[1])
            if "KUBECONFIG" in line:
                break
        if not self.port:
            raise RuntimeError(f"the server did not start, see {log}")
        self.ready_seconds = time.monotonic() - self.started
        self.ready_cpu = self.cpu()
        self.url = f"https://127.0.0.1:{self.port}"


class _Bare(Measured):
    """A module of this package that serves with what is in a folder, and writes its port to a file there."""

    def __init__(self, module: str, folder: Path, log: Path, *arguments: str) -> None:
        port_file = folder / f"{module}.port"
        port_file.unlink(missing_ok=True)
        super().__init__([sys.executable, "-m", f"bench.{module}", str(folder), str(port_file), *arguments], log)
        while not (port_file.exists() and port_file.read_text()):
            if self.process.poll() is not None:
                raise RuntimeError(f"bench.{module} did not start, see {log}")
            time.sleep(0.01)
        self.port = int(port_file.read_text())
        self.url = f"https://127.0.0.1:{self.port}"


class Limit(_Bare):
    """The bare server of `bench.limit`."""

    def __init__(self, folder: Path, log: Path) -> None:
        super().__init__("limit", folder, log)


class Relay(_Bare):
    """The bare relay of `bench.relay` in front of a server."""

    def __init__(self, folder: Path, log: Path, backend: int) -> None:
        super().__init__("relay", folder, log, str(backend))
