"""The objects of a registration, as trees and with the paths they are reached by."""

from __future__ import annotations

import ipaddress
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastapi_core.extension.delegated.client import segment
from fastapi_core.extension.delegated.published import NAMESPACE as SYSTEM
from fastapi_core.extension.delegated.published import ROLE as READER
from fastapi_core.extension.registration.options import APP_LABEL, address, host_port

if TYPE_CHECKING:
    from fastapi_core.extension.description import Description, ServedResource
    from fastapi_core.extension.registration.options import Registration

Tree = dict[str, Any]

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "fastapi-core-extension"
MARK = "extension.fastapi-core/registration"
"""Annotation of what a registration has made: namespace and name of the Service. Nothing else is ever deleted."""
DELEGATOR = "system:auth-delegator"
SERVICE_NAME = "kubernetes.io/service-name"
SLICE_MANAGER = "endpointslice.kubernetes.io/managed-by"
_RBAC, _RBAC_GROUP = "rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io"
_READ = frozenset({"get", "list", "watch"})
_PORT_NAME = "https"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object that a registration makes."""

    kind: str
    api_version: str
    plural: str
    namespaced: bool = True

    def collection(self, namespace: str = "") -> str:
        root = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        place = f"/namespaces/{segment(namespace)}" if self.namespaced else ""
        return f"{root}{place}/{self.plural}"


NAMESPACES = Kind("Namespace", "v1", "namespaces", namespaced=False)
ACCOUNTS = Kind("ServiceAccount", "v1", "serviceaccounts")
SECRETS = Kind("Secret", "v1", "secrets")
SERVICES = Kind("Service", "v1", "services")
SLICES = Kind("EndpointSlice", "discovery.k8s.io/v1", "endpointslices")
CLUSTER_ROLES = Kind("ClusterRole", _RBAC, "clusterroles", namespaced=False)
CLUSTER_BINDINGS = Kind("ClusterRoleBinding", _RBAC, "clusterrolebindings", namespaced=False)
BINDINGS = Kind("RoleBinding", _RBAC, "rolebindings")
API_SERVICES = Kind("APIService", "apiregistration.k8s.io/v1", "apiservices", namespaced=False)


@dataclass(frozen=True, slots=True)
class Object:
    """One object: what it is and what is to be in it (without the mark)."""

    kind: Kind
    namespace: str
    name: str
    content: Tree

    @property
    def path(self) -> str:
        return f"{self.kind.collection(self.namespace)}/{segment(self.name)}"

    @property
    def shown(self) -> str:
        """As kubectl names it."""
        group = self.kind.api_version.partition("/")[0] if "/" in self.kind.api_version else ""
        return f"{self.kind.kind.lower()}{'.' + group if group else ''}/{self.name}"

    def tree(self, mark: str = "") -> Tree:
        """The manifest; with a `mark` the object is ours and goes when we go."""
        metadata: Tree = {"name": self.name}
        if self.namespace:
            metadata["namespace"] = self.namespace
        given = self.content.get("metadata") or {}
        labels, annotations = dict(given.get("labels") or {}), dict(given.get("annotations") or {})
        if mark:
            labels[MANAGED_BY] = MANAGER
            annotations[MARK] = mark
        if labels:
            metadata["labels"] = labels
        if annotations:
            metadata["annotations"] = annotations
        rest = {key: value for key, value in self.content.items() if key != "metadata"}
        return {"apiVersion": self.kind.api_version, "kind": self.kind.kind, "metadata": metadata, **rest}


def mark_of(description: Description) -> str:
    """What the annotation says."""
    return f"{description.namespace}/{description.name}"


def objects(description: Description, options: Registration, ca: bytes, secret: Object | None = None) -> list[Object]:
    """All objects in the order they are made. `ca` is the bundle (empty: the authorities of the API server's system)."""
    name, namespace = description.name, description.namespace
    found = [Object(NAMESPACES, "", namespace, {})] if options.create_namespace else []
    found += [Object(ACCOUNTS, namespace, name, {}), *_bindings(description, options.user)]
    if options.roles:
        found += _roles(description)
    if secret is not None:
        found.append(secret)
    port = options.port
    if options.external_name:
        host, port = host_port(options.external_name)
        spec: Tree = {"type": "ExternalName", "externalName": host}
    else:
        spec = {"ports": [{"name": _PORT_NAME, "port": port, "protocol": "TCP", "targetPort": options.target_port}]}
        if not options.endpoint:
            spec["selector"] = dict(options.selector) or {APP_LABEL: name}
    found.append(Object(SERVICES, namespace, name, {"spec": spec}))
    found += _slices(description, options.endpoint)
    return [*found, *_api_services(description, port, ca, insecure=options.insecure_skip_tls_verify)]


def _bindings(description: Description, users: Iterable[str]) -> list[Object]:
    """What delegation needs: reviews, and the ConfigMap that says whom to believe."""
    subjects: list[Tree] = [
        {"kind": "ServiceAccount", "name": description.name, "namespace": description.namespace},
        *({"kind": "User", "name": user, "apiGroup": _RBAC_GROUP} for user in users),
    ]
    prefix = f"{description.namespace}:{description.name}"
    return [
        Object(
            CLUSTER_BINDINGS, "", f"{prefix}:auth-delegator",
            {"roleRef": {"apiGroup": _RBAC_GROUP, "kind": "ClusterRole", "name": DELEGATOR}, "subjects": subjects},
        ),
        Object(
            BINDINGS, SYSTEM, f"{prefix}:auth-reader",
            {"roleRef": {"apiGroup": _RBAC_GROUP, "kind": "Role", "name": READER}, "subjects": subjects},
        ),
    ]  # fmt: skip


def _roles(description: Description) -> list[Object]:
    """Those who may view or edit a namespace may do so with these resources."""
    prefix = f"{description.namespace}:{description.name}"
    made = []
    for name, into, verbs_of in (
        ("view", ("view", "edit", "admin"), lambda verbs: [v for v in verbs if v in _READ]),
        ("edit", ("edit", "admin"), lambda verbs: [v for v in verbs if v not in _READ]),
    ):
        rules = _rules(description.resources, verbs_of)
        if rules:
            labels = {f"{_RBAC_GROUP}/aggregate-to-{role}": "true" for role in into}
            made.append(Object(CLUSTER_ROLES, "", f"{prefix}:{name}", {"metadata": {"labels": labels}, "rules": rules}))
    return made


def _rules(resources: Iterable[ServedResource], verbs_of: Any) -> list[Tree]:
    """A rule for each set of verbs of a group."""
    together: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for resource in resources:
        verbs = tuple(verbs_of(resource.verbs))
        names = together.setdefault((resource.group, verbs), [])
        if verbs and resource.name not in names:
            names.append(resource.name)
    return [
        {"apiGroups": [group], "resources": names, "verbs": list(verbs)}
        for (group, verbs), names in together.items()
        if names
    ]


def _slices(description: Description, endpoints: Iterable[str]) -> list[Object]:
    """A slice for each family of addresses and port: the ports of a slice are those of all its addresses."""
    together: dict[tuple[str, int], list[str]] = {}
    for text in endpoints:
        host, port = address(text)
        family = f"IPv{ipaddress.ip_address(host).version}"
        together.setdefault((family, port), []).append(host)
    return [
        Object(
            SLICES, description.namespace, f"{description.name}-{family.lower()}-{port}",
            {
                "metadata": {"labels": {SERVICE_NAME: description.name, SLICE_MANAGER: MANAGER}},
                "addressType": family,
                "endpoints": [{"addresses": [host], "conditions": {"ready": True}} for host in hosts],
                "ports": [{"name": _PORT_NAME, "port": port, "protocol": "TCP"}],
            },
        )
        for (family, port), hosts in together.items()
    ]  # fmt: skip


def _api_services(description: Description, port: int, ca: bytes, *, insecure: bool) -> list[Object]:
    trust: Tree = {"insecureSkipTLSVerify": True} if insecure else {"caBundle": b64encode(ca).decode()}
    return [
        Object(
            API_SERVICES, "", version.name,
            {
                "spec": {
                    "group": version.group,
                    "version": version.version,
                    "groupPriorityMinimum": version.group_priority,
                    "versionPriority": version.version_priority,
                    "service": {"name": description.name, "namespace": description.namespace, "port": port},
                    **trust,
                }
            },
        )
        for version in description.versions
    ]  # fmt: skip
