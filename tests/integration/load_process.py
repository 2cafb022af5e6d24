"""A client as a process of its own: steady requests on several connections until SIGTERM, then what came back.

Every request is idempotent and is made once: what the front server does not mend is an error here. Answers must be of
the group that was asked. The summary is one JSON document on standard output.
"""

from __future__ import annotations

import http.client
import json
import signal
import ssl
import sys
import threading
import time
from typing import Any


class Load:
    def __init__(self, port: int, ca: str, token: str, groups: list[str], pause: float) -> None:
        self.port, self.token, self.groups, self.pause = port, token, groups, pause
        self.context = ssl.create_default_context(cafile=ca)
        self.stop = threading.Event()
        self.good = 0
        self.servers: dict[str, int] = {}
        self.peers: dict[str, int] = {}
        self.wrong: list[Any] = []
        self.lock = threading.Lock()

    def run(self, number: int) -> None:
        client = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=20)
        turn = number
        while not self.stop.is_set():
            group = self.groups[turn % len(self.groups)]
            turn += 1
            try:
                # Some take a while, so that there is always one under way.
                name = "slow" if turn % 5 == 0 else f"t{turn % 7}"
                path = f"/apis/{group}/v1/things/{name}"
                client.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
                answer = client.getresponse()
                self.note(group, answer.status, answer.read())
            except (OSError, http.client.HTTPException) as error:
                client.close()
                with self.lock:
                    self.wrong.append([group, repr(error)])
            time.sleep(self.pause)  # the rate of the load, nothing is waited for
        client.close()

    def note(self, group: str, status: int, body: bytes) -> None:
        try:
            tree = json.loads(body)
        except ValueError:
            tree = {}
        with self.lock:
            if status != 200 or tree.get("apiVersion") != f"{group}/v1":
                self.wrong.append([group, status, body.decode("utf-8", "replace")[:300]])
                return
            self.good += 1
            for counts, name in ((self.servers, tree["server"]), (self.peers, tree.get("peer", ""))):
                counts[name] = counts.get(name, 0) + 1


def main() -> None:
    port, ca, token, groups = sys.argv[1:5]
    load = Load(int(port), ca, token, groups.split(","), 0.01)
    signal.signal(signal.SIGTERM, lambda *_: load.stop.set())
    threads = [threading.Thread(target=load.run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    print("running", flush=True)
    for thread in threads:
        thread.join()
    summary = {"good": load.good, "servers": load.servers, "peers": load.peers, "wrong": load.wrong}
    print(json.dumps(summary), flush=True)


if __name__ == "__main__":
    main()
