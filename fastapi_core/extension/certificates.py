"""The serving certificate of an extension: mounted files, or one that is made and kept in the data directory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi_core.options.serving import Serving


@dataclass(frozen=True, slots=True)
class ServingFiles:
    """PEM files; the TLS side follows changes of `cert` and `key`."""

    cert: str
    key: str
    ca: str = ""
    """Who signed `cert`: what goes into `caBundle`. Empty when only the one who mounted it knows."""


def serving_files(serving: Serving, names: Sequence[str], home: str) -> ServingFiles:
    """The files of the flags, else those below `home`, made and renewed as needed, for `names` and this host.

    Raises OptionsError for files and directories that cannot be used. Called at the start and once a day.
    """
    if serving.tls_cert_file:
        return ServingFiles(serving.tls_cert_file, serving.tls_private_key_file)
    from fastapi_core.options.certificates import ensure

    pki = ensure(os.path.join(home, "pki"), ["localhost", *names], ["127.0.0.1", "::1"])
    return ServingFiles(pki.serving_cert, pki.serving_key, pki.ca)
