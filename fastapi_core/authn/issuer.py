"""Signed service account tokens: the claims, the key, the compact JWS.

The key comes from a PEM file (RSA, or ECDSA on P-256, P-384, P-521). A key of our own is made on first use and kept.
The cryptography library is imported with the first token: it would dominate the start otherwise.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import orjson

from fastapi_core.records import dataclass

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

DEFAULT_ISSUER = "https://kubernetes.default.svc"
#: Tokens of exactly this life that a pod mounts are good for a year, and watched for late use from then on.
WARN_AFTER = 3607
EXTENDED = 365 * 24 * 3600
_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}


class KeyFileError(ValueError):
    """A signing key that cannot be used."""


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class SigningKey:
    """One private key and how it signs."""

    def __init__(self, key: RSAPrivateKey | EllipticCurvePrivateKey) -> None:
        from cryptography.hazmat.primitives.asymmetric import rsa
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        self._key = key
        self.algorithm = "RS256" if isinstance(key, rsa.RSAPrivateKey) else _CURVES[key.curve.name]
        self.public_key = key.public_key()
        public = self.public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        self.id = _encode(sha256(public).digest())
        self.public = public
        """DER of the public key."""

    @classmethod
    def load(cls, data: bytes) -> SigningKey:
        """From PEM; raises KeyFileError."""
        from cryptography.hazmat.primitives.asymmetric import ec, rsa
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            key = load_pem_private_key(data, None)
        except (ValueError, TypeError) as error:
            raise KeyFileError(str(error)) from None
        if isinstance(key, rsa.RSAPrivateKey) or (
            isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name in _CURVES
        ):
            return cls(key)
        raise KeyFileError("neither an RSA key nor an ECDSA key on P-256, P-384 or P-521")

    def sign(self, data: bytes) -> bytes:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

        if isinstance(self._key, rsa.RSAPrivateKey):
            return self._key.sign(data, padding.PKCS1v15(), hashes.SHA256())
        digest = {"ES256": hashes.SHA256(), "ES384": hashes.SHA384(), "ES512": hashes.SHA512()}[self.algorithm]
        signature = self._key.sign(data, ec.ECDSA(digest))
        size = (self._key.key_size + 7) // 8
        return b"".join(number.to_bytes(size, "big") for number in decode_dss_signature(signature))


def generated_key() -> bytes:
    """PEM of a new ECDSA key on P-256."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def kept_key(path: str, write: Callable[[str, bytes, int], None]) -> bytes:
    """The key in a file of ours, made when there is none yet."""
    if not os.path.exists(path):
        write(path, generated_key(), 0o600)
    with open(path, "rb") as file:
        return file.read()


@dataclass(frozen=True, slots=True)
class Subject:
    """The service account a token speaks for, and what the token's life hangs on: `bound` holds (kind, name, uid)."""

    namespace: str
    name: str
    uid: str
    bound: Sequence[tuple[str, str, str]] = ()


class TokenIssuer:
    """Makes tokens. `read_key` gives the PEM of the signing key, once, when the first token is asked for.

    `longest` is the longest life in seconds, 0 for no limit; `extend`: tokens of pods live on for a year (see above).
    """

    def __init__(
        self,
        read_key: Callable[[], bytes],
        *,
        issuer: str = DEFAULT_ISSUER,
        audiences: Sequence[str] = (),
        longest: int = 0,
        extend: bool = True,
    ) -> None:
        self._read_key = read_key
        self._key: SigningKey | None = None
        self.issuer = issuer
        self.audiences = tuple(audiences) or (issuer,)
        """Of a token that names none."""
        self.longest = longest
        self.extend = extend

    @property
    def key(self) -> SigningKey:
        if self._key is None:
            self._key = SigningKey.load(self._read_key())
        return self._key

    def issue(self, subject: Subject, audiences: Sequence[str], seconds: int, *, new_id: str, now: float) -> str:
        """A signed token for `seconds` from `now` on."""
        pod = any(kind == "pod" for kind, _, _ in subject.bound)
        extended = self.extend and pod and seconds == WARN_AFTER and set(audiences) <= set(self.audiences)
        life = EXTENDED if extended else seconds
        claims = self.claims(subject, audiences, life, new_id=new_id, now=int(now))
        if extended:
            claims["kubernetes.io"]["warnafter"] = int(now) + WARN_AFTER
        key = self.key
        header = {"alg": key.algorithm, "kid": key.id}
        signed = f"{_encode(orjson.dumps(header))}.{_encode(orjson.dumps(claims))}"
        return f"{signed}.{_encode(key.sign(signed.encode()))}"

    def claims(self, subject: Subject, audiences: Sequence[str], life: int, *, new_id: str, now: int) -> dict[str, Any]:
        private: dict[str, Any] = {"namespace": subject.namespace}
        for kind, name, uid in sorted(subject.bound):
            private[kind] = {"name": name, "uid": uid} if uid else {"name": name}
        private["serviceaccount"] = {"name": subject.name, "uid": subject.uid}
        return {
            "aud": list(audiences),
            "exp": now + life,
            "iat": now,
            "iss": self.issuer,
            "jti": new_id,
            "kubernetes.io": private,
            "nbf": now,
            "sub": f"system:serviceaccount:{subject.namespace}:{subject.name}",
        }


def decoded(token: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Header and claims of a compact token, unverified. ValueError when it is none."""
    parts = token.split(".")
    if len(parts) != 3:
        raise ValueError("not a compact JWS")
    try:
        header, claims = (orjson.loads(base64.urlsafe_b64decode(p + "=" * (-len(p) % 4))) for p in parts[:2])
    except ValueError as error:
        raise ValueError(f"not a compact JWS: {error}") from None
    return header, claims
