"""A wall clock that jumps by hours, both ways, while the server runs: nothing expires, nothing stands still.

The server's process sees the clock through a library of a few lines that adds what a file says.
"""

from __future__ import annotations

import http.client
import json
import shutil
import ssl
import struct
import subprocess
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fastapi_core.testing.server import RunningServer
from tests.adversity.killing import Client, Watcher

pytestmark = pytest.mark.adversity

COMPILER = shutil.which("cc")
PATH = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
EVENTS = "/api/v1/namespaces/default/events"
HOUR = 3600
SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
static volatile long *offset;
static int (*real)(clockid_t, struct timespec *);
__attribute__((constructor)) static void start(void) {
    int file = open(getenv("CLOCK_OFFSET"), O_RDONLY);
    offset = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
    real = dlsym(RTLD_NEXT, "clock_gettime");
}
int clock_gettime(clockid_t which, struct timespec *now) {
    int result = real(which, now);
    if (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE) now->tv_sec += *offset;
    return result;
}
time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *out, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""


class TokenClient(Client):
    """With a token instead of a certificate, which is rightly not valid at all times."""

    def __init__(self, server: RunningServer) -> None:
        super().__init__(server)
        context = ssl.create_default_context(cafile=str(server.data_dir / "pki/ca.crt"))
        self.connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=30)

    def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        payload = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json", "Authorization": "Bearer secret"}
        self.connection.request(method, path, payload, headers)
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())


class Clock:
    """The clock of the servers started while it exists."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._file = folder / "offset"
        self.jump(0)
        (folder / "clock.c").write_text(SOURCE)
        library = folder / "clock.so"
        assert COMPILER is not None
        subprocess.run([COMPILER, "-shared", "-fPIC", "-O1", "-o", library, folder / "clock.c", "-ldl"], check=True)
        monkeypatch.setenv("CLOCK_OFFSET", str(self._file))
        monkeypatch.setenv("LD_PRELOAD", str(library))

    def jump(self, seconds: int) -> None:
        """So far from the true time from now on."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("l", seconds))


def age(obj: dict[str, Any]) -> float:
    """Seconds between the true time and the creation of an object."""
    made = datetime.strptime(obj["metadata"]["creationTimestamp"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    return time.time() - made.timestamp()


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
def test_hours_forward_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(tmp_path, monkeypatch)
    server = RunningServer(tmp_path / "data", tokens=[("secret", "somebody", "1", "system:masters")])
    try:
        client = TokenClient(server)
        event = {
            "metadata": {"name": "one"},
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
            "reason": "Tested",
            "type": "Normal",
        }
        assert client("POST", EVENTS, event)[0] == 201
        since = int(client("GET", PATH)[1]["metadata"]["resourceVersion"])
        watcher = Watcher(server, since, PATH)
        watcher.start()
        lease = {"metadata": {"name": "leader"}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}}
        status, lease = client("POST", LEASES, lease)
        assert status == 201
        for number, hours in enumerate((0, 6, -6, 48, 0)):
            clock.jump(hours * HOUR)
            began = time.monotonic()
            name = f"after-{number}"
            status, made = client("POST", PATH, {"metadata": {"name": name}, "data": {"number": "1"}})
            assert status == 201
            assert abs(age(made) + hours * HOUR) < 60, "the server does not see the clock that jumped"
            lease["spec"]["leaseTransitions"] = number
            status, lease = client("PUT", f"{LEASES}/leader", lease)
            assert status == 200, lease
            assert client("GET", f"{EVENTS}/one")[0] == 200, f"{hours} hours expired an event"
            # Timeouts, limits and queues go by another clock.
            listed = client("GET", f"{PATH}?timeoutSeconds=5&watch=false")[0]
            assert listed == 200
            while not (watcher.events and watcher.events[-1].name == name):
                assert watcher.is_alive(), watcher.problem
                assert time.monotonic() - began < 20
                watcher.join(0.01)
            other = TokenClient(server)
            status, review = other(
                "POST",
                "/apis/authentication.k8s.io/v1/tokenreviews",
                {"spec": {"token": "secret"}},
            )
            assert (status, review["status"].get("authenticated")) == (201, True)
            other.close()
        assert len(threading.enumerate()) < 10
        client.close()
        assert server.stop() == 0
    finally:
        server.kill()
