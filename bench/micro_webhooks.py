"""What webhooks cost a write: microseconds of our own CPU, for one that is called and does nothing, and for one that is not.

    python -m bench.micro_webhooks [--calls 2000]

Both plugins run in this process on a store in memory; the webhook is another process over TLS on a kept connection. Calls
follow one another, eight at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import datetime
import ipaddress
import json
import ssl
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from pathlib import Path
from typing import Any, cast

import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from bench import objects
from fastapi_core.admission.chain import AdmissionChain, Attributes
from fastapi_core.apis.allocation import ServiceAllocator
from fastapi_core.apis.resources import builtin
from fastapi_core.authz.base import AlwaysAllow
from fastapi_core.controlplane import bootstrap, gates
from fastapi_core.controlplane.resources import Resources
from fastapi_core.obs.catalog import Metrics
from fastapi_core.options.options import Options
from fastapi_core.request.context import RequestContext, User
from fastapi_core.rest.defaulting import apply_defaults
from fastapi_core.storage.cacher.cacher import Cacher
from fastapi_core.storage.factory import make_storage

TOGETHER = 8
USER = User("admin", "1", ("system:masters", "system:authenticated"))


def certificate(folder: Path) -> str:
    """A self-signed pair for 127.0.0.1 in `folder`; the certificate as a bundle."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "webhook")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "pair.pem").write_bytes(pem + secret)
    return b64encode(pem).decode()


class NoOp(asyncio.Protocol):
    """Allows everything."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.data = b""

    def data_received(self, data: bytes) -> None:
        self.data += data
        head, found, body = self.data.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if len(body) < length:
            return
        self.data = body[length:]
        uid = json.loads(body[:length])["request"]["uid"]
        told = {
            "kind": "AdmissionReview",
            "apiVersion": "admission.k8s.io/v1",
            "response": {"uid": uid, "allowed": True},
        }
        text = json.dumps(told).encode()
        self.transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(text) + text
        )


async def _webhook(folder: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Path(folder) / "pair.pem")
    server = await asyncio.get_running_loop().create_server(NoOp, "127.0.0.1", 0, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def _chain() -> tuple[AdmissionChain, Resources]:
    storage = make_storage(None)
    await storage.open()
    cacher = Cacher(storage)
    nothing = cast(Any, None)
    resources = Resources(
        builtin(), storage, cacher, event_ttl=3600.0, allocator=ServiceAllocator(), issuer=nothing, upstreams=nothing
    )
    await cacher.open()
    await bootstrap.ensure(resources.namespaces, {"metadata": {"name": objects.NAMESPACE}})
    return gates.chain(Options(), resources, AlwaysAllow(), Metrics()), resources


async def _spent(chain: AdmissionChain, resources: Resources, plural: str, tree: objects.Tree, calls: int) -> float:
    """Microseconds of both phases of a create."""
    definition = next(d for d in resources.definitions if (d.group, d.plural) == ("", plural))
    apply_defaults(definition, tree)
    trees = [copy.deepcopy(tree) for _ in range(calls)]

    async def worker() -> None:
        while trees:
            context = RequestContext(cast(Any, None))
            context.user = USER
            item = trees.pop()
            attributes = Attributes("CREATE", definition, "", objects.NAMESPACE, "x", item, None, False, context)
            await chain.mutate(attributes)
            await chain.validate(attributes)

    begin = time.process_time()
    await asyncio.gather(*(worker() for _ in range(TOGETHER)))
    return (time.process_time() - begin) / calls * 1e6


def _configuration(kind: str, port: int, bundle: str, *resources: str) -> objects.Tree:
    rule = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": list(resources)}
    hook = {
        "name": "noop.example.test",
        "clientConfig": {"url": f"https://127.0.0.1:{port}/", "caBundle": bundle},
        "rules": [rule], "matchPolicy": "Equivalent", "failurePolicy": "Fail", "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "timeoutSeconds": 10,
    }  # fmt: skip
    head = {"kind": f"{kind}WebhookConfiguration", "apiVersion": "admissionregistration.k8s.io/v1"}
    return {**head, "metadata": {"name": "noop"}, "webhooks": [hook]}


async def _measure(port: int, bundle: str, calls: int) -> dict[str, float]:
    found: dict[str, float] = {}
    for kind in ("Validating", "Mutating"):
        chain, resources = await _chain()
        trees = {"configmaps": objects.configmap("x"), "pods": objects.pod("x")}
        trees["pods"]["spec"]["automountServiceAccountToken"] = False
        account = {"metadata": {"name": "default", "namespace": objects.NAMESPACE}}
        await bootstrap.ensure(resources.stores["/registry/serviceaccounts/"], account)
        before = {p: min([await _spent(chain, resources, p, t, calls) for _ in range(3)]) for p, t in trees.items()}
        store = resources.stores[f"/registry/{kind.lower()}webhookconfigurations/"]
        await bootstrap.ensure(store, _configuration(kind, port, bundle, "secrets"))
        other = min([await _spent(chain, resources, "configmaps", trees["configmaps"], calls) for _ in range(3)])
        found[f"{kind.lower()}, not matched"] = other - before["configmaps"]
        current = store.get("", "noop")
        tree = {**current.tree(), "webhooks": _configuration(kind, port, bundle, "configmaps", "pods")["webhooks"]}
        await store.update(current, tree)
        for plural, tree in trees.items():
            spent = min([await _spent(chain, resources, plural, tree, calls) for _ in range(3)])
            found[f"{kind.lower()}, no-op, {plural}"] = spent - before[plural]
        await chain.close()
        await resources.cacher.close()
        await resources.storage.close()
    return found


def measure(calls: int = 2000) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="fastapi-core-bench-") as folder:
        bundle = certificate(Path(folder))
        command = [sys.executable, "-m", "bench.micro_webhooks", "--serve", folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as webhook:
            assert webhook.stdout is not None
            try:
                return uvloop.run(_measure(int(webhook.stdout.readline()), bundle, calls))
            finally:
                webhook.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        uvloop.run(_webhook(options.serve))
        return
    for name, spent in measure(options.calls).items():
        print(f"{name:32} {spent:7.1f} us")


if __name__ == "__main__":
    main()
