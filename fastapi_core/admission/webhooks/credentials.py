"""With which credentials webhooks are called: the plugins' configuration names a kubeconfig whose users stand for servers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field

from fastapi_core.admission.configuration import ConfigurationError, Source, header, text
from fastapi_core.authn.outbound import Identity, KubeconfigError, kubeconfig_users
from fastapi_core.records import dataclass

_KINDS = {
    "apiserver.config.k8s.io/v1": "WebhookAdmissionConfiguration",
    "apiserver.config.k8s.io/v1alpha1": "WebhookAdmission",
}
NOBODY = Identity()
_HTTPS = ":443"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Users by the servers they are for."""

    users: Mapping[str, Identity] = field(default_factory=dict)
    current: str = ""

    def for_server(self, address: str) -> Identity:
        """Who to be towards `host:port`: by its name, by wildcards from the longest on, both again without the HTTPS port,
        then `*`, then the user of the current context."""
        found = self._named(address)
        if found is None and address.endswith(_HTTPS):
            found = self._named(address[: -len(_HTTPS)].strip("[]"))
        return found or self.users.get("*") or self.users.get(self.current) or NOBODY

    def _named(self, name: str) -> Identity | None:
        found = self.users.get(name)
        while found is None and "." in name:
            name = name.partition(".")[2]
            found = self.users.get(f"*.{name}")
        return found


def read(source: Source) -> Credentials:
    """The configuration of a webhook plugin. Raises OSError, ConfigurationError and KubeconfigError."""
    tree = source.tree
    if not tree:
        return Credentials()
    version = str(tree.get("apiVersion", ""))
    if version not in _KINDS:
        version = next(iter(_KINDS))
    header(source, _KINDS[version], (version,), "kubeConfigFile")
    path = text(tree, source.where, "kubeConfigFile")
    if not path:
        return Credentials()
    if source.folder:
        path = os.path.join(source.folder, path)
    if not os.path.isabs(path):
        raise ConfigurationError(
            f'{source.where}.kubeConfigFile: Invalid value: "{path}": must be an absolute file path'
        )
    try:
        return Credentials(*kubeconfig_users(path))
    except KubeconfigError as error:
        raise ConfigurationError(f"{source.where}.kubeConfigFile: {path}: {error}") from None
