"""Which strategy goes with which kind."""

from __future__ import annotations

from collections.abc import Callable

from fastapi_core.apis.strategies import config, kinds, pods, services
from fastapi_core.apis.strategies.basics import (
    Prepare,
    Tree,
    Validate,
    Warn,
    generations,
    keep_desired,
    keep_metadata,
    sequence,
    wipe_status,
)
from fastapi_core.apis.strategies.disabled import DROPPED
from fastapi_core.apis.validation.index import validator
from fastapi_core.apis.validation.warnings import STATUS_WARNINGS, WARNINGS
from fastapi_core.errors import FieldError
from fastapi_core.records import dataclass
from fastapi_core.registry.definition import Strategy
from fastapi_core.request.context import User


def _valid(new: Tree, old: Tree | None) -> list[FieldError]:
    return []


def _nothing(new: Tree, old: Tree | None) -> None:
    return None


def _silent(new: Tree, old: Tree | None) -> list[str]:
    return []


def _guard(new: Tree, old: Tree | None) -> None:
    """The status writer of such a kind cannot change metadata either."""
    if old is not None:
        keep_metadata(new, old)


@dataclass(frozen=True, slots=True)
class Special:
    """What one kind adds. `own_status` tells that `prepare` decides about status itself, `counted_first` that the
    generation follows what the user sent and not what `prepare` makes of it."""

    prepare: Prepare | None = None
    prepare_status: Prepare | None = None
    validate: Validate | None = None
    warnings: Warn = _silent
    own_status: bool = False
    counted_first: bool = False
    requester: Callable[[Tree, User], None] | None = None
    canonicalize: Prepare = _nothing


_GUARDED = Special(prepare_status=_guard)
_SPECIAL: dict[tuple[str, str], Special] = {
    ("", "ConfigMap"): Special(validate=config.validate_config_map),
    ("", "Secret"): Special(prepare=config.keep_type, validate=config.validate_secret),
    ("", "ServiceAccount"): Special(prepare=config.only_names),
    ("", "LimitRange"): Special(prepare=kinds.prepare_limit_range),
    ("", "Namespace"): Special(prepare=kinds.prepare_namespace, validate=kinds.validate_namespace),
    ("", "Node"): Special(prepare=kinds.prepare_node, prepare_status=kinds.prepare_node_status, own_status=True),
    ("", "PersistentVolume"): Special(prepare=kinds.prepare_volume, prepare_status=kinds.prepare_volume_status),
    ("", "PersistentVolumeClaim"): Special(prepare=kinds.prepare_claim),
    ("", "Pod"): Special(prepare=pods.prepare, prepare_status=pods.prepare_status, canonicalize=pods.canonicalize),
    ("", "Service"): Special(prepare=services.prepare, canonicalize=services.canonicalize),
    ("apps", "DaemonSet"): Special(prepare=kinds.prepare_daemon_set, prepare_status=kinds.prepare_daemon_set_status),
    ("apps", "Deployment"): Special(prepare_status=kinds.keep_labels),
    ("apps", "StatefulSet"): Special(prepare=kinds.prepare_stateful_set),
    ("batch", "Job"): Special(prepare=kinds.prepare_job),
    ("storage.k8s.io", "VolumeAttributesClass"): Special(prepare=kinds.prepare_attributes_class),
    ("storage.k8s.io", "VolumeAttachment"): _GUARDED,
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): _GUARDED,
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): _GUARDED,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): _GUARDED,
    ("networking.k8s.io", "ServiceCIDR"): _GUARDED,
    ("resource.k8s.io", "DeviceTaintRule"): _GUARDED,
    ("resource.k8s.io", "ResourceClaim"): Special(prepare_status=kinds.prepare_claim_status),
    ("resource.k8s.io", "ResourcePoolStatusRequest"): _GUARDED,
    ("scheduling.k8s.io", "PodGroup"): _GUARDED,
    ("apiregistration.k8s.io", "APIService"): Special(prepare=kinds.prepare_api_service, prepare_status=_guard),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): Special(
        prepare=kinds.prepare_definition, prepare_status=kinds.prepare_definition_status
    ),
    ("certificates.k8s.io", "CertificateSigningRequest"): Special(
        prepare=kinds.prepare_request, requester=kinds.fill_requester
    ),
    ("discovery.k8s.io", "EndpointSlice"): Special(prepare=kinds.prepare_endpoint_slice, counted_first=True),
    ("networking.k8s.io", "Ingress"): Special(warnings=kinds.ingress_warnings),
}
_PLAIN = Special()


def strategy_for(group: str, kind: str, *, status: bool, generation: int, bump: bool) -> Strategy:
    """The strategy of a built-in kind.

    `status`: it has a status subresource; `generation`: its generation on create, 0 for none; `bump`: the generation
    counts changes. `prepare` needs the metadata that the store stamps (uid, name) to be there.
    """
    special = _SPECIAL.get((group, kind), _PLAIN)
    count = generations(kind, generation, bump)
    return Strategy(
        prepare=sequence(
            wipe_status if status and not special.own_status else None,
            count if special.counted_first else None,
            DROPPED.get((group, kind)),
            special.prepare,
            None if special.counted_first else count,
        ),
        prepare_status=sequence(keep_desired, special.prepare_status, generations(kind, generation, bump=False)),
        validate=validator(group, kind) or special.validate or _valid,
        warnings=WARNINGS.get((group, kind), special.warnings),
        status_warnings=STATUS_WARNINGS.get((group, kind), _silent),
        requester=special.requester,
        canonicalize=special.canonicalize,
    )
