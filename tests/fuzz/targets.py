"""One entry per parser of bytes from outside: what it is given, what it may refuse with, what must hold when it does not.

Anything else that is raised, a broken promise or a time that is out of proportion is a finding.
"""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi_core._ext import http1, jsonscan, objects, reqinfo, router
from fastapi_core.authn import config as authn_config
from fastapi_core.authn import der, jws, oidc
from fastapi_core.authn.base import WrongCredential
from fastapi_core.authn.tokens import bearer_token, load_token_file
from fastapi_core.codec import decode, negotiate, protobuf, yaml
from fastapi_core.codec import json as json_codec
from fastapi_core.errors import APIError
from fastapi_core.meta import quantity, selectors
from fastapi_core.meta import time as times
from fastapi_core.patch import jsonpatch, merge, strategic
from fastapi_core.registry.store import decode_token, encode_token
from fastapi_core.rest import options
from fastapi_core.schema.tables import type_of

POD = type_of("core/v1.Pod")
TREE: dict[str, Any] = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"name": "a", "labels": {"app": "é"}, "finalizers": ["x/y"]},
    "spec": {
        "containers": [
            {"name": "c", "image": "i", "ports": [{"containerPort": 80, "protocol": "TCP"}], "env": [{"name": "E"}]},
            {"name": "d", "resources": {"limits": {"cpu": "100m", "memory": 1.5}}},
        ],
        "tolerations": [{"key": "k", "tolerationSeconds": 5}],
        "terminationGracePeriodSeconds": 30,
    },
}
BODY = json.dumps(TREE, separators=(",", ":")).encode()


@dataclass(frozen=True)
class Target:
    run: Callable[[bytes], object]
    seeds: tuple[bytes, ...]
    words: tuple[bytes, ...] = ()
    """What the mutator puts in."""


def text_of(data: bytes) -> str:
    return data.decode("latin-1")


def http_head(data: bytes) -> None:
    """In two parts the bytes must give the same requests as at once."""
    half = len(data) // 2
    assert half == 0 or _requests([data]) == _requests([data[:half], data[half:]])


def _requests(pieces: list[bytes]) -> tuple[list[tuple[str, str, bytes]], object]:
    parser = http1.RequestParser(http1.Limits(header=4096, body=4096))
    found = []
    refused: object = None
    try:
        for piece in pieces:
            parser.feed(piece)
            while (request := parser.next()) is not None:
                found.append((request.method, request.target, request.body))
                if not parser.keep_alive:
                    return found, "end"
    except http1.RefusedError as error:
        refused = error.status
    assert refused is None or refused in (400, 405, 408, 411, 413, 414, 417, 431, 501, 505)
    return found, refused


def request_info(data: bytes) -> None:
    method, _, target = text_of(data).partition(" ")
    path, _, query = target.partition("?")
    with contextlib.suppress(reqinfo.ParseError):
        info = reqinfo.parse(method, path, query)
        assert info.is_resource_request or not info.resource
    ROUTER.lookup(path)


ROUTER: router.Router[int] = router.Router(
    [
        ("/", {"GET": 1}),
        ("/api/v1/pods{/}", {"GET": 2}),
        ("/api/v1/namespaces/{namespace}/pods/{name}{/}", {"GET": 3}),
        ("/api/v1/namespaces/{namespace}/pods/{name}/proxy/{path...}", {"GET": 4}),
        ("/openapi/v3/{path...}", {"GET": 5}),
    ]
)


def list_query(data: bytes) -> None:
    with contextlib.suppress(APIError):
        options.list_options(text_of(data))
    with contextlib.suppress(APIError):
        options.write_options(text_of(data), "CreateOptions")
    with contextlib.suppress(APIError):
        options.delete_options_from_query(text_of(data))


def json_body(data: bytes) -> None:
    try:
        parsed = json_codec.parse(data)
    except decode.DecodeError as error:
        json_codec.unrecognized("Pod", error, data)
        return
    encoded = json_codec.encode(parsed.tree)
    assert json_codec.parse(encoded).tree == parsed.tree
    json_codec.encode_pretty(parsed.tree)


def scanned(data: bytes) -> None:
    """The scan for duplicate keys takes any bytes, valid JSON or not."""
    with contextlib.suppress(ValueError):
        jsonscan.duplicate_keys(data, 100)
    with contextlib.suppress(ValueError):
        jsonscan.inspect(data, 100)
    jsonscan.decode_key(data)


def typed_body(data: bytes, form: str) -> None:
    """What decodes is stable: decoding it again changes nothing."""
    try:
        decoded = decode.decode(POD, data, form)
    except decode.DecodeError:
        return
    encoded = json_codec.encode(decoded.tree)
    again = decode.decode(POD, encoded)
    assert json_codec.encode(again.tree) == encoded


def yaml_body(data: bytes) -> None:
    try:
        parsed = yaml.parse(data)
    except decode.DecodeError:
        return
    dumped = yaml.dump(parsed.tree)
    assert yaml.parse(dumped).tree == parsed.tree


def stored_object(data: bytes) -> None:
    try:
        obj = objects.CachedObject("/registry/pods/default/a", "default", "a", data, 7, 3)
    except ValueError:
        return
    assert obj.stored() == data.rstrip(b"\r\n")
    for read in (obj.metadata, obj.labels, obj.tree):
        with contextlib.suppress(ValueError):
            read()
    objects.list_document(b"[", [obj, obj.at_revision(9)], b"]", whole=True)


def label_selector(data: bytes) -> None:
    with contextlib.suppress(selectors.SelectorError):
        selectors.parse_labels(text_of(data))


def field_selector(data: bytes) -> None:
    with contextlib.suppress(selectors.SelectorError):
        selectors.parse_fields(text_of(data))


def quantity_text(data: bytes) -> None:
    try:
        canonical = quantity.canonical(text_of(data))
    except ValueError:
        return
    assert quantity.canonical(canonical) == canonical


def time_text(data: bytes) -> None:
    text = text_of(data)
    for read in (times.parse, times.parse_micro, times.parse_duration, times.canonical, times.canonical_micro):
        with contextlib.suppress(ValueError):
            read(text)
    with contextlib.suppress(ValueError):
        canonical = times.canonical(text)
        assert canonical is None or times.canonical(canonical) == canonical


def continue_token(data: bytes) -> None:
    try:
        revision, start = decode_token(text_of(data), "/registry/pods/")
    except APIError as error:
        if error.code not in (400, 410):
            raise
        return
    assert start.startswith("/registry/pods/")
    encode_token(revision, start, "/registry/pods/")


def patched(data: bytes, apply: Callable[[dict[str, Any], Any], Any]) -> None:
    """A patch is refused or gives a tree, and never changes what it was given."""
    try:
        patch = json_codec.parse(data).tree
    except decode.DecodeError:
        return
    before = copy.deepcopy(TREE)
    with contextlib.suppress(APIError):
        result = apply(TREE, patch)
        json_codec.encode(result)
    assert before == TREE


def protobuf_body(data: bytes) -> None:
    try:
        envelope = protobuf.open_envelope(data)
        tree = decode.from_protobuf(POD, envelope.message)
    except decode.DecodeError:
        return
    again = decode.from_protobuf(POD, protobuf.encode(POD, tree))
    assert json_codec.encode(again) == json_codec.encode(tree)


def headers(data: bytes) -> None:
    text = text_of(data)
    negotiate.negotiate(text)
    negotiate.content_type(text)
    bearer_token(data)
    with contextlib.suppress(ValueError):
        load_token_file(text)


HTTP = (
    b"GET /api/v1/pods?limit=5 HTTP/1.1\r\nHost: h\r\nAccept: */*\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: h\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: x\r\n\r\n",
)
HTTP_WORDS = (
    b"\r\n",
    b"\n",
    b": ",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"\x00",
    b"Host: x\r\n",
)
JSON_WORDS = (b'"', b"{", b"}", b"[", b"]", b":", b",", b"1e400", b"-0", b"null", b"\\u00", b"\\ud800", b'"metadata":')
YAML = (
    b"kind: Pod\nmetadata:\n  name: a\nspec: {containers: [{name: c}]}\n",
    b"a: &x [1, *x]\n",
    b"- |\n  t\n- >-\n  u\n",
)
YAML_WORDS = (
    b"&a ",
    b"*a",
    b"<<: ",
    b"- ",
    b": ",
    b"\n  ",
    b"|",
    b"!!binary ",
    b"0x1f",
    b"1_000",
    b"~",
    b"'",
    b'"',
    b"---\n",
)
QUERY = (
    b"labelSelector=a%3Db&limit=5&watch=1&resourceVersion=7&fieldSelector=metadata.name%3Dx",
    b"dryRun=All&timeoutSeconds=3",
)
PATCHES = (
    b'{"metadata":{"labels":{"a":null}},"spec":{"containers":[{"name":"c","image":"j"}]}}',
    b'{"spec":{"$setElementOrder/containers":[{"name":"d"},{"name":"c"}],"containers":[{"$patch":"delete","name":"c"}]}}',
    b'{"spec":{"$retainKeys":["containers"],"tolerations":[{"$patch":"replace"},{"key":"n"}]}}',
    b'{"metadata":{"$deleteFromPrimitiveList/finalizers":["x/y"]},"$patch":"merge"}',
)
PATCH_WORDS = (
    *JSON_WORDS,
    b'"$patch":"delete"',
    b'"$patch":"replace"',
    b'"$setElementOrder/containers":',
    b'"$retainKeys":[]',
)
JSON_PATCH = (
    b'[{"op":"add","path":"/metadata/labels/x","value":1},{"op":"move","from":"/spec/containers/0","path":"/spec/containers/1"}]',
    b'[{"op":"test","path":"/metadata/name","value":"a"},{"op":"copy","from":"/spec","path":"/metadata/labels/spec"}]',
    b'[{"op":"remove","path":"/spec/containers/-1"},{"op":"replace","path":"","value":{}}]',
)
JSON_PATCH_WORDS = (*JSON_WORDS, b'"op":"copy",', b'"path":"",', b"~0", b"~1", b"/-", b"/", b"9999999999999999999")


def signed_token(data: bytes) -> None:
    """No text may be taken for a signed one, nor its claims for something they are not."""
    with contextlib.suppress(jws.TokenError, WrongCredential):
        parsed = jws.parse(text_of(data))
        assert parsed.signed.count(b".") == 1
        user = oidc.user_of(CLAIMS, dict(parsed.claims))
        assert isinstance(user.name, str)
        jws.audiences(parsed.claims)
        jws.instant(parsed.claims, "exp")


def key_set(data: bytes) -> None:
    with contextlib.suppress(jws.UnusableKeyError):
        for key in jws.keys_of_set(data):
            assert key.algorithms <= jws.ALGORITHMS


def certificate(data: bytes) -> None:
    with contextlib.suppress(der.CertificateError):
        assert der.read(data).subject in data


def authentication_config(data: bytes) -> None:
    with contextlib.suppress(authn_config.ConfigError):
        for entry in authn_config.load(data).jwt:
            assert entry.issuer.url.lower().startswith("https://")


CLAIMS = authn_config.JWTConfig(
    authn_config.Issuer("https://i", ("a",)), authn_config.Mapped("sub"), authn_config.Mapped("groups")
)
TOKEN = b"eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJodHRwczovL2kiLCJzdWIiOiJ4IiwiYXVkIjpbImEiXSwiZXhwIjoxfQ.AAAA"
KEY_SET = (
    b'{"keys":[{"use":"sig","kty":"EC","kid":"k","crv":"P-256","alg":"ES256",'
    b'"x":"5x4RX23lr56hLmwWOM7_za8a4FKzWRotQ32vFx8jrng","y":"IcLT0GSGNqodPK37bBglsaon9r1G_2HfYAtrBRcevbc"}]}'
)


def tlv(tag: int, *parts: bytes) -> bytes:
    """A short DER element."""
    content = b"".join(parts)
    return bytes((tag, len(content))) + content


CERTIFICATE = tlv(
    0x30,
    tlv(
        0x30, tlv(0x02, b"\x01"), tlv(0x30), tlv(0x30), tlv(0x30, tlv(0x17, b"260101000000Z"), tlv(0x18, b"20560101000000Z")),
        tlv(0x30, tlv(0x31, tlv(0x30, tlv(0x06, b"\x55\x04\x03"), tlv(0x0C, b"bob")))), tlv(0x30, b"key"),
    ),
)  # fmt: skip
CONFIGURATION = (
    b'{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthenticationConfiguration","jwt":[{"issuer":{"url":'
    b'"https://a","audiences":["b"]},"claimMappings":{"username":{"claim":"sub","prefix":""}}}]}'
)

TARGETS: dict[str, Target] = {
    "token": Target(signed_token, (TOKEN,), (b".", b"e30", b"eyJhbGciOiJub25lIn0", b"=", b"-", b"_")),
    "key set": Target(
        key_set, (KEY_SET,), (b'"kty"', b'"oct"', b'"RSA"', b'"n"', b'"e"', b'"AQAB"', b'"P-384"', b"null")
    ),
    "certificate": Target(
        certificate, (CERTIFICATE,), (b"\x30\x80", b"\x84\xff\xff\xff\xff", b"\x06\x03\x55\x04\x03", b"\x0c\x00")
    ),
    "authentication configuration": Target(
        authentication_config,
        (CONFIGURATION,),
        (b'"claimMappings"', b"null", b'"expression"', b"[]", b"{}", b'"https://"'),
    ),
    "http1": Target(http_head, HTTP, HTTP_WORDS),
    "reqinfo": Target(
        request_info,
        (b"GET /api/v1/namespaces/a/pods/b/log?container=c", b"GET /apis/apps/v1/watch/deployments/x?watch=1"),
        (
            b"/",
            b"%2F",
            b"%",
            b"?",
            b"&",
            b"=",
            b"watch",
            b"..",
            b"//",
            b"namespaces",
            b"fieldSelector=metadata.name%3Dx",
        ),
    ),
    "query": Target(list_query, QUERY, (b"&", b"=", b"%", b"+", b";", b"watch=", b"sendInitialEvents=true", b"9" * 25)),
    "json": Target(json_body, (BODY, b'[1,-0.5e-7,"\\u2028",{"a":{"a":1}}]'), JSON_WORDS),
    "jsonscan": Target(scanned, (BODY, b'{"a":1,"a":{"b":[1,{"c":2,"c":3}]}}'), JSON_WORDS),
    "typed json": Target(partial(typed_body, form="json"), (BODY,), JSON_WORDS),
    "yaml": Target(yaml_body, YAML, YAML_WORDS),
    "typed yaml": Target(partial(typed_body, form="yaml"), (*YAML, BODY), YAML_WORDS),
    "objects": Target(
        stored_object, (BODY, b'{"aaa":1,"apiVersion":"g/v1","kind":"W","metadata":{"uid":"u"}}'), JSON_WORDS
    ),
    "label selector": Target(
        label_selector, (b"a in (b,c),!d,e!=f,g>5", b"x/y==z"), (b" in ", b"notin", b"(", b")", b",", b"!")
    ),
    "field selector": Target(field_selector, (b"metadata.name=a,spec.x!=b\\,c",), (b"\\", b"=", b"==", b"!=", b",")),
    "quantity": Target(
        quantity_text, (b"100m", b"1.5Gi", b"-12e3", b"0.000001"), (b"Ki", b"e", b"E", b"n", b".", b"-", b"9" * 30)
    ),
    "time": Target(
        time_text, (b"2026-01-02T03:04:05Z", b"2026-01-02T03:04:05.123456+01:00", b"1h2m3.5s"), (b"T", b"Z", b"-", b":")
    ),
    "continue": Target(
        continue_token, (encode_token(7, "/registry/pods/a/b", "/registry/pods/").encode(),), (b"=", b"-", b"_")
    ),
    "json patch": Target(partial(patched, apply=jsonpatch.apply_json_patch), JSON_PATCH, JSON_PATCH_WORDS),
    "merge patch": Target(partial(patched, apply=merge.merge), PATCHES, PATCH_WORDS),
    "strategic patch": Target(
        partial(patched, apply=lambda tree, patch: strategic.strategic(tree, patch, POD)), PATCHES, PATCH_WORDS
    ),
    "protobuf": Target(
        protobuf_body,
        (protobuf.document(POD, decode.decode(POD, BODY).tree),),
        (b"\x0a", b"\x12", b"\xff" * 9, b"k8s\x00", b"\x0b"),
    ),
    "headers": Target(
        headers,
        (b"application/json;as=Table;v=v1;g=meta.k8s.io,application/json;q=0.5,*/*", b"Bearer abc", b'a,b,c,"d,e"\n'),
        (b";", b",", b"q=", b"*/*", b'"', b"application/yaml"),
    ),
}
