"""Cost of the filter chain alone: microseconds a request, with an endpoint that answers at once from memory; for an
exempt user and one who is not, with the two limits, with priority and fairness, and with audit too.

    python -m bench.micro_chain [--requests 50000]

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
#: Requests between two turns of the loop, in which the thread of the audit writes.
RUN = 500
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
        self.connection = Connection()
        self.received = time.time()


def immediate(ctx: RequestContext) -> Answer:
    return Response(200, [_JSON], _BODY)


async def _later() -> Answer:
    return Response(200, [_JSON], _BODY)


def waiting(ctx: RequestContext) -> Awaitable[Answer]:
    return _later()


USERS = {"secret": User("admin", groups=("system:masters",)), "plain": User("alice", groups=("system:authenticated",))}
Spec = TypeVar("Spec")


def _specs(objects: tuple[Bootstrap, ...], parse: Callable[[Any], Spec | None]) -> list[Spec]:
    return [spec for one in objects if (spec := parse(one.tree)) is not None]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=50_000)
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

    async def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            for fair, audited, name in (
                (False, False, "max-in-flight"),
                (True, False, "priority and fairness"),
                (True, True, "priority and fairness, audited"),
            ):
                metrics = Metrics()
                backend = LogBackend(LogFile(f"{folder}/audit.log", Rotation()), metrics.audit_errors)
                auditor = Auditor(Policy((Rule(Ruling(Level.METADATA)),)), backend, metrics) if audited else None
                await measure(chain_of(fair, metrics, auditor), name, count)
                await backend.close()

    asyncio.run(run())


async def measure(chain: Any, name: str, count: int) -> None:
    """CPU time of the loop's thread, the best of many short runs."""
    for token, user in USERS.items():
        headers = {b"authorization": f"Bearer {token}".encode(), b"accept": b"application/json"}
        for method in ("GET", "PUT"):
            best = float("inf")
            request = Request(method, "/api/v1/namespaces/default/configmaps/one", headers)
            for _ in range(count // RUN):
                begin = time.thread_time()
                for _ in range(RUN):
                    answer = chain(request)
                    if method == "PUT":
                        answer = await answer
                best = min(best, (time.thread_time() - begin) / RUN)
                assert answer.status == 200, answer.body
                await asyncio.sleep(0.01)
            print(f"{method} of {user.name}, {name}: {best * 1e6:.2f} us a request")


if __name__ == "__main__":
    main()
