"""Cost of the filter chain alone: microseconds a request, with an endpoint that answers at once from memory.

    python -m bench.micro_chain [--requests 200000]

The request object is a stand-in with the attributes of `_ext.http1.Request`; everything behind it is real.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable
from typing import Any

from fastapi_core._ext.router import Router
from fastapi_core.audit.auditor import Auditor
from fastapi_core.audit.log import LogBackend
from fastapi_core.audit.logfile import LogFile, Rotation
from fastapi_core.audit.policy import Level, Policy, Rule, Ruling
from fastapi_core.authn.base import Anonymous, Union
from fastapi_core.authn.tokens import StaticTokens
from fastapi_core.authn.x509 import ClientCertificates
from fastapi_core.authz.base import AlwaysAllow
from fastapi_core.filters.chain import ChainConfig, build_chains
from fastapi_core.filters.limits import ShutdownGate
from fastapi_core.http.exchange import Answer, Header, Response
from fastapi_core.obs.catalog import Metrics
from fastapi_core.request.context import Endpoint, RequestContext, User

#: Requests between two turns of the loop.
RUN = 500
_BODY = b"x" * 1024
_JSON: Header = (b"Content-Type", b"application/json")


class Connection:
    peer = "127.0.0.1:40000"
    peer_certificate: bytes | None = None
    memo: dict[Any, Any] = {}  # noqa: RUF012 - one connection for the whole run


class Request:
    """What the chain reads of a request."""

    def __init__(self, method: str, target: str, headers: dict[bytes, bytes]) -> None:
        self.method = method
        self.target = target
        self.path, _, self.query = target.partition("?")
        self.header = headers.get
        self.connection = Connection()
        self.received = time.time()


def immediate(ctx: RequestContext) -> Answer:
    return Response(200, [_JSON], _BODY)


async def _later() -> Answer:
    return Response(200, [_JSON], _BODY)


def waiting(ctx: RequestContext) -> Awaitable[Answer]:
    return _later()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=50_000)
    count = parser.parse_args().requests
    pattern = "/api/v1/namespaces/{namespace}/configmaps/{name}{/}"
    router: Router[Endpoint] = Router([(pattern, {"GET": immediate, "PUT": waiting})])
    headers = {b"authorization": b"Bearer secret", b"accept": b"application/json", b"user-agent": b"bench/1"}
    target = "/api/v1/namespaces/default/configmaps/one"
    get, put = Request("GET", target, headers), Request("PUT", target, headers)

    async def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            metrics = Metrics()
            backend = LogBackend(LogFile(f"{folder}/audit.log", Rotation()), metrics.audit_errors)
            auditor = Auditor(Policy((Rule(Ruling(Level.METADATA)),)), backend, metrics)
            for name, audit in (("", None), (", audited", auditor)):
                chain = build_chains(config(router, metrics, audit)).serve
                await measure(f"GET, at once{name}", chain, get, count, waiting=False)
                await measure(f"PUT, waiting{name}", chain, put, count, waiting=True)
            await backend.close()
            print(f"audit events lost: {sum(c.value for c in metrics.audit_errors.children.values()):.0f}")

    asyncio.run(run())


def config(router: Router[Endpoint], metrics: Metrics, audit: Auditor | None) -> ChainConfig:
    return ChainConfig(
        authenticator=Union(
            [ClientCertificates(), StaticTokens({"secret": User("admin", groups=("system:masters",))})], Anonymous()
        ),
        authorizer=AlwaysAllow(),
        metrics=metrics,
        router=lambda: router,
        known_group=lambda group: True,
        gate=ShutdownGate(),
        audit=audit,
    )


async def measure(name: str, chain: Any, request: Request, count: int, *, waiting: bool) -> None:
    """CPU time of the loop's thread, the best of many short runs; the audit's thread gets its turn in between."""
    best = float("inf")
    for _ in range(count // RUN):
        begin = time.thread_time()
        for _ in range(RUN):
            answer = chain(request)
            if waiting:
                await answer
        best = min(best, (time.thread_time() - begin) / RUN)
        await asyncio.sleep(0.02)
    print(f"{name}: {best * 1e6:.2f} us a request")


if __name__ == "__main__":
    main()
