"""An extension server made by hand, as a process of its own: the generic server, delegation, endpoints that tell who was asked.

Its answers show what no extension sees of a connection: the certificate of the front server.

`--tag` is told in every answer. It prints the address it serves on. SIGHUP looks at all files at once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import uvloop

from fastapi_core._ext.router import Router
from fastapi_core.extension.certificates import serving_files
from fastapi_core.extension.delegated import connect, options
from fastapi_core.extension.description import Description, GroupVersion
from fastapi_core.http.exchange import Answer, Response, Stream, StreamWriter
from fastapi_core.obs import logs
from fastapi_core.obs.catalog import Metrics
from fastapi_core.obs.files import FileWatcher
from fastapi_core.options.flags import flags_of, parse
from fastapi_core.options.groups import Generic
from fastapi_core.options.serving import Serving
from fastapi_core.request.context import RequestContext
from fastapi_core.server.config import ServerConfig, TLSFiles
from fastapi_core.server.generic import GenericServer

JSON = [(b"Content-Type", b"application/json")]
GROUPS = {"serving": Serving, "delegated": options.DelegatedOptions, "generic": Generic}


class Things:
    """The endpoints of one group version."""

    def __init__(self, group: str, tag: str) -> None:
        self.group, self.tag = group, tag
        self.seen: list[str] = []
        self.writers: set[StreamWriter] = set()

    def routes(self) -> list[Any]:
        root = f"/apis/{self.group}/v1"
        return [
            (f"{root}{{/}}", {"GET": self.document}),
            (f"{root}/things{{/}}", {"GET": self.collection, "POST": self.thing}),
            (f"{root}/things/{{name}}{{/}}", {"GET": self.thing}),
            ("/seen", {"GET": self.tell}),
            ("/readyz", {"GET": lambda ctx: Response(200, [], b"ok")}),
        ]

    def document(self, ctx: RequestContext) -> Answer:
        resource = {"name": "things", "singularName": "thing", "kind": "Thing", "namespaced": False}
        resources = [{**resource, "verbs": ["get", "list", "watch", "create"]}]
        tree = {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{self.group}/v1",
            "resources": resources,
        }
        return Response(200, JSON, json.dumps(tree).encode())

    async def thing(self, ctx: RequestContext) -> Answer:
        self.seen.append(f"{ctx.request.method} {ctx.info.name} {ctx.user.name}")
        if ctx.info.name == "slow":
            await asyncio.sleep(0.05)
        return Response(200, JSON, json.dumps(self.told(ctx)).encode())

    def told(self, ctx: RequestContext) -> dict[str, Any]:
        user, connection = ctx.user, ctx.request.connection
        return {
            "apiVersion": f"{self.group}/v1", "kind": "Thing", "server": self.tag, "user": user.name, "groups": list(user.groups),
            "extra": {key: list(values) for key, values in user.extra.items()},
            "anchors": len(connection.peer_chain),
            "peer": (connection.peer_certificate or b"")[-16:].hex(),
        }  # fmt: skip

    def collection(self, ctx: RequestContext) -> Answer:
        if "watch" not in ctx.request.query:
            return Response(200, JSON, json.dumps({"kind": "ThingList", "apiVersion": f"{self.group}/v1"}).encode())

        def start(writer: StreamWriter) -> None:
            self.writers.add(writer)
            writer.on_close(lambda: self.writers.discard(writer))
            writer.write(json.dumps({"type": "ADDED", "object": self.told(ctx)}).encode() + b"\n")

        return Stream(200, JSON, start)

    def tell(self, ctx: RequestContext) -> Answer:
        return Response(200, JSON, json.dumps(self.seen).encode())

    async def end(self) -> None:
        for writer in tuple(self.writers):
            writer.finish()


async def serve(arguments: argparse.Namespace, flags: list[str]) -> None:
    parsed = parse(flags, flags_of(GROUPS), {})
    assert not parsed.errors, parsed.errors
    serving, delegation, generic = Serving(), options.DelegatedOptions(), Generic()
    groups: dict[str, Any] = {"serving": serving, "delegated": delegation, "generic": generic}
    table = flags_of(GROUPS)
    for name, value in parsed.values.items():
        setattr(groups[table[name].group], table[name].attribute, value)
    about = Description(arguments.name, "default", (GroupVersion(arguments.group, "v1"),), ())
    files, metrics = FileWatcher(), Metrics()
    delegated = await connect(delegation, agent=arguments.name, files=files, metrics=metrics)
    certificate = serving_files(serving, about.service_names(), arguments.data_dir)
    things = Things(arguments.group, arguments.tag)
    router: Router[Any] = Router(things.routes())
    config = ServerConfig(
        authenticator=delegated.authenticator,
        authorizer=delegated.authorizer,
        metrics=metrics,
        files=files,
        tls=TLSFiles(certificate.cert, certificate.key, delegated.client_ca_files, authorities=delegated.authorities),
        bind_address=serving.bind_address,
        port=serving.secure_port,
        shutdown_delay=generic.shutdown_delay_duration,
    )
    server = GenericServer(config, lambda: router, known_group=lambda group: group == arguments.group)
    delegated.install(server)
    server.on_shutdown(things.end)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGHUP, files.check)
    await server.start()
    print(f"serving on {server.port}", flush=True)
    await stop.wait()
    await server.stop()


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("name", "group", "tag", "data-dir"):
        parser.add_argument(f"--{name}", required=True)
    arguments, flags = parser.parse_known_args()
    Path(arguments.data_dir).mkdir(exist_ok=True)
    logs.capture()
    logs.SINK.start()
    try:
        uvloop.run(serve(arguments, flags))
    finally:
        logs.SINK.stop()


if __name__ == "__main__":
    main()
