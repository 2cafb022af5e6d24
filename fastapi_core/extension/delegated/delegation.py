"""From the flags to an authenticator and an authorizer that ask the core API, and what runs beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fastapi_core.authn.outbound import OutboundError
from fastapi_core.errors import APIError
from fastapi_core.extension.delegated import access, authenticator, authorizer, patience, published
from fastapi_core.extension.delegated.client import CoreClient, Reviews
from fastapi_core.extension.delegated.followed import Followed
from fastapi_core.obs import logs
from fastapi_core.options.flags import OptionsError

if TYPE_CHECKING:
    from fastapi_core.authz.base import Authorizer
    from fastapi_core.extension.delegated.options import DelegatedOptions
    from fastapi_core.http.tls import Authorities
    from fastapi_core.obs.catalog import Metrics
    from fastapi_core.obs.files import FileWatcher
    from fastapi_core.server.generic import GenericServer

log = logs.get("delegated")

CONFIG_MAPS = f"/api/v1/namespaces/{published.NAMESPACE}/configmaps"
_HINT = (
    "usually fixed by a ClusterRoleBinding of this server's account to system:auth-delegator, which `register` makes"
)
_SECONDS = (0.25, 0.5, 0.7, 1, 1.5, 3, 5, 10)


class Delegation:
    """`Delegated` over one or two ways to the core API."""

    def __init__(
        self,
        known: authenticator.DelegatedAuthenticator,
        allowed: Authorizer,
        clients: tuple[CoreClient, ...],
        followed: Followed | None,
    ) -> None:
        self.authenticator = known
        self.authorizer = allowed
        self._clients = clients
        self._followed = followed

    @property
    def client_ca_files(self) -> tuple[str, ...]:
        return self.authenticator.client_ca_files

    @property
    def authorities(self) -> Authorities:
        return self.authenticator.authorities

    def install(self, server: GenericServer) -> None:
        if self._followed is not None:
            server.add_hook("start-delegated-authentication", self._followed.start)
        server.on_stop(self.close, "delegation")

    async def close(self) -> None:
        if self._followed is not None:
            await self._followed.stop()
        for client in self._clients:
            client.close()


async def connected(options: DelegatedOptions, *, agent: str, files: FileWatcher, metrics: Metrics) -> Delegation:
    """See `connect`."""
    first = await _client("authentication-kubeconfig", options.authentication_kubeconfig, options, agent, files)
    same = options.authorization_kubeconfig in ("", options.authentication_kubeconfig)
    if same and (options.authorization_kubeconfig or not options.authentication_kubeconfig):
        second = first
    else:
        second = await _client("authorization-kubeconfig", options.authorization_kubeconfig, options, agent, files)
    tokens = _reviews(first, authenticator.REVIEWS, "authn", metrics)
    try:
        known = authenticator.DelegatedAuthenticator(options, tokens)
    except (OSError, ValueError) as error:
        raise OptionsError([f"--client-ca-file, --requestheader-client-ca-file: {error}"]) from None
    known.follow(files)
    allowed = authorizer.authorizer(options, _reviews(second, authorizer.REVIEWS, "authz", metrics))
    clients = tuple({id(client): client for client in (first, second) if client is not None}.values())
    followed = None
    if first is not None and any(options.looks_up):
        followed = Followed(first, CONFIG_MAPS, published.NAME, known.take)
        try:
            await _look_up(followed, tolerant=options.authentication_tolerate_lookup_failure)
        except BaseException:
            for client in clients:
                client.close()
            raise
    return Delegation(known, allowed, clients, followed)


def _waiting(why: str) -> None:
    log.warning("Waiting for the API server in front", why=why, seconds=patience.SECONDS)


async def _client(flag: str, path: str, options: DelegatedOptions, agent: str, files: FileWatcher) -> CoreClient | None:
    """The client of a flag; None where there is no core API and none is needed."""

    async def attempt() -> access.Access:
        return access.find(path or options.kubeconfig)

    try:
        way = await patience.patiently(attempt, _waiting)
    except access.NotInClusterError as error:
        if not options.authentication_skip_lookup:
            fix = (
                "name the kubeconfig of the API server in front by --kubeconfig or $KUBECONFIG, or do without one by "
                "--authentication-skip-lookup"
            )
            raise OptionsError([f"--kubeconfig: is not given, and this is no pod ({error}): {fix}"]) from None
        what = "bearer tokens are not understood" if flag.startswith("authentication") else "nobody is authorized"
        log.warning("There is no API server to ask", flag=f"--{flag}", effect=what)
        return None
    except access.AccessError as error:
        raise OptionsError([f"--{flag if path else 'kubeconfig'}: {error}"]) from None
    way.follow(files)
    return CoreClient(way, agent)


def _reviews(client: CoreClient | None, path: str, name: str, metrics: Metrics) -> Reviews | None:
    return None if client is None else client.reviews(path, _HINT, _counted(metrics, name))


def _counted(metrics: Metrics, name: str) -> Callable[[str, float], None]:
    """Counts reviews under the reference's names."""
    total = metrics.registry.counter(
        f"apiserver_delegated_{name}_request_total",
        "Reviews asked of the API server in front, by HTTP code.",
        ("code",),
    )
    seconds = metrics.registry.histogram(
        f"apiserver_delegated_{name}_request_duration_seconds", "Seconds they took.", ("code",), buckets=_SECONDS
    )

    def told(code: str, duration: float) -> None:
        total.labels(code).inc()
        seconds.labels(code).observe(duration)

    return told


async def _look_up(followed: Followed, *, tolerant: bool) -> None:
    """Read the ConfigMap for the first time. One that is not there yet is waited for while serving, as in the reference."""
    try:
        await patience.patiently(followed.look, _waiting, 0.0 if tolerant else -1.0)
        return
    except APIError as error:
        problem, forbidden = error.message, error.code == 403
    except OutboundError as error:
        problem, forbidden = str(error), False
    where = f"configmap/{published.NAME} in {published.NAMESPACE}"
    if forbidden:
        role = f"a RoleBinding of this server's account to {published.ROLE} in {published.NAMESPACE}"
        log.warning(f"Unable to get {where}. Usually fixed by {role}, which `register` makes", error=problem)
    if not tolerant:
        fix = "bind the role (`register` does), or serve without it by --authentication-tolerate-lookup-failure"
        raise OptionsError([f"unable to read {where}: {problem}" + (f": {fix}" if forbidden else "")])
    log.warning("Continuing without authentication configuration; nobody is known by certificates yet", error=problem)
