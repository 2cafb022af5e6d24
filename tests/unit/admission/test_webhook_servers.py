"""Where webhooks are, who we are to them, and when their plugins come to life."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any, cast

import pytest

from fastapi_core.admission.configuration import ConfigurationError, Source
from fastapi_core.admission.webhooks import credentials, gate
from fastapi_core.admission.webhooks.caller import Caller, CallError
from fastapi_core.admission.webhooks.credentials import NOBODY, Credentials
from fastapi_core.authn.outbound import Identity
from fastapi_core.errors import APIError
from tests.fixtures.admission import World, handled, request
from tests.fixtures.pki import authority
from tests.fixtures.rude import RudeServer, answer, keeping, review
from tests.fixtures.webhooks import hook, resolver

Tree = dict[str, Any]


# Credentials


def test_users_stand_for_servers() -> None:
    names = ("exact.ns.svc:8443", "*.ns.svc:8443", "*.svc:8443", "plain.ns.svc", "*.example.test", "*", "mine")
    users = {name: Identity(token_file=name) for name in names}
    known = Credentials(users, "mine")
    for address, name in (
        ("exact.ns.svc:8443", "exact.ns.svc:8443"),
        ("other.ns.svc:8443", "*.ns.svc:8443"),
        ("a.b.svc:8443", "*.svc:8443"),
        ("plain.ns.svc:443", "plain.ns.svc"),
        ("a.example.test:443", "*.example.test"),
        ("a.example.test:444", "*"),
    ):
        assert known.for_server(address).token_file == name, address
    del users["*"]
    assert known.for_server("x:1").token_file == "mine"
    assert Credentials().for_server("x:1") is NOBODY


def configuration(path: str, **more: Any) -> Source:
    tree = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration", "kubeConfigFile": path}
    return Source({**tree, **more}, "here", "")


def test_the_configuration_names_a_kubeconfig(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    users = [{"name": "*.svc", "user": {"token": "t"}}, {"name": "*", "user": {"username": "u", "password": "p"}}]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "users": users}))
    known = credentials.read(configuration(str(file)))
    assert known.for_server("s.ns.svc:443").headers == ((b"authorization", b"Bearer t"),)
    assert known.for_server("h:1").headers == ((b"authorization", b"Basic dTpw"),)
    old = configuration(str(file), apiVersion="apiserver.config.k8s.io/v1alpha1", kind="WebhookAdmission")
    assert credentials.read(old).users
    assert credentials.read(Source({}, "here", "")) == Credentials()
    for source, text in (
        (configuration("relative"), "must be an absolute file path"),
        (configuration(str(file), more=1), 'unknown field "more"'),
        (configuration(str(file), kind="Other"), "use kind WebhookAdmissionConfiguration"),
    ):
        with pytest.raises(ConfigurationError, match=text):
            credentials.read(source)
    file.write_text(json.dumps({"users": [{"name": "*", "user": {"exec": {"command": "x"}}}]}))
    with pytest.raises(ConfigurationError, match="not supported"):
        credentials.read(configuration(str(file)))


# Calls


async def test_what_a_webhook_is_sent(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A connection that is closed as soon as it is used again may have been closed for being idle.
    monkeypatch.setattr("fastapi_core.admission.webhooks.letter._FRESH", 0.0)
    server = RudeServer(tmp_path / "rude")
    try:
        server.behave = keeping
        token = tmp_path / "token"
        token.write_text("one\n")
        users = {f"127.0.0.1:{server.port}": Identity(token_file=str(token))}
        caller = Caller(Credentials(users), resolver(world))
        config = {"url": f"{server.url}/a b/", "caBundle": server.bundle}
        known = caller.server(config)
        assert caller.server(dict(config)) is known
        body = json.dumps({"kind": "K", "apiVersion": "v", "request": {"uid": "u"}}).encode()
        for text in ("one", "two"):
            token.write_text(text)
            document = await caller.ask(known, body, 5.0, None)
            assert document["response"]["uid"] == "u"
        assert (server.connections, server.asked) == (1, 2)
        first, second = (head.decode().lower() for head in server.heads)
        assert first.startswith("post /a%20b?timeout=5s http/1.1\r\n")
        assert f"host: 127.0.0.1:{server.port}\r\n" in first
        assert "authorization: bearer one" in first
        assert "authorization: bearer two" in second
        server.behave = lambda connection, body: server.released.wait(10) and None
        with pytest.raises(APIError, match="request did not complete within the allotted timeout"):
            await caller.ask(known, body, 5.0, 0.05)
        with pytest.raises(CallError, match=r"timeout=1s\": context deadline exceeded"):
            await caller.ask(known, body, 0.05, 5.0)
        caller.close()
    finally:
        server.close()


async def test_a_client_certificate_is_shown(world: World, tmp_path: Path) -> None:
    clients = authority("clients")
    pair = clients.issue("apiserver")
    certificate, key = (Path(path).read_bytes() for path in pair.write(tmp_path, "client"))
    server = RudeServer(tmp_path / "rude", clients=clients)
    try:
        body = json.dumps({"kind": "K", "apiVersion": "v", "request": {"uid": "u"}}).encode()
        config = {"url": server.url, "caBundle": server.bundle}
        nobody = Caller(Credentials(), resolver(world))
        with pytest.raises(CallError):
            await nobody.ask(nobody.server(config), body, 5.0, None)
        known = Caller(Credentials({"*": Identity(pair=(certificate, key))}), resolver(world))
        server.behave = lambda connection, body: connection.sendall(answer(review(body)))
        assert (await known.ask(known.server(config), body, 5.0, None))["kind"] == "K"
    finally:
        server.close()


async def test_servers_that_cannot_be(world: World) -> None:
    caller = Caller(Credentials(), resolver(world))
    for config, text in (
        ({}, "must have either service or URL"),
        ({"url": "https://h", "caBundle": b64encode(b"no PEM").decode()}, "unable to load root certificates"),
    ):
        with pytest.raises(CallError, match=text):
            caller.server(config)
    made = caller.server({"service": {"namespace": "ns", "name": "s", "path": "/p"}})
    assert (made.path, made.authority, made.host) == ("/p", "s.ns.svc:443", "s.ns.svc")
    with pytest.raises(CallError, match=r'Post "https://s.ns.svc:443/p\?timeout=5s": service "s" not found'):
        await caller.ask(made, b"", 5.0, None)


# The plugins in the chain


async def test_nothing_is_made_before_the_first_configuration(world: World) -> None:
    made: list[str] = []

    class Real:
        def handles(self, *args: Any) -> bool:
            made.append("asked")
            return True

    group = "admissionregistration.k8s.io"
    plugin = gate.ValidatingAdmissionWebhook(world.see("validatingwebhookconfigurations", group), cast(Any, Real))
    told: list[str] = []
    plugin.follow(lambda: told.append("changed"))
    assert not handled(plugin, request("configmaps", {}))
    assert made == []
    await world.add("validatingwebhookconfigurations", "c", group=group, webhooks=[hook("/a")])
    assert told == ["changed"]
    assert handled(plugin, request("configmaps", {}))
    assert made == ["asked"]
