"""ResourceQuota: requests that arrive together are checked together, and what they take is written in one step.

Usage lives in the status of each quota and changes by compare-and-swap, so that no number of concurrent requests, here
or on other servers, uses more than there is. What is not written in the end is given back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

from fastapi_core._ext.objects import CachedObject
from fastapi_core.admission.amounts import Amounts, add, texts
from fastapi_core.admission.chain import CREATE, UPDATE, Attributes, Plugin
from fastapi_core.admission.objects import Objects, decoded
from fastapi_core.admission.quota.check import Account, Limited, Takes, check
from fastapi_core.admission.quota.usage import IGNORED, Evaluator, evaluator
from fastapi_core.admission.refusals import failure
from fastapi_core.errors import APIError
from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.registry.lifecycle import timestamp
from fastapi_core.registry.ownership import tracker
from fastapi_core.storage.interface import Code, StorageError

#: Who owns the usage in a quota's status.
MANAGER = "kube-apiserver"
#: Others may change a quota between reading and writing it this often before requests fail.
ATTEMPTS = 10


class _Waiting:
    """A request whose usage is to be written, or usage to be given back when there are no attributes."""

    __slots__ = ("attributes", "done", "refusal", "takes")

    def __init__(self, attributes: Attributes | None, takes: Takes | None = None) -> None:
        self.attributes = attributes
        self.takes: Takes = {} if takes is None else takes
        self.refusal: APIError | None = None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def fail(self, error: BaseException) -> None:
        if not self.done.done():
            self.done.set_exception(error)


class ResourceQuota(Plugin):
    name = "ResourceQuota"

    def __init__(self, quotas: Objects, limited: Sequence[Limited] = ()) -> None:
        self._quotas = quotas
        self._limited = tuple(limited)
        self._evaluators: dict[tuple[str, str], Evaluator] = {}
        self._tracker = tracker(quotas.store.definition, "status")
        self._waiting: dict[str, list[_Waiting]] = {}
        self._workers: dict[str, asyncio.Task[None]] = {}

    def handles(self, operation: str, definition: ResourceDefinition, subresource: str) -> bool:
        if not definition.namespaced or operation not in (CREATE, UPDATE):
            return False
        if (definition.group, definition.plural) in IGNORED:
            return False
        judge = self._evaluator(definition)
        if operation == UPDATE:
            return judge.updates or (definition.plural == "pods" and subresource == "resize")
        return not subresource

    def validate(self, attributes: Attributes) -> Awaitable[None] | None:
        quotas = self._quotas.list(attributes.namespace)
        if not quotas and not self._limited:
            return None
        judge = self._evaluator(attributes.definition)
        if not judge.handles(attributes):
            return None
        accounts = [Account.open(quota) for quota in quotas]
        bill = check(accounts, attributes, judge, self._limited)
        if attributes.dry_run or not bill:
            return None
        return self._charge(attributes)

    def _evaluator(self, definition: ResourceDefinition) -> Evaluator:
        key = (definition.group, definition.plural)
        known = self._evaluators.get(key)
        if known is None:
            known = self._evaluators[key] = evaluator(*key)
        return known

    async def _charge(self, attributes: Attributes) -> None:
        mine = _Waiting(attributes)
        try:
            await self._queue(attributes.namespace, mine)
        except asyncio.CancelledError:
            if mine.takes and mine.done.done() and not mine.done.cancelled():
                self._queue(attributes.namespace, _Waiting(None, mine.takes))
            raise
        if mine.takes:
            undo = attributes.undo = attributes.undo if attributes.undo is not None else []
            undo.append(lambda: self._queue(attributes.namespace, _Waiting(None, mine.takes)))

    def _queue(self, namespace: str, waiting: _Waiting) -> asyncio.Future[None]:
        self._waiting.setdefault(namespace, []).append(waiting)
        if namespace not in self._workers:
            self._workers[namespace] = asyncio.create_task(self._work(namespace))
        return waiting.done

    async def _work(self, namespace: str) -> None:
        """Serve the requests of a namespace, all that wait at a time, until nobody waits."""
        try:
            while batch := self._waiting.pop(namespace, None):
                try:
                    await self._settle(namespace, batch)
                except Exception as error:
                    for waiting in batch:
                        waiting.fail(error)
                for waiting in batch:
                    self._finish(namespace, waiting)
        finally:
            del self._workers[namespace]

    def _finish(self, namespace: str, waiting: _Waiting) -> None:
        """Tell who waits. What was written for a request that will not be carried out is given back first."""
        refusal = waiting.refusal
        if waiting.attributes is not None and waiting.takes and (refusal is not None or waiting.done.cancelled()):
            back = self._queue(namespace, _Waiting(None, waiting.takes))
            if refusal is not None:
                back.add_done_callback(lambda _: waiting.fail(refusal))
        elif refusal is not None:
            waiting.fail(refusal)
        elif not waiting.done.done():
            waiting.done.set_result(None)

    async def _settle(self, namespace: str, batch: list[_Waiting]) -> None:
        """Check every request on top of those before it, and write what they take."""
        left: set[str] | None = None
        for _ in range(ATTEMPTS):
            quotas = [q for q in self._quotas.list(namespace) if left is None or q.name in left]
            accounts = {quota.name: Account.open(quota) for quota in quotas}
            for waiting in batch:
                if waiting.attributes is None:
                    _give_back(waiting.takes, accounts)
                elif waiting.refusal is None and not waiting.done.done():
                    self._bill(waiting, waiting.attributes, accounts, () if left is not None else self._limited)
            changed = [account for account in accounts.values() if account.charged]
            outcomes = await asyncio.gather(*(self._write(account) for account in changed))
            left = {a.quota.name for a, written in zip(changed, outcomes, strict=True) if not written}
            for waiting in batch:
                # A request takes what is written; what is to be given back remains until it is.
                kept = left if waiting.attributes is None else waiting.takes.keys() - left
                waiting.takes = {name: taken for name, taken in waiting.takes.items() if name in kept}
            if not left:
                return
        self._give_up(namespace, batch)

    def _give_up(self, namespace: str, batch: list[_Waiting]) -> None:
        """Others have been faster every time: requests fail, what is to be given back goes on."""
        text = "the quotas of the namespace are changed by others all the time; please try again"
        for waiting in batch:
            if waiting.attributes is not None:
                waiting.refusal = waiting.refusal or failure(text)
            elif waiting.takes:
                self._queue(namespace, _Waiting(None, waiting.takes))

    def _bill(
        self, waiting: _Waiting, attributes: Attributes, accounts: dict[str, Account], limited: Sequence[Limited]
    ) -> None:
        try:
            bill = check(list(accounts.values()), attributes, self._evaluator(attributes.definition), limited)
        except APIError as error:
            waiting.refusal = error
            return
        for name, taken in bill.items():
            accounts[name].charge(taken)
            waiting.takes[name] = taken

    async def _write(self, account: Account) -> bool:
        """Whether the quota could be written before somebody else changed it."""
        try:
            await self._update(account.quota, account.used)
        except StorageError as error:
            if error.code not in (Code.CONFLICT, Code.KEY_NOT_FOUND):
                raise
            await self._quotas.store.settle(error)
            return False
        return True

    async def _update(self, quota: CachedObject, used: Amounts) -> None:
        tree = decoded(quota)
        new: Tree = {**tree, "metadata": dict(tree["metadata"])}
        new["status"] = {**(tree.get("status") or {}), "used": texts(used)}
        self._tracker.update(tree, new, MANAGER, timestamp())
        await self._quotas.store.update(quota, new)


def _give_back(takes: Takes, accounts: dict[str, Account]) -> None:
    for name, taken in takes.items():
        account = accounts.get(name)
        if account is not None:
            account.used = _without(account.used, taken)
            account.charged = True


def _without(used: Amounts, taken: Amounts) -> Amounts:
    """`used` less `taken`, not below nothing."""
    left = dict(used)
    add(left, {name: -amount for name, amount in taken.items() if name in used})
    return {name: amount if amount.nanos > 0 else amount - amount for name, amount in left.items()}
