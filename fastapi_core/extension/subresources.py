"""Subresources with handlers of their own: actions, views, connections."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fastapi_core import errors
from fastapi_core.errors import FieldError
from fastapi_core.extension.checks import check_handler
from fastapi_core.extension.connection import Connection, Connections
from fastapi_core.extension.declaration import Declaration, SchemaForm
from fastapi_core.extension.failures import check_numbers
from fastapi_core.extension.models import Model, ModelError
from fastapi_core.extension.models.base import LoadError
from fastapi_core.extension.request import Request, request_of
from fastapi_core.extension.sync import Runner
from fastapi_core.registry import definition as registry
from fastapi_core.registry.definition import ResourceDefinition
from fastapi_core.request.status import page_not_found

if TYPE_CHECKING:
    from fastapi_core.http.exchange import Answer, Response
    from fastapi_core.request.context import Endpoint, RequestContext
    from fastapi_core.rest.scope import Scope

B = TypeVar("B")
Tree = dict[str, Any]

Get = Callable[[Request, str], "B | Awaitable[B | None] | None"]
Create = Callable[[Request, B], "B | Awaitable[B | None] | None"]
Update = Callable[[Request, B, B], "B | Awaitable[B | None] | None"]
Connect = Callable[[Request, Connection], Awaitable[None]]


class Subresource(Generic[B]):
    """`PLURAL/NAME/<name>`; made by `kind.subresource(...)`. Each method is a decorator, as those of `Resource`.

    ```python
    backups = databases.subresource("backup", Backup)

    @backups.create
    async def back_up(request: Request, body: Backup) -> Backup:
        database = await databases.objects.get(request.name, request.namespace)
        ...
    ```
    """

    def __init__(self, name: str, model: Model[B], parent: Declaration[Any]) -> None:
        if model.kind.endswith("Options"):
            raise ModelError(f"{model.kind}: kinds of subresources do not end in 'Options'")
        self.name = name
        self.model = model
        self._parent = parent
        self.form = SchemaForm(model.schema)
        self._get: Get[B] | None = None
        self._create: Create[B] | None = None
        self._update: Update[B] | None = None
        self._connect: Connect | None = None

    def get(self, handler: Get[B]) -> Get[B]:
        """`handler(request, name)`: what there is to see of the object `name`; None when there is none."""
        self._check("get", handler, self._get, "name")
        self._get = handler
        return handler

    def create(self, handler: Create[B]) -> Create[B]:
        """`handler(request, body)`: an action on the object `request.name` (POST). Answers its outcome, or None for the
        body itself. `request.dry_run` means: do nothing."""
        self._check("create", handler, self._create, "body")
        self._create = handler
        return handler

    def update(self, handler: Update[B]) -> Update[B]:
        """`handler(request, new, old)`: change what `get` shows; gives PUT and PATCH. Not called in dry runs."""
        self._check("update", handler, self._update, "new", "old")
        self._update = handler
        return handler

    def connect(self, handler: Connect) -> Connect:
        """`handler(request, connection)`, a coroutine function: GET and POST as a raw connection, streamed or upgraded."""
        self._check("connect", handler, self._connect, "connection")
        self._connect = handler
        return handler

    def _check(self, verb: str, handler: Callable[..., Any], taken: object, *arguments: str) -> None:
        check_handler(handler, f"{self._parent.plural}/{self.name}.{verb}", "request", *arguments, taken=taken)

    # For the composition

    def verbs(self) -> tuple[str, ...]:
        """What is served, sorted; ModelError when one needs another that is missing."""
        where = f"{self._parent.plural}/{self.name}"
        if self._connect is not None:
            if self._get or self._create or self._update:
                raise ModelError(f"{where}: connect stands alone, it takes GET and POST")
            return ("create", "get")
        if self._update is not None and self._get is None:
            raise ModelError(f"{where}: update needs get")
        served = {"create": self._create, "get": self._get, "patch": self._update, "update": self._update}
        found = tuple(verb for verb, handler in served.items() if handler is not None)
        if not found:
            raise ModelError(f"{where}: there is no handler")
        return found

    def declared(self) -> registry.Subresource:
        return registry.Subresource(self.name, self.verbs(), self.model.kind)

    def definition(self, version: Declaration[Any] | None = None) -> ResourceDefinition:
        """Its kind as documents of a version of its parent (the kept one) describe it, with no verbs of its own."""
        made = replace(version or self._parent, model=self.model, plural=self.name)
        return made.definition(self.form, (), {}, unconditional=True)

    def endpoints(
        self, scope: Scope, runner: Runner, connections: Connections, version: Declaration[Any] | None = None
    ) -> dict[str, Endpoint]:
        """`NAME:VERB` -> endpoint, in the kept version of its parent or another one."""
        if self._connect is not None:
            return {f"{self.name}:connect": _of_existing(_connecting(self._connect, scope, connections), scope)}
        bound = _Bound(self, self.definition(version), runner)
        made = {"create": bound.create, "get": bound.get, "patch": bound.patch, "update": bound.update}
        return {f"{self.name}:{verb}": _of_existing(made[verb], scope) for verb in self.verbs()}


class _Bound:
    """The endpoints of one subresource."""

    def __init__(self, sub: Subresource[Any], definition: ResourceDefinition, runner: Runner) -> None:
        from fastapi_core.rest.body import Expected

        self._sub = sub
        self._definition = definition
        self._runner = runner
        d = definition
        self._expected = Expected(d.kind, d.group, d.version, d.type, True, None, d.form)

    async def get(self, ctx: RequestContext) -> Response:
        value, _ = await self._current(ctx)
        return self._answer(ctx, value)

    async def create(self, ctx: RequestContext) -> Response:
        from fastapi_core.rest.options import write_options

        options = write_options(ctx.request.query, "CreateOptions")
        body = self._load(self._read(ctx, options.field_validation))
        value = await self._runner.call(self._handler(self._sub._create), request_of(ctx), body)
        return self._answer(ctx, body if value is None else value, status=201)

    async def update(self, ctx: RequestContext) -> Response:
        from fastapi_core.rest.options import write_options

        options = write_options(ctx.request.query, "UpdateOptions")
        tree = self._read(ctx, options.field_validation)
        old, _ = await self._current(ctx)
        return await self._write(ctx, self._load(tree), old, dry_run=options.dry_run)

    async def patch(self, ctx: RequestContext) -> Response:
        from fastapi_core.rest import custom
        from fastapi_core.rest.options import write_options
        from fastapi_core.rest.patch import patch_engine, patch_form

        engine, reported = patch_engine(
            patch_form(ctx, service=False), ctx.request.body, self._definition.type, custom=True
        )
        options = write_options(ctx.request.query, "PatchOptions")
        old, current = await self._current(ctx)
        patched = custom.conform_patched(self._definition, self._sub.form, engine(current), reported)
        if reported and options.field_validation == "Strict":
            raise custom.undecodable("strict decoding error: " + ", ".join(reported))
        self._sub.form.default(patched)
        return await self._write(ctx, self._load(patched), old, dry_run=options.dry_run)

    async def _write(self, ctx: RequestContext, new: Any, old: Any, *, dry_run: bool) -> Response:
        value = (
            None if dry_run else await self._runner.call(self._handler(self._sub._update), request_of(ctx), new, old)
        )
        return self._answer(ctx, new if value is None else value)

    async def _current(self, ctx: RequestContext) -> tuple[Any, Tree]:
        value = await self._runner.call(self._handler(self._sub._get), request_of(ctx), ctx.info.name)
        if value is None:
            parent = self._sub._parent
            raise errors.not_found(parent.plural, parent.group, ctx.info.name)
        return value, self._tree(value)

    @staticmethod
    def _handler(handler: Callable[..., Any] | None) -> Callable[..., Any]:
        """One that is there: verbs without one are not routed."""
        assert handler is not None
        return handler

    def _read(self, ctx: RequestContext, validation: str) -> Tree:
        from fastapi_core.rest.body import read_object

        tree = read_object(ctx, self._expected, validation)
        self._sub.form.default(tree)
        return tree

    def _load(self, tree: Tree) -> Any:
        problems = self._sub.form.schema.validate(tree)
        if problems:
            raise self._invalid(tree, problems)
        try:
            return self._sub.model.read(tree)
        except LoadError as error:
            raise self._invalid(tree, error.errors) from error

    def _invalid(self, tree: Tree, problems: list[FieldError]) -> errors.APIError:
        name = (tree.get("metadata") or {}).get("name") or ""
        return errors.invalid(self._definition.kind, self._definition.group, name, problems)

    def _tree(self, value: Any) -> Tree:
        d = self._definition
        tree = {"apiVersion": d.group_version, "kind": d.kind, **self._sub.model.dump(value)}
        tree.setdefault("metadata", {})
        check_numbers(tree)
        return tree

    def _answer(self, ctx: RequestContext, value: Any, *, status: int = 200) -> Response:
        from fastapi_core.rest import render

        return render.tree(ctx, self._tree(value), status=status, tables=True)


def _of_existing(endpoint: Callable[[RequestContext], Awaitable[Answer]], scope: Scope) -> Endpoint:
    """The same for objects that are there: 404 for others, as far as the kind can be asked."""

    from fastapi_core.extension.source import RequestStore

    async def checked(ctx: RequestContext) -> Answer:
        store, info = scope.store, ctx.info
        if isinstance(store, RequestStore):
            if store.origin.handlers.get is None:
                return await endpoint(ctx)
            obj = await RequestStore(store.origin, request_of(ctx)).fetch(info.name)
        else:
            pending = store.fresh()
            if pending is not None:
                await pending
            obj = store.cache.get(store.key(info.namespace, info.name))
        if obj is None:
            raise scope.not_found(info.name)
        return await endpoint(ctx)

    return checked


def _connecting(
    handler: Connect, scope: Scope, connections: Connections
) -> Callable[[RequestContext], Awaitable[Answer]]:
    from fastapi_core.rest.authorize import check_connect

    async def endpoint(ctx: RequestContext) -> Answer:
        if ctx.request.method not in ("GET", "POST"):
            return page_not_found()
        if ctx.request.method == "GET" and ctx.request.upgrade:
            # A WebSocket begins with a GET, whatever it lets the client do afterwards.
            await check_connect(ctx, scope)
        request = request_of(ctx)
        return await connections.serve(ctx, lambda connection: handler(request, connection))

    return endpoint


__all__ = ["Connection", "Subresource"]
