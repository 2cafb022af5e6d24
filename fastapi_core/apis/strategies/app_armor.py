"""The two spellings of a container's AppArmor profile: on create the annotation of old becomes the field.

Source: the version skew rules of KEP-24.
"""

from __future__ import annotations

from fastapi_core.registry.definition import Tree

ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
_DEFAULT, _UNCONFINED, _LOCALHOST = "runtime/default", "unconfined", "localhost/"


def synchronize(pod: Tree) -> None:
    """Give each container that has only the annotation the field. One that cannot be read as a field stands alone."""
    spec: Tree = pod.get("spec") or {}
    annotations: dict[str, str] = pod["metadata"].get("annotations") or {}
    if (spec.get("os") or {}).get("name") == "windows" or not any(key.startswith(ANNOTATION) for key in annotations):
        return
    whole: Tree | None = (spec.get("securityContext") or {}).get("appArmorProfile")
    for group in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(group) or ():
            key = ANNOTATION + container.get("name", "")
            context: Tree = container.get("securityContext") or {}
            found = field_of(annotations.get(key, "")) if context.get("appArmorProfile") is None else None
            if found is not None and found != whole:
                container["securityContext"] = {**context, "appArmorProfile": found}


def field_of(text: str) -> Tree | None:
    """The field that means the same as an annotation, None when there is no valid one."""
    if text == _DEFAULT:
        return {"type": "RuntimeDefault"}
    if text == _UNCONFINED:
        return {"type": "Unconfined"}
    local = text.removeprefix(_LOCALHOST)
    valid = local != text and local and local.strip() == local and len(local) <= 4095
    return {"type": "Localhost", "localhostProfile": local} if valid else None
