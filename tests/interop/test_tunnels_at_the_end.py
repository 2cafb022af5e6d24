"""Open tunnels and followed logs do not keep a server from stopping, and end with their client."""

from __future__ import annotations

import time
from pathlib import Path

from fastapi_core.testing.server import RunningServer
from tests.fixtures.kubelet import Kubelet
from tests.fixtures.server import TOKENS, Api
from tests.interop.test_kubelet import upgrade

MERGE = {"Content-Type": "application/merge-patch+json"}


def test_a_stop_ends_tunnels(tmp_path: Path) -> None:
    server = RunningServer(tmp_path, tokens=TOKENS)
    kubelet = Kubelet(server)
    api = Api(server)
    try:
        assert api("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})[0] == 201
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.port}},
        }
        assert api("PATCH", "/api/v1/nodes/n/status", {"status": status}, MERGE)[0] == 200
        spec = {"containers": [{"name": "c", "image": "x"}], "automountServiceAccountToken": False, "nodeName": "n"}
        account = {"metadata": {"name": "default"}}
        assert api("POST", "/api/v1/namespaces/default/serviceaccounts", account)[0] == 201
        assert api("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": spec})[0] == 201
        path = "/api/v1/namespaces/default/pods/p/exec?command=sh&stdin=true"
        gone, _ = upgrade(api, path, "SPDY/3.1")
        gone.close()
        # Once its client is gone the kubelet's side ends, too.
        kubelet.threads[0].join(20)
        assert not kubelet.threads[0].is_alive()
        open_one, _ = upgrade(api, path, "SPDY/3.1")
        with open_one:
            began = time.monotonic()
            assert server.stop() == 0
            assert time.monotonic() - began < 15
    finally:
        api.connection.close()
        kubelet.close()
        if server.process.poll() is None:
            server.kill()
