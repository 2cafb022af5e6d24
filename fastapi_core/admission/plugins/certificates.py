"""CertificateSubjectRestriction: nobody asks for a client certificate that makes an administrator of its holder."""

from __future__ import annotations

import base64
import binascii

from fastapi_core import errors
from fastapi_core.admission.chain import Attributes, Plugin

CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"
MASTERS = "system:masters"


class CertificateSubjectRestriction(Plugin):
    name = "CertificateSubjectRestriction"

    def validate(self, attributes: Attributes) -> None:
        definition = attributes.definition
        if (
            definition.group != "certificates.k8s.io"
            or definition.plural != "certificatesigningrequests"
            or attributes.subresource
            or attributes.operation != "CREATE"
            or attributes.object is None
        ):
            return
        spec = attributes.object.get("spec") or {}
        if spec.get("signerName") != CLIENT_SIGNER:
            return
        try:
            groups = organizations(base64.b64decode(spec.get("request") or ""))
        except (ValueError, binascii.Error) as error:
            raise self._refuse(attributes, f"failed to parse CSR: {error}") from None
        if MASTERS in groups:
            raise self._refuse(attributes, f"use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed")

    @staticmethod
    def _refuse(attributes: Attributes, text: str) -> errors.APIError:
        return errors.forbidden("certificatesigningrequests", "certificates.k8s.io", attributes.name, text)


def organizations(pem: bytes) -> list[str]:
    """Organizations of a signing request's subject; ValueError when it is none."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    request = x509.load_pem_x509_csr(pem)
    return [str(attribute.value) for attribute in request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
