"""The serving certificate of an extension: mounted files, or one that is made and kept in the data directory."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastapi_core.options.flags import OptionsError

if TYPE_CHECKING:
    from fastapi_core.options.serving import Serving

FOLDER = "pki"
"""Below the data directory: CA and serving certificate of an extension that makes its own."""
SUBJECT = "fastapi-core-extension"
"""Common name: it says nothing, clients go by the names beside it."""
BUNDLE = "ca.crt"
"""Beside a mounted certificate: who signed it, as secrets of type kubernetes.io/tls often have it."""


@dataclass(frozen=True, slots=True)
class ServingFiles:
    """PEM files; the TLS side follows changes of `cert` and `key`."""

    cert: str
    key: str
    ca: str = ""
    """Who signed `cert`: what goes into `caBundle`. Empty when only the one who mounted it knows."""


def serving_files(serving: Serving, names: Sequence[str], home: str) -> ServingFiles:
    """The files of the flags, else those below `home`, made and renewed as needed, for `names` and this host.

    Raises OptionsError for files and directories that cannot be used. Called at the start and once a day: a certificate
    made here is replaced a month before it expires, its CA stays for ten years.
    """
    if serving.tls_cert_file:
        beside = os.path.join(os.path.dirname(serving.tls_cert_file), BUNDLE)
        return ServingFiles(
            serving.tls_cert_file, serving.tls_private_key_file, beside if os.path.isfile(beside) else ""
        )
    more = (serving.external_hostname,) if serving.external_hostname else ()
    addresses = (serving.advertise_address,) if serving.advertise_address else ()
    return made(os.path.join(home, FOLDER), (*names, *more), addresses)


def made(folder: str, names: Sequence[str], addresses: Sequence[str] = ()) -> ServingFiles:
    """Certificate and CA in `folder`, made when they are missing, expire soon or are for other names. Raises OptionsError."""
    from fastapi_core.options.certificates import CertificatesError, ensure

    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with _alone(folder):
            pki = ensure(folder, ["localhost", *names], ["127.0.0.1", "::1", *addresses], subject=SUBJECT, admin=False)
    except CertificatesError as error:
        raise OptionsError([f"--data-dir: {error}"]) from None
    except OSError as error:
        fix = "give a directory this user may write to, or mounted files by --tls-cert-file and --tls-private-key-file"
        raise OptionsError([f"--data-dir: {error.filename or folder!r}: {error.strerror or error}: {fix}"]) from None
    return ServingFiles(pki.serving_cert, pki.serving_key, pki.ca)


@contextmanager
def _alone(folder: str) -> Iterator[None]:
    """The server and `register` may be started at the same moment: one makes the files, the other finds them."""
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)
