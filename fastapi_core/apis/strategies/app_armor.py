"""The two spellings of a container's AppArmor profile, the annotation of old and the field, kept in step on create.

Source: the version skew rules of KEP-24.
"""

from __future__ import annotations

from fastapi_core.registry.definition import Tree

ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
_DEFAULT, _UNCONFINED, _LOCALHOST = "runtime/default", "unconfined", "localhost/"


def synchronize(pod: Tree) -> None:
    """Give each container the spelling it lacks. A profile that cannot be read as a field is left to stand alone."""
    spec: Tree = pod.get("spec") or {}
    if (spec.get("os") or {}).get("name") == "windows":
        return
    annotations: dict[str, str] = pod["metadata"].get("annotations") or {}
    whole: Tree | None = (spec.get("securityContext") or {}).get("appArmorProfile")
    added: dict[str, str] = {}
    for group in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(group) or ():
            key = ANNOTATION + container.get("name", "")
            profile: Tree | None = (container.get("securityContext") or {}).get("appArmorProfile")
            if key not in annotations:
                text = annotation_of(profile or whole)
                if text:
                    added[key] = text
            elif profile is None:
                found = field_of(annotations[key])
                if found is not None and found != whole:
                    container["securityContext"] = {
                        **(container.get("securityContext") or {}),
                        "appArmorProfile": found,
                    }
    if added:
        pod["metadata"]["annotations"] = dict(sorted({**annotations, **added}.items()))


def annotation_of(profile: Tree | None) -> str:
    """The annotation that means the same as a field; empty when there is none."""
    kind = (profile or {}).get("type")
    if kind == "RuntimeDefault":
        return _DEFAULT
    if kind == "Unconfined":
        return _UNCONFINED
    local = (profile or {}).get("localhostProfile")
    return _LOCALHOST + local if kind == "Localhost" and local else ""


def field_of(text: str) -> Tree | None:
    """The field that means the same as an annotation, None when there is no valid one."""
    if text == _DEFAULT:
        return {"type": "RuntimeDefault"}
    if text == _UNCONFINED:
        return {"type": "Unconfined"}
    local = text.removeprefix(_LOCALHOST)
    valid = local != text and local and local.strip() == local and len(local) <= 4095
    return {"type": "Localhost", "localhostProfile": local} if valid else None
