"""The plugins that need nobody: let everything pass, refuse everything, refuse external addresses of services."""

from __future__ import annotations

from fastapi_core.admission.chain import CREATE, UPDATE, Attributes, Plugin
from fastapi_core.admission.objects import is_core
from fastapi_core.admission.refusals import forbidden
from fastapi_core.registry.definition import ResourceDefinition, Tree


class AlwaysAdmit(Plugin):
    name = "AlwaysAdmit"


class AlwaysDeny(Plugin):
    name = "AlwaysDeny"

    def admit(self, attributes: Attributes) -> None:
        self.validate(attributes)

    def validate(self, attributes: Attributes) -> None:
        raise forbidden(attributes, "admission control is denying all modifications")


class DenyServiceExternalIPs(Plugin):
    """Services keep the external addresses they have and get no new ones."""

    name = "DenyServiceExternalIPs"

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        return operation in (CREATE, UPDATE) and is_core(definition, "services")

    def validate(self, attributes: Attributes) -> None:
        if not set(_addresses(attributes.object)) <= set(_addresses(attributes.old)):
            raise forbidden(attributes, "Use of external IPs is denied by admission control.")


def _addresses(service: Tree | None) -> list[str]:
    return list(((service or {}).get("spec") or {}).get("externalIPs") or ())
