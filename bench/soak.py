"""`make soak`: kill -9 rounds on one data directory for as long as asked, then the numbers.

    python -m bench.soak [--seconds N] [--seed N] [--data-dir DIR] [--wide N]

Each round writes under load, kills the server with SIGKILL, restarts it and checks every acknowledged write, every
watch event and every revision (`tests/adversity/killing.py`). The seed is printed: the load is the same for the same
seed, the moment of the kill is the machine's. `--wide N` runs the other tests of adversity that have rounds first, N times
as long as `make test` does.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.adversity import killing

ROUNDS = 4
WIDE = ("test_definition_churn", "test_quota_kill", "test_stalled_watchers")


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.soak")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--data-dir", type=Path, help="keep the stores here (default: a temporary directory)")
    parser.add_argument("--wide", type=int, default=0, metavar="N", help="other adversities first, N times as long")
    arguments = parser.parse_args()
    if arguments.wide:
        command = [sys.executable, "-m", "pytest", "-q", *(f"tests/adversity/{name}.py" for name in WIDE)]
        subprocess.run(command, env={**os.environ, "FASTAPI_CORE_SOAK": str(arguments.wide)}, check=True)
    home = arguments.data_dir or Path(tempfile.mkdtemp(prefix="fastapi-core-soak-"))
    print(f"seed {arguments.seed}, stores in {home}", flush=True)
    began = time.monotonic()
    rounds = writes = events = 0
    while time.monotonic() - began < arguments.seconds:
        store = home / f"store-{rounds // ROUNDS}"
        ledger = killing.run(store, ROUNDS, arguments.seed + rounds)
        rounds += ROUNDS
        writes += ledger.writes
        events += len(ledger.seen)
        shutil.rmtree(store)
        print(f"{rounds} rounds, {writes} acknowledged writes, {events} events: all there", flush=True)
    if arguments.data_dir is None:
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
