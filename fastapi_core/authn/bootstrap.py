"""Bootstrap tokens: secrets in kube-system that let a new node ask for its certificate."""

from __future__ import annotations

import base64
import binascii
import hmac
from typing import TYPE_CHECKING

from fastapi_core.authn.base import FOREVER, Audiences, Known
from fastapi_core.meta.patterns import Pattern
from fastapi_core.meta.time import to_timestamp
from fastapi_core.request.context import User

if TYPE_CHECKING:
    from fastapi_core.authn.serviceaccounts import Source

NAMESPACE = "kube-system"
SECRET_TYPE = "bootstrap.kubernetes.io/token"
GROUP = "system:bootstrappers"
_TOKEN = Pattern(r"([a-z0-9]{6})\.([a-z0-9]{16})")
_EXTRA_GROUP = Pattern(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]")


class BootstrapTokens:
    """`ID.SECRET`, looked up in the secret `bootstrap-token-ID`. A token that does not fit is nobody's, never wrong."""

    aware = False

    def __init__(self, secrets: Source) -> None:
        self._secrets = secrets

    def check(self, token: str, audiences: Audiences | None, now: float) -> Known | None:
        match = _TOKEN.fullmatch(token)
        if match is None:
            return None
        hold = self._secrets.find(NAMESPACE, f"bootstrap-token-{match[1]}")
        if hold is None:
            return None
        tree = hold[2].tree()
        data = {name: _text(value) for name, value in (tree.get("data") or {}).items()}
        if tree["metadata"].get("deletionTimestamp") or tree.get("type") != SECRET_TYPE:
            return None
        if not hmac.compare_digest(data.get("token-secret", "").encode(), match[2].encode()):
            return None
        if data.get("token-id") != match[1] or data.get("usage-bootstrap-authentication") != "true":
            return None
        until, groups = _expiry(data.get("expiration", "")), _groups(data.get("auth-extra-groups", ""))
        if now >= until or groups is None:
            return None
        return Known(User(f"system:bootstrap:{match[1]}", groups=groups), (), until, (hold,))


def _text(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _expiry(text: str) -> float:
    """FOREVER without one; a time that cannot be read has passed."""
    if not text:
        return FOREVER
    try:
        return to_timestamp(text)
    except ValueError:
        return 0.0


def _groups(text: str) -> tuple[str, ...] | None:
    """All groups, in order; None when one is not allowed."""
    extra = text.split(",") if text else []
    if not all(_EXTRA_GROUP.fullmatch(group) for group in extra):
        return None
    return tuple(sorted({GROUP, *extra}))
