"""How backends are connected to: TLS with our client certificate, targets per APIService."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import field

from fastapi_core.aggregation.directory import APIService
from fastapi_core.authn.outbound import client_tls
from fastapi_core.http.client import Target, Tunnel
from fastapi_core.records import dataclass
from fastapi_core.registry.services import Place


@dataclass(slots=True)
class Transports:
    """`certificate`, `key`: files of the certificate that tells backends who calls; empty: none."""

    certificate: str = ""
    key: str = ""
    tunnel: Tunnel | None = None
    _contexts: dict[tuple[bytes, bool], ssl.SSLContext] = field(default_factory=dict)
    _renewed: list[Callable[[], None]] = field(default_factory=list)

    def on_renewal(self, renewed: Callable[[], None]) -> None:
        """Call after another client certificate was taken into use."""
        self._renewed.append(renewed)

    def reload(self) -> None:
        """The files have changed. Raises OSError or ssl.SSLError when they cannot be used, the old ones stay then."""
        trial = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._show(trial)
        self._contexts = {}
        for renewed in self._renewed:
            renewed()

    def _show(self, context: ssl.SSLContext) -> None:
        if self.certificate:
            context.load_cert_chain(self.certificate, self.key)

    def context(self, service: APIService) -> ssl.SSLContext:
        """TLS to a backend. Raises ValueError with what clients are told."""
        key = (service.authorities, service.insecure)
        context = self._contexts.get(key)
        if context is None:
            if service.authorities and b"-----BEGIN CERTIFICATE-----" not in service.authorities:
                raise ValueError("unable to load root certificates: unable to parse bytes as PEM block")
            try:
                context = client_tls(service.authorities or None, insecure=service.insecure)
                self._show(context)
            except (ValueError, OSError) as error:
                raise ValueError(f"unable to load root certificates: {error}") from None
            self._contexts[key] = context
        return context

    def target(self, service: APIService, place: Place) -> Target:
        """Where a request for the APIService goes. Raises ValueError."""
        name = service.backing.server_name if service.backing is not None else ""
        return Target(place[0], place[1], self.context(service), name, self.tunnel)
