"""Install the wheel and the sdist of a folder into empty environments and serve one request from each.

python tools/smoke.py DIST
"""

from __future__ import annotations

import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
import urllib.request
import venv
from pathlib import Path


def install(package: Path, folder: Path) -> Path:
    """An environment with only `package`; the sdist compiles on the way."""
    venv.create(folder, with_pip=True)
    subprocess.run(
        [folder / "bin/pip", "install", "-q", "--disable-pip-version-check", package.resolve()], check=True, cwd=folder
    )
    return folder / "bin/fastapi-core"


def serve_once(command: Path, folder: Path) -> None:
    """Start the server on a free port, read /version and the default namespace with the admin's certificate, stop it."""
    data = folder / "data"
    process = subprocess.Popen(
        [command, "serve", "--data-dir", data, "--secure-port", "0", "--bind-address", "127.0.0.1"],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        env={"PATH": os.environ["PATH"]},
    )
    try:
        assert process.stdout is not None
        port = ""
        for line in process.stdout:
            found = re.search(r"https://127\.0\.0\.1:(\d+)", line)
            if found:
                port = found[1]
            if "KUBECONFIG" in line:
                break
        context = ssl.create_default_context(cafile=str(data / "pki/ca.crt"))
        context.load_cert_chain(data / "pki/admin.crt", data / "pki/admin.key")
        for path, field, value in (("/version", "major", "1"), ("/api/v1/namespaces/default", "kind", "Namespace")):
            with urllib.request.urlopen(f"https://127.0.0.1:{port}{path}", context=context, timeout=10) as answer:
                assert json.load(answer)[field] == value
    finally:
        process.terminate()
        assert process.wait(20) == 0


def main() -> None:
    dist = Path(sys.argv[1])
    for package in (*dist.glob("*.whl"), *dist.glob("*.tar.gz")):
        with tempfile.TemporaryDirectory() as folder:
            serve_once(install(package, Path(folder) / "env"), Path(folder))
        print(f"{package.name}: installs and serves")


if __name__ == "__main__":
    main()
