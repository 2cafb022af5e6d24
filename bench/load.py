"""wrk over TLS: one row of throughput and latency, with the server's CPU per operation around it."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.process import Measured

_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}

_SCRIPT = """
local id = 0
function setup(thread) thread:set("id", id); id = id + 1 end
local n = 0
local run = "{run}"
request = function()
  n = n + 1
  local target = string.gsub(string.gsub("{target}", "@ID@", run .. "-" .. id), "@N@", tostring(n % {modulo}))
  local body = string.gsub(string.gsub([==[{body}]==], "@ID@", run .. "-" .. id), "@N@", tostring(n))
  body = string.gsub(body, "@M@", tostring(n % {modulo}))
  return wrk.format("{method}", target, {headers}, body)
end
"""


@dataclass(frozen=True, slots=True)
class Result:
    """One measured row; latencies in seconds, `cpu` in microseconds of server CPU per operation."""

    requests: int
    per_second: float
    p50: float
    p99: float
    cpu: float
    errors: int


@dataclass(frozen=True, slots=True)
class Shot:
    """What wrk sends. In `target` and `body` @ID@ is unique per thread and run, @N@ counts (modulo `modulo` in the target;
    @M@ is the same number in the body)."""

    target: str
    method: str = "GET"
    body: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    modulo: int = 1_000_000_000


def fire(server: Measured, url: str, shot: Shot, token: str, *, seconds: float, connections: int, run: str) -> Result:
    """Load one server for `seconds`; raises when wrk is absent."""
    wrk = shutil.which("wrk")
    if wrk is None:
        raise SystemExit("bench: wrk is not installed (Debian: apt-get install wrk)")
    headers = {"Authorization": f"Bearer {token}", **dict(shot.headers)}
    lua_headers = "{" + ", ".join(f'["{k}"]="{v}"' for k, v in headers.items()) + "}"
    script = (
        _SCRIPT.replace("{run}", run)
        .replace("{target}", shot.target)
        .replace("{modulo}", str(shot.modulo))
        .replace("{body}", shot.body)
        .replace("{method}", shot.method)
        .replace("{headers}", lua_headers)
    )
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        command = [wrk, "-t1", f"-c{connections}", f"-d{seconds:g}s", "--latency", "-s", file.name, url]
        before = server.cpu()
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        spent = server.cpu() - before
    return _parse(output, spent)


def _parse(output: str, spent: float) -> Result:
    requests = int(_find(r"(\d+) requests in", output))
    failed = re.search(r"Non-2xx or 3xx responses: (\d+)", output)
    socket_errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", output)
    errors = int(failed[1]) if failed else 0
    if socket_errors:
        errors += sum(int(x) for x in socket_errors.groups())
    return Result(
        requests,
        float(_find(r"Requests/sec:\s+([\d.]+)", output)),
        _seconds(_find(r"^\s+50%\s+(\S+)", output)),
        _seconds(_find(r"^\s+99%\s+(\S+)", output)),
        spent / max(requests, 1) * 1e6,
        errors,
    )


def _find(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        raise RuntimeError(f"wrk printed no {pattern!r}: {text}")
    return found[1]


def _seconds(text: str) -> float:
    number, unit = re.fullmatch(r"([\d.]+)(\D+)", text).groups()  # type: ignore[union-attr]
    return float(number) * _UNITS[unit]


def results_folder() -> Path:
    return Path(__file__).parent / "results"
