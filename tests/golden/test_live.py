"""The live half of the recordings: pytest files over scripted webhook servers, run as they are against a server."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fastapi_core.testing.server import RunningServer
from tests.fixtures.server import TOKENS

RECORDINGS = Path(__file__).resolve().parents[3] / "shared" / "golden"
AREAS = ("webhooks", "aggregation")


@pytest.mark.golden
@pytest.mark.timeout(600)
@pytest.mark.parametrize("area", AREAS)
def test_live(area: str, server: RunningServer, tmp_path: Path) -> None:
    if not (RECORDINGS / area).is_dir():
        pytest.skip("recordings of the reference are not here")
    tokens = ["--token", "admin=admintoken", "--token", "alice=usertoken"]
    if area == "aggregation":
        _aggregation(tmp_path, tokens)
        return
    _run(area, server.url, tokens)


def _aggregation(tmp_path: Path, tokens: list[str]) -> None:
    """With the certificate of a front proxy, and endpoints routed to for the cases about them."""
    ca, pair = front_proxy(tmp_path)
    flags = [
        "--service-cluster-ip-range=10.0.0.0/24",
        f"--requestheader-client-ca-file={ca}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={pair}",
        f"--proxy-client-key-file={pair}",
    ]
    for routing in (False, True):
        more = [f"--enable-aggregator-routing={str(routing).lower()}"]
        running = RunningServer(tmp_path / str(routing), flags=[*flags, *more], tokens=TOKENS)
        try:
            _run("aggregation/test_routing.py" if routing else "aggregation", running.url, tokens, routing=routing)
        finally:
            assert running.stop() == 0


def front_proxy(folder: Path) -> tuple[str, str]:
    """A CA, and certificate and key of `front-proxy-client` in one file."""
    now = datetime.datetime.now(datetime.UTC)
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    paths = []
    for name, key, authority in (("front-proxy-ca", keys[0], True), ("front-proxy-client", keys[1], False)):
        made = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "front-proxy-ca")]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .sign(keys[0], hashes.SHA256())
        )
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file = folder / f"{name}.pem"
        file.write_bytes(made.public_bytes(serialization.Encoding.PEM) + (b"" if authority else secret))
        paths.append(str(file))
    return paths[0], paths[1]


def _run(area: str, url: str, tokens: list[str], *, routing: bool = False) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", area, "--url", url, *tokens]
    environment = {**os.environ, "GOLDEN_ROUTING": "1" if routing else "0"}
    done = subprocess.run(
        command, cwd=RECORDINGS, env=environment, capture_output=True, text=True, timeout=580, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:]
