"""Flags of authorization: who may do what."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi_core.options.flags import DURATION, STRING, STRINGS, flag

ALWAYS_ALLOW, ALWAYS_DENY, ABAC, NODE, RBAC, WEBHOOK = "AlwaysAllow", "AlwaysDeny", "ABAC", "Node", "RBAC", "Webhook"
MODES = (ALWAYS_ALLOW, ALWAYS_DENY, ABAC, WEBHOOK, RBAC, NODE)
DEFAULT_MODES = (NODE, RBAC)
_VERSIONS = ("v1", "v1beta1")


@dataclass(slots=True)
class Authorization:
    """Who may do what."""

    authorization_mode: tuple[str, ...] = flag(
        "authorization-mode",
        STRINGS,
        DEFAULT_MODES,
        f"Who decides, in this order: {', '.join(MODES)}. kube-apiserver itself allows everything when the flag is "
        "missing; here that has to be said: AlwaysAllow.",
    )
    authorization_policy_file: str = flag(
        "authorization-policy-file", STRING, "", "Policies of mode ABAC, one JSON object a line."
    )
    authorization_webhook_config_file: str = flag(
        "authorization-webhook-config-file", STRING, "", "Kubeconfig of the service that mode Webhook asks."
    )
    authorization_webhook_version: str = flag(
        "authorization-webhook-version", STRING, "v1beta1", "Version of the SubjectAccessReviews sent to it."
    )
    authorization_webhook_cache_authorized_ttl: float = flag(
        "authorization-webhook-cache-authorized-ttl", DURATION, 300.0, "How long its permissions are remembered."
    )
    authorization_webhook_cache_unauthorized_ttl: float = flag(
        "authorization-webhook-cache-unauthorized-ttl", DURATION, 30.0, "How long its refusals are remembered."
    )

    @property
    def open(self) -> bool:
        """Whether whoever is known may do everything."""
        return self.authorization_mode == (ALWAYS_ALLOW,)


def check(group: Authorization) -> list[str]:
    """Everything that is wrong, each line with the flag and the fix."""
    wrong = []
    modes = group.authorization_mode
    if not modes:
        wrong.append(f"--authorization-mode: at least one mode is needed, use for example {','.join(DEFAULT_MODES)}")
    for mode in dict.fromkeys(modes):
        if mode not in MODES:
            wrong.append(f"--authorization-mode: {mode!r} is not a valid mode, use some of {', '.join(MODES)}")
        elif modes.count(mode) > 1:
            wrong.append(f"--authorization-mode: {mode!r} is given more than once, name each mode once")
    for mode, name, value in (
        (ABAC, "authorization-policy-file", group.authorization_policy_file),
        (WEBHOOK, "authorization-webhook-config-file", group.authorization_webhook_config_file),
    ):
        if mode in modes and not value:
            wrong.append(f"--{name}: is needed for mode {mode}")
        elif value and mode not in modes:
            wrong.append(f"--{name}: means nothing without mode {mode}, add it to --authorization-mode")
    if group.authorization_webhook_version not in _VERSIONS:
        given = group.authorization_webhook_version
        wrong.append(f"--authorization-webhook-version: {given!r} is none of {', '.join(_VERSIONS)}")
    for name, seconds in (
        ("authorized", group.authorization_webhook_cache_authorized_ttl),
        ("unauthorized", group.authorization_webhook_cache_unauthorized_ttl),
    ):
        if seconds < 0:
            wrong.append(f"--authorization-webhook-cache-{name}-ttl: cannot be negative, use 0 to remember nothing")
    return wrong
