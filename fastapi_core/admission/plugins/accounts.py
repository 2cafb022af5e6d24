"""ServiceAccount: every pod runs as an account that exists, and mounts a token of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Iterator
from typing import Any

from fastapi_core._ext.objects import CachedObject
from fastapi_core.admission.chain import CREATE, UPDATE, Attributes, Plugin
from fastapi_core.admission.objects import Objects, annotations_of, decoded, is_core
from fastapi_core.admission.refusals import forbidden, unaskable
from fastapi_core.errors import go_quote
from fastapi_core.meta import names
from fastapi_core.registry.definition import ResourceDefinition, Tree

DEFAULT = "default"
MIRROR = "kubernetes.io/config.mirror"
ENFORCE = "kubernetes.io/enforce-mountable-secrets"
VOLUME, MOUNT_PATH = "kube-api-access-", "/var/run/secrets/kubernetes.io/serviceaccount"
TOKEN_SECONDS = 3607
#: The account `default` is made by a controller soon after its namespace; pods wait this long for it, in seconds.
PATIENCE = 1.5

_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_GROUPS = (("initContainers", "init container"), ("containers", "container"))


class ServiceAccount(Plugin):
    name = "ServiceAccount"

    def __init__(self, accounts: Objects, patience: float = PATIENCE) -> None:
        self._accounts = accounts
        self._patience = patience

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        known = ((CREATE, ""), (UPDATE, "ephemeralcontainers"))
        return is_core(definition, "pods") and (operation, subresource) in known

    # Mutating

    def admit(self, attributes: Attributes) -> Awaitable[None] | None:
        pod = attributes.object
        if pod is None or attributes.operation != CREATE:
            return None
        if MIRROR in annotations_of(pod):
            check_mirror(attributes, pod)
            return None
        spec = pod["spec"]
        name = spec.get("serviceAccountName") or DEFAULT
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        found = self._accounts.find(attributes.namespace, name)
        if found is None:
            return self._late(attributes, pod, name)
        self._settle(attributes, pod, decoded(found))
        return None

    async def _late(self, attributes: Attributes, pod: Tree, name: str) -> None:
        """The account may be there in a moment, or on another server already."""
        pending = self._accounts.fresh()
        if pending is not None:
            await pending
        found = self._accounts.find(attributes.namespace, name)
        if found is None and name == DEFAULT:
            found = await self._appearing(attributes.namespace, name)
        if found is None:
            raise missing(attributes, name)
        self._settle(attributes, pod, decoded(found))

    async def _appearing(self, namespace: str, name: str) -> CachedObject | None:
        """The account as soon as it is created, None when it is not within the time."""
        cache = self._accounts.store.cache
        created = asyncio.Event()
        started = cache.watch(f"{namespace}/", name=name, since=cache.revision, deliver=lambda events: created.set())
        watcher = await started if isinstance(started, Awaitable) else started
        try:
            async with asyncio.timeout(self._patience):
                await created.wait()
        except TimeoutError:
            pass
        finally:
            watcher.stop()
        return self._accounts.find(namespace, name)

    def _settle(self, attributes: Attributes, pod: Tree, account: Tree) -> None:
        spec = pod["spec"]
        automount = spec.get("automountServiceAccountToken")
        if automount is None:
            automount = account.get("automountServiceAccountToken", True)
        if automount:
            mount_token(spec)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [{"name": s.get("name", "")} for s in account["imagePullSecrets"]]
        check_secrets(attributes, pod, account)

    # Validating

    def validate(self, attributes: Attributes) -> None:
        pod = attributes.object
        if pod is None:
            return
        spec = pod.get("spec") or {}
        name = spec.get("serviceAccountName") or ""
        if attributes.operation == UPDATE:
            found = self._accounts.find(attributes.namespace, name or DEFAULT)
            if found is not None and enforced(decoded(found)):
                account = decoded(found)
                texts = foreign_secrets(spec, account, (("ephemeralContainers", "ephemeral container"),))
                raise_first(attributes, texts)
            return
        if MIRROR in annotations_of(pod):
            check_mirror(attributes, pod)
            return
        if not name:
            where = f"{attributes.namespace}/{pod['metadata'].get('name') or ''}"
            raise forbidden(attributes, f"no service account specified for pod {where}")
        found = self._accounts.find(attributes.namespace, name)
        if found is None:
            raise missing(attributes, name)
        check_secrets(attributes, pod, decoded(found))


def missing(attributes: Attributes, name: str) -> Exception:
    wrong = unaskable(name)
    reason = wrong or f"serviceaccount {go_quote(name)} not found"
    return forbidden(attributes, f"error looking up service account {attributes.namespace}/{name}: {reason}")


def raise_first(attributes: Attributes, texts: Iterable[str]) -> None:
    for text in texts:
        raise forbidden(attributes, text)


def mount_token(spec: Tree) -> None:
    """Add the volume with the token, the cluster's CA and the namespace, and mount it where nothing else is."""
    volumes: list[Tree] = spec.get("volumes") or []
    name = next((v["name"] for v in volumes if v["name"].startswith(VOLUME)), "")
    present = bool(name)
    name = name or names.generate(VOLUME)
    needed = False
    for member, _ in _GROUPS:
        for container in spec.get(member) or ():
            mounts = container.get("volumeMounts") or []
            if all(mount.get("mountPath") != MOUNT_PATH for mount in mounts):
                container["volumeMounts"] = [*mounts, {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}]
                needed = True
    if needed and not present:
        spec["volumes"] = [*volumes, {"name": name, "projected": token_source()}]


def token_source() -> Tree:
    """The projected volume with what a pod needs to call this server."""
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [namespace]}},
        ],
        "defaultMode": 420,
    }


def check_mirror(attributes: Attributes, pod: Tree) -> None:
    """The API's picture of a static pod: it can use nothing that only the API can give."""
    spec = pod.get("spec") or {}
    if spec.get("serviceAccountName"):
        raise forbidden(attributes, "a mirror pod may not reference service accounts")
    if any(True for _ in secret_names(spec)):
        raise forbidden(attributes, "a mirror pod may not reference secrets")
    for volume in spec.get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if source.get("serviceAccountToken") is not None:
                raise forbidden(attributes, "a mirror pod may not use ServiceAccountToken volume projections")


def enforced(account: Tree) -> bool:
    return (account["metadata"].get("annotations") or {}).get(ENFORCE) in _TRUE


def check_secrets(attributes: Attributes, pod: Tree, account: Tree) -> None:
    """Where the account asks for it, pods use only the secrets it names."""
    if not enforced(account):
        return
    spec = pod["spec"]
    name = account["metadata"]["name"]
    ours = {secret.get("name") for secret in account.get("secrets") or ()}
    for volume in spec.get("volumes") or ():
        secret = volume.get("secret")
        if secret is not None and secret.get("secretName", "") not in ours:
            shown = secret.get("secretName", "")
            text = f'volume with secret.secretName="{shown}" is not allowed because service account {name} does not'
            raise forbidden(attributes, f"{text} reference that secret")
    raise_first(attributes, foreign_secrets(spec, account, _GROUPS))
    pull = {secret.get("name") for secret in account.get("imagePullSecrets") or ()}
    for index, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if secret.get("name") not in pull:
            shown = secret.get("name", "")
            text = f'imagePullSecrets[{index}].name="{shown}" is not allowed because service account {name} does not'
            raise forbidden(attributes, f"{text} reference that imagePullSecret")


def foreign_secrets(spec: Tree, account: Tree, groups: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Environments of containers taken from secrets that the account does not name."""
    ours = {secret.get("name") for secret in account.get("secrets") or ()}
    tail = f"is not allowed because service account {account['metadata']['name']} does not reference that secret"
    for member, label in groups:
        for container in spec.get(member) or ():
            for variable in container.get("env") or ():
                used = _named((variable.get("valueFrom") or {}).get("secretKeyRef"))
                if used is not None and used not in ours:
                    what = f"{label} {container['name']} with envVar {variable.get('name', '')}"
                    yield f'{what} referencing secret.secretName="{used}" {tail}'
            for source in container.get("envFrom") or ():
                used = _named(source.get("secretRef"))
                if used is not None and used not in ours:
                    what = f"{label} {container['name']} with envFrom"
                    yield f'{what} referencing secret.secretName="{used}" {tail}'


def _named(reference: Tree | None) -> str | None:
    return None if reference is None else reference.get("name") or ""


#: Volumes that take their credentials from a secret: source -> member with the reference or the name.
_CREDENTIALS = {
    "azureFile": "secretName", "cephfs": "secretRef", "cinder": "secretRef", "flexVolume": "secretRef",
    "rbd": "secretRef", "secret": "secretName", "scaleIO": "secretRef", "iscsi": "secretRef", "storageos": "secretRef",
    "csi": "nodePublishSecretRef",
}  # fmt: skip


def secret_names(spec: Tree) -> Iterator[str]:
    """Names of all secrets a pod refers to."""
    for secret in spec.get("imagePullSecrets") or ():
        yield secret.get("name") or ""
    yield from _environment_names(spec, "secretRef", "secretKeyRef")
    for volume in spec.get("volumes") or ():
        for source, member in _CREDENTIALS.items():
            found: Any = (volume.get(source) or {}).get(member)
            if found is not None:
                yield found if isinstance(found, str) else found.get("name") or ""
        for part in (volume.get("projected") or {}).get("sources") or ():
            if part.get("secret") is not None:
                yield part["secret"].get("name") or ""


def configmap_names(spec: Tree) -> Iterator[str]:
    """Names of all ConfigMaps a pod refers to."""
    yield from _environment_names(spec, "configMapRef", "configMapKeyRef")
    for volume in spec.get("volumes") or ():
        if volume.get("configMap") is not None:
            yield volume["configMap"].get("name") or ""
        for part in (volume.get("projected") or {}).get("sources") or ():
            if part.get("configMap") is not None:
                yield part["configMap"].get("name") or ""


def _environment_names(spec: Tree, whole: str, single: str) -> Iterator[str]:
    for member in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(member) or ():
            for source in container.get("envFrom") or ():
                if source.get(whole) is not None:
                    yield source[whole].get("name") or ""
            for variable in container.get("env") or ():
                reference = (variable.get("valueFrom") or {}).get(single)
                if reference is not None:
                    yield reference.get("name") or ""
