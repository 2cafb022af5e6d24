"""The kit against a server that is not ours: read-only, written with the standard library in a few lines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from fastapi_core.testing import conformance

ROOT_FOLDER = Path(__file__).resolve().parents[3]
GROUP, VERSION = "thermo.example.com", "v1beta1"
ROOT = f"/apis/{GROUP}/{VERSION}"
GROUP_VERSION = {"groupVersion": f"{GROUP}/{VERSION}", "version": VERSION}
ENTRY = {"name": GROUP, "versions": [GROUP_VERSION], "preferredVersion": GROUP_VERSION}
RESOURCE = {
    "name": "rooms", "singularName": "room", "namespaced": False, "kind": "Room", "verbs": ["get", "list"],
}  # fmt: skip


def room(name: str) -> dict[str, Any]:
    labels = {"floor": "1" if name < "c" else "2"}
    return {
        "kind": "Room",
        "apiVersion": f"{GROUP}/{VERSION}",
        "metadata": {"name": name, "labels": labels},
        "degrees": 20,
    }


class Thermometer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # One packet an answer; else each waits for an acknowledgement.
    disable_nagle_algorithm = True
    wbufsize = -1
    rooms = ("attic", "bath", "cellar")
    anonymous = False

    def log_message(self, format: str, *args: object) -> None:
        """Not to the terminal."""

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        try:
            status, body = self.answer(url.path, query)
        except LookupError as error:
            status, body = failed(404, "NotFound", f'rooms.{GROUP} "{error.args[0]}" not found', error.args[0])
        self.reply(status, body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.reply(*failed(405, "MethodNotAllowed", "the server does not allow this method on the requested resource"))

    do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_POST  # noqa: N815

    def do_HEAD(self) -> None:
        self.reply(*failed(405, "MethodNotAllowed", "the server does not allow this method on the requested resource"))

    def reply(self, status: int, body: Any) -> None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if isinstance(body, str) else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
        self.wfile.flush()

    def answer(self, path: str, query: dict[str, str]) -> tuple[int, Any]:
        documents = {
            "/livez": "ok",
            "/readyz": "ok",
            "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [ENTRY]},
            f"/apis/{GROUP}": {"kind": "APIGroup", "apiVersion": "v1", **ENTRY},
            ROOT: {"kind": "APIResourceList", "groupVersion": f"{GROUP}/{VERSION}", "resources": [RESOURCE]},
        }
        if path in documents:
            return 200, documents[path]
        if not path.startswith(f"{ROOT}/rooms"):
            return 404, "404 page not found"
        if not self.anonymous and self.headers.get("Authorization") != "Bearer secret":
            return failed(401, "Unauthorized", "Unauthorized")
        accept = self.headers.get("Accept", "*/*")
        if "application/json" not in [part.split(";q")[0].strip() for part in accept.split(",")] and "*" not in accept:
            return failed(406, "NotAcceptable", "only application/json is served")
        if path != f"{ROOT}/rooms":
            name = path.rsplit("/", 1)[1]
            return (200, room(name)) if name in self.rooms else failed_lookup(name)
        return self.listed(query)

    def listed(self, query: dict[str, str]) -> tuple[int, Any]:
        if "fieldSelector" in query or not query.get("limit", "1").isdigit():
            return failed(400, "BadRequest", "not supported")
        found = [room(name) for name in self.rooms]
        selector = query.get("labelSelector", "")
        if selector:
            key, equals, value = selector.partition("=")
            if not (key and equals) or " " in key or "=" in value:
                return failed(400, "BadRequest", "unable to parse requirement")
            found = [item for item in found if item["metadata"]["labels"].get(key) == value]
        return 200, {"kind": "RoomList", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}, "items": found}


def failed_lookup(name: str) -> tuple[int, Any]:
    raise LookupError(name)


def failed(code: int, reason: str, message: str, name: str = "") -> tuple[int, Any]:
    details = {"name": name, "group": GROUP, "kind": "rooms"} if name else {}
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return code, {**status, "message": message, "reason": reason, "details": details, "code": code}


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Thermometer)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


TOKEN = conformance.Credential(token="secret")


def test_a_small_honest_server_passes(address: str) -> None:
    report = conformance.run(conformance.Target(address, credential=TOKEN), GROUP)
    wanted = {"openapi.v3-index"}
    assert {result.check for result in report.failures(conformance.Level.MUST)} == wanted, report.text()
    passed = {result.check for result in report.passed}
    assert {"get.object", "list.kind", "select.read-only", "access.claimed-identity", "error.shape"} <= passed
    # What it could offer as well is said, and does not count.
    assert {"discovery.aggregated", "table.list", "server.version"} <= {
        result.check for result in report.failures(conformance.Level.SHOULD)
    }
    assert not report.leftovers


def test_who_lets_everybody_in_fails(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Thermometer, "anonymous", True)
    report = conformance.run(conformance.Target(address, credential=TOKEN), GROUP, only=["access.*"])
    assert {result.check for result in report.failures()} == {"access.nobody", "access.wrong-token"}
    assert not report.ok


async def test_beside_a_loop(address: str) -> None:
    report = await conformance.run_async(
        conformance.Target(address, credential=TOKEN), GROUP, only=["list.kind"], resources=["rooms"]
    )
    assert report.ok


@pytest.mark.parametrize(
    ("group", "options", "told"),
    [
        ("nothing.example.com", {}, "no group nothing.example.com"),
        (GROUP, {"resources": ["cars"]}, "no cars"),
        (GROUP, {"version": "v9"}, "404"),
        (GROUP, {"only": ["nonsense.*"]}, "no check is called"),
    ],
)
def test_nothing_to_test_is_an_error(address: str, group: str, options: dict[str, Any], told: str) -> None:
    with pytest.raises(conformance.TargetError, match=told):
        conformance.run(conformance.Target(address, credential=TOKEN), group, **options)


def test_nobody_there_is_an_error(address: str) -> None:
    with pytest.raises(conformance.TargetError, match="does not answer"):
        conformance.run(conformance.Target("http://127.0.0.1:1"), GROUP)


def as_tests(folder: Path, arguments: str) -> subprocess.CompletedProcess[str]:
    plugins = ("-p", "fastapi_core.testing.conformance.plugin", "-p", "no:cacheprovider")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "-rs", "--conformance", arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT_FOLDER), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_as_tests_of_pytest(address: str, tmp_path: Path) -> None:
    checks = "--only list.kind --only 'openapi.v3-*' --only table.list"
    done = as_tests(tmp_path, f"--url {address} --token secret --group {GROUP} {checks}")
    # All of OpenAPI v3 but the index have something to look at only where there is an index.
    assert "1 failed, 2 passed, 7 skipped" in done.stdout, done.stdout
    assert "openapi.v3-index" in done.stdout
    assert "expected: 200: the index" in done.stdout
    assert "should: 200: a Table" in done.stdout.replace("expected: ", "")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED


def test_pytest_is_told_what_is_wrong_with_the_arguments(tmp_path: Path) -> None:
    for arguments, told in (("--group x", "--kubeconfig or --url is missing"), ("--nonsense", "--conformance")):
        done = as_tests(tmp_path, arguments)
        assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout
        assert told in done.stderr
