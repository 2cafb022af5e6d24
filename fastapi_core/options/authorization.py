"""Flags of authorization: who may do what."""

from __future__ import annotations

from fastapi_core.authz.modes import ABAC, ALWAYS_ALLOW, MODES, NODE, RBAC, WEBHOOK, AuthorizerConfig, Settings
from fastapi_core.options.flags import DURATION, STRING, STRINGS, flag
from fastapi_core.records import dataclass

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
    authorization_config: str = flag(
        "authorization-config", STRING, "", "AuthorizationConfiguration instead of modes and webhook; followed on disk."
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

    def authorizers(self) -> tuple[AuthorizerConfig, ...]:
        """The authorizers in order, of the file or the flags. Raises OSError, or ConfigError for a file that is wrong."""
        if self.authorization_config:
            from fastapi_core.authz.config import load

            return load(self.authorization_config)
        settings = Settings(
            self.authorization_webhook_version,
            self.authorization_webhook_cache_authorized_ttl,
            self.authorization_webhook_cache_unauthorized_ttl,
        )
        kubeconfig = self.authorization_webhook_config_file
        return tuple(AuthorizerConfig(mode, mode.lower(), kubeconfig, settings) for mode in self.authorization_mode)

    @property
    def open(self) -> bool:
        """Whether whoever is known may do everything: one authorizer that allows is enough. Raises as `authorizers`."""
        return any(entry.type == ALWAYS_ALLOW for entry in self.authorizers())


def check(group: Authorization) -> list[str]:
    """Everything that is wrong, each line with the flag and the fix."""
    modes: tuple[str, ...] = group.authorization_mode
    if group.authorization_config:
        wrong, modes = _check_config(group)
    else:
        wrong = _check_modes(modes)
    if WEBHOOK in modes and not group.authorization_config and not group.authorization_webhook_config_file:
        wrong.append(f"--authorization-webhook-config-file: is needed for mode {WEBHOOK}")
    elif group.authorization_webhook_config_file and WEBHOOK not in modes:
        wrong.append(f"--authorization-webhook-config-file: means nothing without mode {WEBHOOK}, {_ADD}")
    if ABAC in modes and not group.authorization_policy_file:
        wrong.append(f"--authorization-policy-file: is needed for mode {ABAC}")
    elif group.authorization_policy_file and ABAC not in modes:
        wrong.append(f"--authorization-policy-file: means nothing without mode {ABAC}, {_ADD}")
    if group.authorization_webhook_version not in _VERSIONS:
        given = group.authorization_webhook_version
        wrong.append(f"--authorization-webhook-version: {given!r} is none of {', '.join(_VERSIONS)}")
    for name, seconds in (
        ("authorized", group.authorization_webhook_cache_authorized_ttl),
        ("unauthorized", group.authorization_webhook_cache_unauthorized_ttl),
    ):
        if seconds < 0:
            wrong.append(f"--authorization-webhook-cache-{name}-ttl: cannot be negative, use 0 to remember nothing")
    return wrong + _check_files(group, modes)


_ADD = "add it to --authorization-mode"


def _check_modes(modes: tuple[str, ...]) -> list[str]:
    wrong = []
    if not modes:
        wrong.append(f"--authorization-mode: at least one mode is needed, use for example {','.join(DEFAULT_MODES)}")
    for mode in dict.fromkeys(modes):
        if mode not in MODES:
            wrong.append(f"--authorization-mode: {mode!r} is not a valid mode, use some of {', '.join(MODES)}")
        elif modes.count(mode) > 1:
            wrong.append(f"--authorization-mode: {mode!r} is given more than once, name each mode once")
    return wrong


def _check_config(group: Authorization) -> tuple[list[str], tuple[str, ...]]:
    """What is wrong with the configuration file or beside it, and the modes it names."""
    from fastapi_core.authz.config import ConfigError

    plain = Authorization()
    wrong = [
        f"--{name.replace('_', '-')}: cannot be given together with --authorization-config, leave one of them out"
        for name in _REPLACED
        if getattr(group, name) != getattr(plain, name)
    ]
    path = group.authorization_config
    try:
        return wrong, tuple(entry.type for entry in group.authorizers())
    except ConfigError as error:
        return wrong + [f"--authorization-config: {path!r}: {problem}" for problem in error.problems], ()
    except OSError as error:
        return [*wrong, f"--authorization-config: {path!r} cannot be read ({error.strerror})"], ()


_REPLACED = (
    "authorization_mode",
    "authorization_webhook_config_file",
    "authorization_webhook_version",
    "authorization_webhook_cache_authorized_ttl",
    "authorization_webhook_cache_unauthorized_ttl",
)


def _check_files(group: Authorization, modes: tuple[str, ...]) -> list[str]:
    """Whether the files that are going to be read can be used."""
    wrong = []
    path = group.authorization_policy_file
    if path and ABAC in modes:
        from fastapi_core.authz import abac

        try:
            abac.load(path)
        except OSError as error:
            wrong.append(f"--authorization-policy-file: {path!r} cannot be read ({error.strerror})")
        except abac.PolicyError as error:
            wrong.append(f"--authorization-policy-file: {path!r}: {error}")
    path = group.authorization_webhook_config_file
    if path and WEBHOOK in modes:
        from fastapi_core.authn import outbound

        try:
            outbound.load_kubeconfig(path)
        except OSError as error:
            wrong.append(f"--authorization-webhook-config-file: {path!r} cannot be read ({error.strerror})")
        except outbound.KubeconfigError as error:
            wrong.append(f"--authorization-webhook-config-file: {path!r}: {error}")
    return wrong
