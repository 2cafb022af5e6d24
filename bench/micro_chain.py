"""Cost of the filter chain alone: microseconds a request, with an endpoint that answers at once from memory; for an
exempt user and one who is not, with the two limits and with priority and fairness.

    python -m bench.micro_chain [--requests 200000]

The request object is a stand-in with the attributes of `_ext.http1.Request`; everything behind it is real.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from fastapi_core._ext.router import Router
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
    parser.add_argument("--requests", type=int, default=200_000)
    count = parser.parse_args().requests
    pattern = "/api/v1/namespaces/{namespace}/configmaps/{name}{/}"
    router: Router[Endpoint] = Router([(pattern, {"GET": immediate, "PUT": waiting})])

    def chain_of(fair: bool) -> Any:
        metrics = Metrics()
        control = Control(600, metrics.registry)
        control.digest(_specs(LEVELS, level_spec), _specs(SCHEMAS, schema_spec))
        config = ChainConfig(
            authenticator=Union([ClientCertificates(), StaticTokens(USERS)], Anonymous()),
            authorizer=AlwaysAllow(),
            metrics=metrics,
            router=lambda: router,
            known_group=lambda group: True,
            gate=ShutdownGate(),
            flow=(control, Estimator(lambda group, resource: None, control.watches)) if fair else None,
        )
        return build_chains(config).serve

    target = "/api/v1/namespaces/default/configmaps/one"

    async def run() -> None:
        for fair, limits in ((False, "max-in-flight"), (True, "priority and fairness")):
            chain = chain_of(fair)
            for token, user in USERS.items():
                headers = {b"authorization": f"Bearer {token}".encode(), b"accept": b"application/json"}
                for method in ("GET", "PUT"):
                    best = float("inf")
                    request = Request(method, target, headers)
                    for _ in range(5):
                        begin = time.process_time()
                        for _ in range(count // 5):
                            answer = chain(request)
                            if method == "PUT":
                                await answer
                        best = min(best, (time.process_time() - begin) / (count // 5))
                    print(f"{method} of {user.name}, {limits}: {best * 1e6:.2f} us a request")

    asyncio.run(run())


if __name__ == "__main__":
    main()
