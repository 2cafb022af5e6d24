"""Applies the objects of a registration and takes back exactly those.

What it makes carries a mark; what was there before is only given our fields, by server-side apply, and loses them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from fastapi_core.errors import APIError
from fastapi_core.extension.delegated.published import NAMESPACE as SYSTEM
from fastapi_core.extension.registration import manifests
from fastapi_core.extension.registration.manifests import MANAGED_BY, MANAGER, MARK, Kind, Object

if TYPE_CHECKING:
    from fastapi_core.extension.delegated.client import CoreClient
    from fastapi_core.extension.description import Description

Tree = dict[str, Any]
_LOCAL = "kube-aggregator.kubernetes.io/automanaged"
_LONGEST = 300
"""Of what the API server says: it lists everything that is wrong with an object."""


class RegistrationError(Exception):
    """The registration cannot go on; the text says why and what to do."""


class Registrar:
    """The objects of one extension; `say` gets a line for everything that was done."""

    def __init__(
        self, client: CoreClient, description: Description, say: Callable[[str], None], *, force: bool = False
    ) -> None:
        self._client = client
        self._description = description
        self._say = say
        self._force = force
        self._mark = manifests.mark_of(description)
        self._manager = f"{description.name}-registration"

    async def check(self, wanted: Iterable[Object]) -> None:
        """Before anything is made: whether the group versions can be ours. Raises as `apply`."""
        for obj in wanted:
            if obj.kind is manifests.API_SERVICES:
                before = await self._client.find(obj.path)
                if before is not None:
                    self._expect_usable(obj, before)

    async def apply(self, obj: Object) -> None:
        """Make it, or bring it to what it should be. Raises APIError, OutboundError, RegistrationError."""
        before = await self._client.find(obj.path)
        # What another registration has made moves to this one as a whole, or not at all.
        ours = before is None or _mark(before) == self._mark or self._moves(obj, before)
        if before is not None:
            self._expect_usable(obj, before)
            if obj.kind is manifests.NAMESPACES and not ours:
                self._say(f"{obj.shown} unchanged")
                return
        try:
            code, after = await self._apply(obj, self._mark if ours else "")
            if before is None and code == 200:
                # Somebody else was faster: it is theirs.
                ours, before = False, after
                code, after = await self._apply(obj, "")
        except APIError as error:
            raise RegistrationError(_refused(obj, error)) from None
        if before is None:
            word = "created"
        elif self._moves(obj, before):
            word = f"moved here from the registration {_mark(before)}"
        else:
            word = "unchanged" if _version(before) == _version(after) else "configured"
        self._say(f"{obj.shown} {word}" + ("" if ours else " (it was there before and will stay)"))

    async def prune(self, keep: Iterable[Object]) -> None:
        """Delete what carries our mark and is not to be kept any more. Raises APIError, OutboundError."""
        kept = {(obj.kind, obj.namespace, obj.name) for obj in keep}
        for kind, namespace in self._places():
            query = urlencode({"labelSelector": f"{MANAGED_BY}={MANAGER}"})
            for tree in (await self._client.get(f"{kind.collection(namespace)}?{query}")).get("items") or ():
                obj = Object(kind, namespace, tree["metadata"]["name"], {})
                if _mark(tree) == self._mark and (kind, namespace, obj.name) not in kept:
                    await self._delete(obj, tree)

    async def withdraw(self, *, with_namespace: bool) -> bool:
        """Delete what we made and give up what we only shared. Raises APIError, OutboundError.

        Answers whether everything is gone that should be."""
        await self.prune(())
        gone = True
        for obj in self._shared():
            tree = await self._client.find(obj.path)
            if tree is None or _mark(tree) == self._mark:
                continue
            if self._of_another(tree):
                self._say(f"{obj.shown} left, it belongs to the registration {_mark(tree)}")
            elif self._manages(tree):
                gone = await self._give_up(obj, tree) and gone
        namespace = Object(manifests.NAMESPACES, "", self._description.namespace, {})
        tree = await self._client.find(namespace.path)
        if tree is not None and _mark(tree) == self._mark:
            if with_namespace:
                await self._delete(namespace, tree)
            else:
                self._say(f"{namespace.shown} left with all that is in it, --delete-namespace deletes it")
        return gone

    def _places(self) -> Iterable[tuple[Kind, str]]:
        """Where our objects may be, what is in front of the others first."""
        own = self._description.namespace
        yield manifests.API_SERVICES, ""
        for kind in (manifests.SLICES, manifests.SERVICES, manifests.SECRETS):
            yield kind, own
        yield manifests.CLUSTER_ROLES, ""
        yield manifests.CLUSTER_BINDINGS, ""
        yield manifests.BINDINGS, SYSTEM
        yield manifests.ACCOUNTS, own

    def _shared(self) -> Iterable[Object]:
        """Objects that somebody else may have made before us."""
        about = self._description
        for version in about.versions:
            yield Object(manifests.API_SERVICES, "", version.name, {})
        yield Object(manifests.SERVICES, about.namespace, about.name, {})
        yield Object(manifests.ACCOUNTS, about.namespace, about.name, {})

    async def _apply(self, obj: Object, mark: str) -> tuple[int, Tree]:
        return await self._client.apply(obj.path, obj.tree(mark), self._manager, force=self._force)

    async def _delete(self, obj: Object, tree: Tree) -> None:
        """Delete this very object, and no other one that has taken its name meanwhile."""
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": tree["metadata"]["uid"]}}
        try:
            await self._client.ask("DELETE", obj.path, options)
        except APIError as error:
            if error.code not in (404, 409):
                raise
            return
        self._say(f"{obj.shown} deleted")

    async def _give_up(self, obj: Object, tree: Tree) -> bool:
        """Whether our fields are gone from it."""
        try:
            await self._apply(obj, "")
        except APIError as error:
            if error.code == 422 and obj.kind is manifests.API_SERVICES and not _mark(tree):
                # Nothing but our fields is in it.
                await self._delete(obj, tree)
                return True
            why = "it is not valid without our fields" if error.code == 422 else _short(error.message)
            self._say(f"{obj.shown} left as it is, though it should be given up: {why}")
            return False
        self._say(f"{obj.shown} left, it was there before; our fields are gone from it")
        return True

    def _moves(self, obj: Object, before: Tree) -> bool:
        return self._force and obj.kind is not manifests.NAMESPACES and _mark(before) not in ("", self._mark)

    def _of_another(self, tree: Tree) -> bool:
        """Whether what we manage in it is in truth what another registration of the same name does."""
        namespace, _, name = _mark(tree).partition("/")
        return bool(namespace) and name == self._description.name

    def _manages(self, tree: Tree) -> bool:
        entries = tree["metadata"].get("managedFields") or ()
        return any(e.get("manager") == self._manager and e.get("operation") == "Apply" for e in entries)

    def _expect_usable(self, obj: Object, before: Tree) -> None:
        metadata = before["metadata"]
        if metadata.get("deletionTimestamp"):
            raise RegistrationError(f"{obj.shown} is being deleted: wait until it is gone and register again")
        mark = _mark(before)
        if mark not in ("", self._mark) and obj.kind is not manifests.NAMESPACES and not self._force:
            namespace, _, name = mark.partition("/")
            raise RegistrationError(
                f"{obj.shown} belongs to the registration {mark}: take that back first (unregister --namespace {namespace} "
                f"--name {name}), or use --force-conflicts to move it here"
            )
        if obj.kind is manifests.API_SERVICES and _LOCAL in (metadata.get("labels") or {}):
            raise RegistrationError(
                f"{obj.shown}: the API server serves this group version itself, most likely by a "
                "CustomResourceDefinition: delete that first, or use another group or version"
            )


def _refused(obj: Object, error: APIError) -> str:
    if error.code == 409:
        return f"{obj.shown}: {_short(error.message)}\nSomebody else has set these fields. Use --force-conflicts to take them over"
    if error.code == 404 and obj.namespace and "namespaces" in error.message:
        return f"{obj.shown}: {error.message}: make it first, or use --create-namespace"
    return f"{obj.shown}: {_short(error.message)}"


def _short(message: str) -> str:
    return message if len(message) <= _LONGEST else f"{message[:_LONGEST]}..."


def _mark(tree: Tree) -> str:
    annotations = tree["metadata"].get("annotations") or {}
    return str(annotations.get(MARK, ""))


def _version(tree: Tree) -> str:
    return str(tree["metadata"].get("resourceVersion", ""))
