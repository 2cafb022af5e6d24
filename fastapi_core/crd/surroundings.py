"""What custom resources have in common with each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fastapi_core.records import dataclass

if TYPE_CHECKING:
    from fastapi_core.admission.chain import AdmissionChain
    from fastapi_core.authz.base import Authorizer
    from fastapi_core.crd.definitions import Definition
    from fastapi_core.crd.scope import Converter
    from fastapi_core.rest.backends import Backends
    from fastapi_core.rest.watch import WatchServer
    from fastapi_core.storage.cacher.cacher import Cacher
    from fastapi_core.storage.interface import Storage


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every custom resource is served with."""

    storage: Storage
    cacher: Cacher
    admission: Callable[[], AdmissionChain]
    authorizer: Authorizer | None
    watches: WatchServer
    backends: Backends
    converter: Callable[[Definition], Converter | None]
