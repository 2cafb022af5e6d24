"""ConfigMaps that tell others how this server knows callers: extension servers trust the same authorities by them."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from fastapi_core.controlplane import bootstrap

if TYPE_CHECKING:
    from fastapi_core.options.complete import Completed
    from fastapi_core.registry.definition import Tree
    from fastapi_core.registry.store import ResourceStore

CONFIG_MAPS = "/registry/configmaps/"
NAMESPACE = "kube-system"
INFO, TRACKING = "extension-apiserver-authentication", "kube-apiserver-legacy-service-account-token-tracking"


class AuthenticationInfo:
    """What stands in the ConfigMaps, from the options and the files of the moment."""

    def __init__(self, completed: Completed, config_maps: ResourceStore) -> None:
        self._completed = completed
        self._config_maps = config_maps

    def data(self) -> dict[str, str]:
        """Authorities and header names, in the form extension servers read. Raises OSError."""
        flags = self._completed.credentials.flags
        paths = [path for path in (flags.client_ca_file, self._completed.pki.ca) if path]
        found = {"client-ca-file": "".join(_read(path) for path in paths)}
        if flags.requestheader_client_ca_file:
            found["requestheader-client-ca-file"] = _read(flags.requestheader_client_ca_file)
            for key, values in (
                ("requestheader-allowed-names", flags.requestheader_allowed_names),
                ("requestheader-extra-headers-prefix", flags.requestheader_extra_headers_prefix),
                ("requestheader-group-headers", flags.requestheader_group_headers),
                ("requestheader-uid-headers", flags.requestheader_uid_headers),
                ("requestheader-username-headers", flags.requestheader_username_headers),
            ):
                if values or key != "requestheader-uid-headers":
                    found[key] = json.dumps(list(values), separators=(",", ":"))
        return found

    async def publish(self) -> None:
        """Bring the ConfigMap to what the files say now; other keys in it are left alone."""
        data = self.data()

        def told(tree: Tree) -> Tree:
            return {**tree, "data": {**(tree.get("data") or {}), **data}}

        await bootstrap.settle(self._config_maps, {"metadata": _metadata(INFO), "data": data}, told)

    async def track_legacy_tokens(self) -> None:
        """Note since when uses of tokens in secrets are noted on them."""
        since = {"since": time.strftime("%Y-%m-%d", time.gmtime())}
        await bootstrap.ensure(self._config_maps, {"metadata": _metadata(TRACKING), "data": since})


def _metadata(name: str) -> Tree:
    return {"namespace": NAMESPACE, "name": name}


def _read(path: str) -> str:
    with open(path, encoding="ascii") as file:
        text = file.read()
    return text if text.endswith("\n") else text + "\n"
