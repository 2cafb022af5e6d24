"""Plugins about certificates: who may approve, sign and attest for a signer, and what nobody may ask for."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable

from fastapi_core.admission.chain import CREATE, UPDATE, Attributes, Plugin
from fastapi_core.admission.questions import Questions
from fastapi_core.admission.refusals import forbidden
from fastapi_core.registry.definition import ResourceDefinition

GROUP, REQUESTS, BUNDLES = "certificates.k8s.io", "certificatesigningrequests", "clustertrustbundles"
CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"
MASTERS = "system:masters"


class _SignerPlugin(Plugin):
    """Whoever does `verb` for a signer needs the right to, for the signer or for all of its domain."""

    verb, wording = "", ""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def _ask(self, attributes: Attributes, signer: str) -> None:
        domain = signer.partition("/")[0]
        for name in (signer, f"{domain}/*"):
            verdict = await self._questions.ask(
                attributes, self.verb, group=GROUP, version="*", resource="signers", name=name
            )
            if verdict.allowed:
                return
        raise forbidden(attributes, f'user not permitted to {self.wording} signerName "{signer}"')


class CertificateApproval(_SignerPlugin):
    name, verb, wording = "CertificateApproval", "approve", "approve requests with"

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        known = definition.group == GROUP and definition.plural == REQUESTS
        return known and (operation, subresource) == (UPDATE, "approval")

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        return self._ask(attributes, ((attributes.old or {}).get("spec") or {}).get("signerName") or "")


class CertificateSigning(_SignerPlugin):
    name, verb, wording = "CertificateSigning", "sign", "sign requests with"

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        known = definition.group == GROUP and definition.plural == REQUESTS
        return known and (operation, subresource) == (UPDATE, "status")

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        new, old = (attributes.object or {}).get("status") or {}, (attributes.old or {}).get("status") or {}
        if all((new.get(member) or None) == (old.get(member) or None) for member in ("certificate", "conditions")):
            return None
        return self._ask(attributes, ((attributes.old or {}).get("spec") or {}).get("signerName") or "")


class ClusterTrustBundleAttest(_SignerPlugin):
    name, verb, wording = "ClusterTrustBundleAttest", "attest", "attest for"

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        known = definition.group == GROUP and definition.plural == BUNDLES
        return known and not subresource and operation in (CREATE, UPDATE)

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        signer = ((attributes.object or {}).get("spec") or {}).get("signerName") or ""
        if attributes.old is not None and ((attributes.old.get("spec") or {}).get("signerName") or "") != signer:
            raise forbidden(attributes, "changing signerName is forbidden")
        return self._ask(attributes, signer) if signer else None


class CertificateSubjectRestriction(Plugin):
    """Nobody asks for a client certificate that makes an administrator of its holder."""

    name = "CertificateSubjectRestriction"

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        known = definition.group == GROUP and definition.plural == REQUESTS
        return known and not subresource and operation == CREATE

    def validate(self, attributes: Attributes) -> None:
        spec = (attributes.object or {}).get("spec") or {}
        if spec.get("signerName") != CLIENT_SIGNER:
            return
        try:
            groups = organizations(base64.b64decode(spec.get("request") or ""))
        except (ValueError, binascii.Error) as error:
            raise forbidden(attributes, f"failed to parse CSR: {error}") from None
        if MASTERS in groups:
            raise forbidden(attributes, f"use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed")


def organizations(pem: bytes) -> list[str]:
    """Organizations of a signing request's subject; ValueError when it is none."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    request = x509.load_pem_x509_csr(pem)
    return [str(attribute.value) for attribute in request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
