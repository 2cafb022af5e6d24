"""Cost of the filter chain alone: microseconds a request, with an endpoint that answers at once from memory; for an
exempt user and one who is not, with the two limits, with priority and fairness, and with audit too.

    python -m bench.micro_chain [--requests 20000]

The request object is a stand-in with the attributes of `_ext.http1.Request`; everything behind it is real.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

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
from fastapi_core.flow.bootstrap import LEVELS, SCHEMAS, Bootstrap
from fastapi_core.flow.control import Control
from fastapi_core.flow.estimate import Estimator
from fastapi_core.flow.rules import level_spec, schema_spec
from fastapi_core.http.exchange import Answer, Header, Response
from fastapi_core.obs.catalog import Metrics
from fastapi_core.request.context import Endpoint, RequestContext, User

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
        self.headers = list(headers.items())
        self.header = headers.get
        self.headers = list(headers.items())
        self.body = b""
        self.connection = Connection()
        self.received = time.time()


def immediate(ctx: RequestContext) -> Answer:
    return Response(200, [_JSON], _BODY)


async def _later() -> Answer:
    return Response(200, [_JSON], _BODY)


def waiting(ctx: RequestContext) -> Awaitable[Answer]:
    return _later()


USERS = {"secret": User("admin", groups=("system:masters",)), "plain": User("alice", groups=("system:authenticated",))}
#: Few requests a turn: what is written down in it is written out before the next, as in a server.
BATCH = 100
Spec = TypeVar("Spec")


def _specs(objects: tuple[Bootstrap, ...], parse: Callable[[Any], Spec | None]) -> list[Spec]:
    return [spec for one in objects if (spec := parse(one.tree)) is not None]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=20_000)
    count = parser.parse_args().requests
    pattern = "/api/v1/namespaces/{namespace}/configmaps/{name}{/}"
    router: Router[Endpoint] = Router([(pattern, {"GET": immediate, "PUT": waiting})])

    def chain_of(fair: bool, metrics: Metrics, auditor: Auditor | None) -> Any:
        control = Control(600, metrics.registry)
        control.digest(_specs(LEVELS, level_spec), _specs(SCHEMAS, schema_spec))
        config = ChainConfig(
            authenticator=Union([ClientCertificates(), StaticTokens(USERS)], Anonymous()),
            authorizer=AlwaysAllow(),
            metrics=metrics,
            router=lambda: router,
            known_group=lambda group: True,
            gate=ShutdownGate(),
            audit=auditor,
            flow=(control, Estimator(lambda group, resource: None, control.watches)) if fair else None,
        )
        return build_chains(config).serve

    target = "/api/v1/namespaces/default/configmaps/one"

    async def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            cases: dict[str, tuple[Any, Request]] = {}
            backends: list[LogBackend] = []
            for fair, audited, name in (
                (False, False, "max-in-flight"),
                (True, False, "priority and fairness"),
                (True, True, "priority and fairness, audited"),
            ):
                metrics = Metrics()
                backends.append(LogBackend(LogFile(f"{folder}/audit.log", Rotation()), metrics.audit_errors))
                auditor = Auditor(Policy((Rule(Ruling(Level.METADATA)),)), backends[-1], metrics) if audited else None
                chain = chain_of(fair, metrics, auditor)
                for token, user in USERS.items():
                    headers = {b"authorization": f"Bearer {token}".encode(), b"accept": b"application/json"}
                    for method in ("GET", "PUT"):
                        cases[f"{method} of {user.name}, {name}"] = chain, Request(method, target, headers)
            await measure(cases, max(1, count // BATCH))
            for backend in backends:
                await backend.close()

    asyncio.run(run())


async def measure(cases: dict[str, tuple[Any, Request]], rounds: int) -> None:
    """In turns and the best of many, so that what else the machine does falls on all alike; the loop's thread alone."""
    best = dict.fromkeys(cases, float("inf"))
    for _ in range(rounds):
        for name, (chain, request) in cases.items():
            request.received = time.time()
            begin = time.thread_time()
            for _ in range(BATCH):
                answer = chain(request)
                if request.method == "PUT":
                    answer = await answer
            best[name] = min(best[name], (time.thread_time() - begin) / BATCH)
            assert answer.status == 200, answer.body
            # The thread of the audit writes what has been taken.
            await asyncio.sleep(0.015 if "audited" in name else 0)
    for name, seconds in best.items():
        print(f"{name}: {seconds * 1e6:.2f} us a request")


if __name__ == "__main__":
    main()
