"""Plugins about storage: the default class, growing claims, and not losing what is in use."""

from __future__ import annotations

from fastapi_core.admission.amounts import amounts
from fastapi_core.admission.chain import CREATE, UPDATE, Attributes, Plugin
from fastapi_core.admission.objects import Objects, annotations_of, decoded, is_core
from fastapi_core.admission.refusals import forbidden
from fastapi_core.registry.definition import ResourceDefinition, Tree

CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
DEFAULT_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
FINALIZERS = {
    "persistentvolumes": "kubernetes.io/pv-protection",
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
    "volumeattributesclasses": "kubernetes.io/vac-protection",
}


def newest_default(classes: Objects, *annotations: str) -> str | None:
    """The name of the class marked as default; of several the one made last, then the first by name."""
    marked = [
        tree["metadata"]
        for tree in map(decoded, classes.list())
        if any(annotations_of(tree).get(annotation) == "true" for annotation in annotations)
    ]
    if not marked:
        return None
    latest = max(metadata.get("creationTimestamp") or "" for metadata in marked)
    name: str = min(m["name"] for m in marked if (m.get("creationTimestamp") or "") == latest)
    return name


def class_of(claim: Tree) -> str:
    """The storage class of a claim, by the old annotation or the field."""
    given = annotations_of(claim).get(CLASS_ANNOTATION)
    if given is None:
        given = (claim.get("spec") or {}).get("storageClassName")
    return given or ""


class DefaultStorageClass(Plugin):
    name = "DefaultStorageClass"

    def __init__(self, classes: Objects) -> None:
        self._classes = classes

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        return operation == CREATE and not subresource and is_core(definition, "persistentvolumeclaims")

    def admit(self, attributes: Attributes) -> None:
        claim = attributes.object
        if claim is None or CLASS_ANNOTATION in annotations_of(claim):
            return
        spec = claim.setdefault("spec", {})
        if spec.get("storageClassName") is None:
            name = newest_default(self._classes, *DEFAULT_ANNOTATIONS)
            if name is not None:
                spec["storageClassName"] = name


class StorageObjectInUseProtection(Plugin):
    """Volumes, claims and attribute classes get the finalizer that a controller takes off once nobody uses them."""

    name = "StorageObjectInUseProtection"

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        group = "storage.k8s.io" if definition.plural == "volumeattributesclasses" else ""
        mine = definition.plural in FINALIZERS and definition.group == group
        return operation == CREATE and not subresource and mine

    def admit(self, attributes: Attributes) -> None:
        if attributes.object is None:
            return
        metadata = attributes.object["metadata"]
        finalizer = FINALIZERS[attributes.definition.plural]
        present = metadata.get("finalizers") or []
        if finalizer not in present:
            metadata["finalizers"] = [*present, finalizer]


class PersistentVolumeClaimResize(Plugin):
    """A claim grows only when its class says that its volumes can."""

    name = "PersistentVolumeClaimResize"

    def __init__(self, classes: Objects) -> None:
        self._classes = classes

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        return operation == UPDATE and not subresource and is_core(definition, "persistentvolumeclaims")

    def validate(self, attributes: Attributes) -> None:
        claim, old = attributes.object, attributes.old
        if claim is None or old is None:
            return
        size, before = _size(claim), _size(old)
        if size is None or before is None or size <= before:
            return
        if (old.get("status") or {}).get("phase") != "Bound":
            raise forbidden(attributes, "Only bound persistent volume claims can be expanded")
        if not self._expandable(class_of(claim), class_of(old)):
            text = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must"
            raise forbidden(attributes, f"{text} support resize")

    def _expandable(self, name: str, before: str) -> bool:
        found = self._classes.get("", name) if name and name == before else None
        return found is not None and bool(found.get("allowVolumeExpansion"))


def _size(claim: Tree) -> int | None:
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests")
    found = amounts(requests).get("storage")
    return None if found is None else found.nanos
