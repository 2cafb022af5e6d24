"""Where the core API is and how this server is known there: a kubeconfig file, or the account of the pod it runs in."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlsplit

from fastapi_core.authn.outbound import KubeconfigError, Program, Remote, client_tls, kubeconfig_files, load_kubeconfig
from fastapi_core.http.client import Target
from fastapi_core.obs.files import FileWatcher

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where pods find the token of their account and the CA of the core API."""
HOST, PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"


class AccessError(Exception):
    """There is no way to the core API; the text says why."""


class NotInClusterError(AccessError):
    """This process does not run in a pod."""

    def __init__(self) -> None:
        super().__init__(f"unable to load in-cluster configuration, {HOST} and {PORT} must be defined")


class MissingError(AccessError):
    """None of the kubeconfig files that were named exists."""

    def __init__(self, tried: Sequence[str]) -> None:
        one = len(tried) == 1
        names = " and ".join(repr(path) for path in tried)
        super().__init__(f"{names} {'does' if one else 'do'} not exist, check the path{'' if one else 's'}")


class Access:
    """One way to the core API. What `remote` says is made of files and made again by `reload` when they change."""

    def __init__(self, load: Callable[[], Remote], files: tuple[str, ...]) -> None:
        self.files = files
        self._load = load
        self.reload()

    def reload(self) -> None:
        """Read the files again. Raises OSError or ValueError when they cannot be used, the old state stays then."""
        remote = self._load()
        parts = urlsplit(remote.url)
        secure = parts.scheme == "https"
        self.remote = remote
        self.target = Target(
            parts.hostname or "", parts.port or (443 if secure else 80), remote.tls, remote.server_name
        )
        self.authority = parts.netloc.rpartition("@")[2]
        self.prefix = parts.path.rstrip("/")

    def follow(self, files: FileWatcher) -> None:
        """Renewed certificates and moved servers count from the next request on."""
        files.follow(self.files, self.reload)


def by_kubeconfig(path: str, run: Program | None = None) -> Access:
    """The server and user of the file's current context; `run` as for `load_kubeconfig`. Raises AccessError."""
    try:
        return Access(lambda: load_kubeconfig(path, run), kubeconfig_files(path))
    except OSError as error:
        raise AccessError(f"{path!r}: {error.strerror or error}") from None
    except KubeconfigError as error:
        raise AccessError(f"{path!r}: {error}") from None


def in_cluster(environment: Mapping[str, str] = os.environ, folder: str = ACCOUNT) -> Access:
    """What a pod finds around itself. The token is read with every request. Raises AccessError."""
    host, port = environment.get(HOST), environment.get(PORT)
    if not host or not port:
        raise NotInClusterError
    token, ca = os.path.join(folder, "token"), os.path.join(folder, "ca.crt")
    url = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"

    def load() -> Remote:
        with open(ca, "rb") as file:
            return Remote(url, client_tls(file.read()), token_file=token)

    try:
        if not os.access(token, os.R_OK):
            raise FileNotFoundError(2, "the pod has no token of a service account", token)
        return Access(load, (ca,))
    except OSError as error:
        raise AccessError(f"{error.filename!r}: {error.strerror}") from None
    except ValueError as error:
        raise AccessError(f"{ca!r}: {error}") from None


def kubeconfigs(given: str, environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The files that a flag or $KUBECONFIG names; the first that exists counts."""
    return (given,) if given else tuple(filter(None, environment.get("KUBECONFIG", "").split(os.pathsep)))


def find(kubeconfig: str, environment: Mapping[str, str] = os.environ) -> Access:
    """The file of the flag or of $KUBECONFIG, else the pod's own account. Raises AccessError."""
    named = kubeconfigs(kubeconfig, environment)
    return by_kubeconfig(existing(named)) if named else in_cluster(environment)


def existing(named: Sequence[str]) -> str:
    """The first file that exists. Raises MissingError."""
    path = next((path for path in named if os.path.exists(path)), "")
    if not path:
        raise MissingError(named)
    return path
