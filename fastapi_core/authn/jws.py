"""Signed tokens: reading a compact JWS, verifying it with a public key, keys as JWK.

Everything here is about bytes from outside. A key decides by its own kind which algorithms it may verify, never the
token; there are no symmetric keys and no unsigned tokens at all. The cryptography library is imported with the first key.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import orjson

from fastapi_core.meta.patterns import Pattern
from fastapi_core.records import dataclass

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.hashes import HashAlgorithm

#: Longest token read.
LIMIT = 1 << 16
#: Keys below this are not worth verifying with (what Go's library refuses, too).
_RSA_BITS = 1024
_CURVES = {
    "secp256r1": ("P-256", "ES256", 32),
    "secp384r1": ("P-384", "ES384", 48),
    "secp521r1": ("P-521", "ES512", 66),
}
RSA_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
ALGORITHMS = frozenset((*RSA_ALGORITHMS, *(algorithm for _, algorithm, _ in _CURVES.values())))
"""All that can be verified."""

_PART = Pattern(r"[A-Za-z0-9_-]+")


class TokenError(ValueError):
    """A text that is no signed token."""


class UnusableKeyError(ValueError):
    """A key that cannot be used; says why."""


def encode(data: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    """Raises TokenError; padding, white space and other alphabets are not accepted."""
    if _PART.fullmatch(text) is None or len(text) % 4 == 1:
        raise TokenError("not base64url")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass(frozen=True, slots=True)
class Token:
    """A token taken apart; nothing of it is to be believed before `PublicKey.verify`."""

    algorithm: str
    key_id: str
    claims: Mapping[str, Any]
    signed: bytes
    signature: bytes


def parse(text: str) -> Token:
    """Take a compact token apart. Raises TokenError."""
    if len(text) > LIMIT:
        raise TokenError("token too long")
    parts = text.split(".")
    if len(parts) != 3:
        raise TokenError("not a compact JWS")
    header, claims = _object(parts[0]), _object(parts[1])
    algorithm, key_id = header.get("alg"), header.get("kid", "")
    if not isinstance(algorithm, str) or not isinstance(key_id, str):
        raise TokenError("bad header")
    if "crit" in header or header.get("b64", True) is not True:
        raise TokenError("unsupported critical header")
    return Token(algorithm, key_id, claims, f"{parts[0]}.{parts[1]}".encode(), decode(parts[2]))


@lru_cache(maxsize=32)
def issuer_of(text: str) -> str | None:
    """The issuer a text claims, to find out whose token it might be; None when it is no token.

    Every kind of token asks the same of the same text.
    """
    if len(text) > LIMIT or text.count(".") != 2:
        return None
    try:
        issuer = _object(text.split(".")[1]).get("iss")
    except TokenError:
        return None
    return issuer if isinstance(issuer, str) else None


def _object(part: str) -> dict[str, Any]:
    try:
        found = orjson.loads(decode(part))
    except orjson.JSONDecodeError as error:
        raise TokenError(str(error)) from None
    if not isinstance(found, dict):
        raise TokenError("not an object")
    return found


class PublicKey:
    """One key: RSA, or ECDSA on P-256, P-384 or P-521. Raises UnusableKeyError for any other.

    `key_id` empty: the digest of the key, as the reference names it. `only` narrows the algorithms down.
    """

    def __init__(self, key: RSAPublicKey | EllipticCurvePublicKey | Any, key_id: str = "", only: str = "") -> None:
        from cryptography.hazmat.primitives.asymmetric import ec, rsa
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        if isinstance(key, rsa.RSAPublicKey):
            if key.key_size < _RSA_BITS:
                raise UnusableKeyError(f"RSA key of {key.key_size} bits, at least {_RSA_BITS} are needed")
            self.algorithms: frozenset[str] = frozenset(RSA_ALGORITHMS)
            self.algorithm = "RS256"
        elif isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in _CURVES:
            self.algorithm = _CURVES[key.curve.name][1]
            self.algorithms = frozenset((self.algorithm,))
        else:
            raise UnusableKeyError("neither an RSA key nor an ECDSA key on P-256, P-384 or P-521")
        if only:
            self.algorithms &= {only}
            if not self.algorithms:
                raise UnusableKeyError(f"the key cannot be used with {only}")
        self._key = key
        der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        self.id = key_id or encode(sha256(der).digest())
        self.der: bytes = der

    def verify(self, token: Token) -> bool:
        """True when this key signed the token, with an algorithm of this kind of key."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
        from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

        if token.algorithm not in self.algorithms:
            return False
        digest = _digest(token.algorithm)
        try:
            if isinstance(self._key, rsa.RSAPublicKey):
                pad: Any = padding.PKCS1v15()
                if token.algorithm.startswith("PS"):
                    pad = padding.PSS(padding.MGF1(digest), padding.PSS.DIGEST_LENGTH)
                self._key.verify(token.signature, token.signed, pad, digest)
                return True
            size = _CURVES[self._key.curve.name][2]
            if len(token.signature) != 2 * size:
                return False
            numbers = (int.from_bytes(half, "big") for half in (token.signature[:size], token.signature[size:]))
            self._key.verify(encode_dss_signature(*numbers), token.signed, ec.ECDSA(digest))
        except InvalidSignature:
            return False
        return True

    def jwk(self) -> dict[str, str]:
        """The key as a member of a key set, in the reference's order."""
        from cryptography.hazmat.primitives.asymmetric import rsa

        if isinstance(self._key, rsa.RSAPublicKey):
            numbers = self._key.public_numbers()
            return {
                "use": "sig", "kty": "RSA", "kid": self.id, "alg": self.algorithm,
                "n": encode(_big(numbers.n)), "e": encode(_big(numbers.e)),
            }  # fmt: skip
        point = self._key.public_numbers()
        curve, algorithm, size = _CURVES[self._key.curve.name]
        return {
            "use": "sig", "kty": "EC", "kid": self.id, "crv": curve, "alg": algorithm,
            "x": encode(point.x.to_bytes(size, "big")), "y": encode(point.y.to_bytes(size, "big")),
        }  # fmt: skip


def _big(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def _digest(algorithm: str) -> HashAlgorithm:
    from cryptography.hazmat.primitives import hashes

    kinds: dict[str, Callable[[], HashAlgorithm]] = {
        "256": hashes.SHA256, "384": hashes.SHA384, "512": hashes.SHA512,
    }  # fmt: skip
    return kinds[algorithm[2:]]()


_BLOCK = Pattern(rb"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----", re.S)


def keys_of_pem(data: bytes) -> list[PublicKey]:
    """The public keys of a PEM file: public keys, private keys and certificates. Raises UnusableKeyError."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

    found = []
    for match in _BLOCK.finditer(data):
        kind, block = match[1], match[0] + b"\n"
        try:
            if kind.endswith(b"PRIVATE KEY"):
                key: Any = load_pem_private_key(block, None).public_key()
            elif kind.endswith(b"PUBLIC KEY"):
                key = load_pem_public_key(block)
            elif kind == b"CERTIFICATE":
                key = x509.load_pem_x509_certificate(block).public_key()
            else:
                continue
        except (ValueError, TypeError) as error:
            raise UnusableKeyError(str(error)) from None
        found.append(PublicKey(key))
    if not found:
        raise UnusableKeyError("data does not contain any valid RSA or ECDSA public keys")
    return found


def keys_of_set(document: bytes) -> list[PublicKey]:
    """The usable keys of a JWK set; others in it are passed over. Raises UnusableKeyError when it is no set."""
    try:
        tree = orjson.loads(document)
    except orjson.JSONDecodeError as error:
        raise UnusableKeyError(f"not a key set: {error}") from None
    entries = tree.get("keys") if isinstance(tree, dict) else None
    if not isinstance(entries, list):
        raise UnusableKeyError("not a key set: no keys")
    return list(_usable(entries))


def _usable(entries: Iterable[Any]) -> Iterable[PublicKey]:
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
            continue
        try:
            yield _key_of(entry)
        except ValueError:
            continue


def _key_of(entry: dict[str, Any]) -> PublicKey:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    def number(name: str) -> int:
        value = entry.get(name)
        if not isinstance(value, str) or len(value) > LIMIT:
            raise UnusableKeyError(f"{name} is missing")
        return int.from_bytes(decode(value), "big")

    key_id, only = entry.get("kid", ""), entry.get("alg", "")
    if not isinstance(key_id, str) or not isinstance(only, str):
        raise UnusableKeyError("bad kid or alg")
    if entry.get("kty") == "RSA":
        return PublicKey(rsa.RSAPublicNumbers(number("e"), number("n")).public_key(), key_id, only)
    curves: dict[Any, ec.EllipticCurve] = {"P-256": ec.SECP256R1(), "P-384": ec.SECP384R1(), "P-521": ec.SECP521R1()}
    curve = curves.get(entry.get("crv")) if entry.get("kty") == "EC" and isinstance(entry.get("crv"), str) else None
    if curve is None:
        raise UnusableKeyError("a key of another kind")
    return PublicKey(ec.EllipticCurvePublicNumbers(number("x"), number("y"), curve).public_key(), key_id, only)


def instant(claims: Mapping[str, Any], name: str) -> float | None:
    """A claim that is a time; None without it. Raises TokenError for anything but a number."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TokenError(f"{name} is not a number")
    return float(value)


def audiences(claims: Mapping[str, Any]) -> tuple[str, ...]:
    """The audiences, of which there may be one as a text. Raises TokenError."""
    value = claims.get("aud")
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TokenError("aud is neither a text nor a list of texts")
    return tuple(value)


def text(claims: Mapping[str, Any], name: str) -> str:
    """A claim that is a text, empty without it. Raises TokenError."""
    value = claims.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TokenError(f"{name} is not a text")
    return value
