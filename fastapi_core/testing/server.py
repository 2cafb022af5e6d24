"""A real server in a process of its own, for tests: free port, own data directory, stopped and killed at will."""

from __future__ import annotations

import contextlib
import re
import signal
import ssl
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_ADDRESS = re.compile(r"https://([\d.]+|\[[\da-f:]+\]):(\d+)")


class RunningServer:
    """`fastapi-core serve` on 127.0.0.1.

    `data_dir` keeps the store, certificates and `admin.kubeconfig`; start another on the same directory to restart.
    `tokens` are (token, user, uid, groups) for `--token-auth-file`. Raises RuntimeError with the server's own words
    when it does not come up.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        flags: Sequence[str] = (),
        tokens: Sequence[tuple[str, str, str, str]] = (),
        port: int = 0,
    ) -> None:
        self.data_dir = data_dir
        data_dir.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "fastapi_core.cli.main", "serve", "--data-dir", str(data_dir)]
        command += ["--bind-address", "127.0.0.1", "--secure-port", str(port), *flags]
        if tokens:
            file = data_dir / "tokens.csv"
            file.write_text("".join(f'{token},{user},{uid},"{groups}"\n' for token, user, uid, groups in tokens))
            command += ["--token-auth-file", str(file)]
        self._log = (data_dir / "server.log").open("ab")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, text=True)
        self.port = self._await_address()
        self.url = f"https://127.0.0.1:{self.port}"
        self.kubeconfig = data_dir / "admin.kubeconfig"

    def _await_address(self) -> int:
        assert self.process.stdout is not None
        port = 0
        for line in self.process.stdout:
            found = _ADDRESS.search(line)
            if found:
                port = int(found[2])
            if "KUBECONFIG" in line and port:
                return port
        self.process.wait()
        raise RuntimeError(f"the server did not start: {(self.data_dir / 'server.log').read_text()[-2000:]}")

    def ssl_context(self) -> ssl.SSLContext:
        """Trusts the server's CA and shows the admin's certificate."""
        context = ssl.create_default_context(cafile=str(self.data_dir / "pki/ca.crt"))
        context.load_cert_chain(self.data_dir / "pki/admin.crt", self.data_dir / "pki/admin.key")
        return context

    def stop(self, timeout: float = 30) -> int:
        """SIGTERM and wait; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self._ended(timeout)

    def kill(self) -> None:
        """SIGKILL: nothing gets a chance to be written."""
        self.process.kill()
        self._ended(10)

    def _ended(self, timeout: float) -> int:
        try:
            return self.process.wait(timeout)
        finally:
            with contextlib.suppress(OSError):
                if self.process.stdout is not None:
                    self.process.stdout.close()
                self._log.close()
