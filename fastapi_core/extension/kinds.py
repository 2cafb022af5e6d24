"""What an author holds of a kind: where handlers are given, and the objects of one that is kept."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, Generic, TypeVar

from fastapi_core import errors
from fastapi_core.crd.definitions import Scale
from fastapi_core.extension.checks import check_handler, check_schema
from fastapi_core.extension.client import Objects
from fastapi_core.extension.columns import Column
from fastapi_core.extension.declaration import Declaration
from fastapi_core.extension.models import ModelError, model_of
from fastapi_core.extension.request import Event, Listing, Request
from fastapi_core.extension.rules import Prepare, Validate
from fastapi_core.extension.subresources import Subresource
from fastapi_core.extension.versions import Version, inherited
from fastapi_core.records import dataclass
from fastapi_core.registry.store import CONFLICT_TEXT

T = TypeVar("T")
B = TypeVar("B")
V = TypeVar("V")

Get = Callable[[Request, str], "T | Awaitable[T | None] | None"]
List = Callable[[Request], "Listing[T] | Sequence[T] | Awaitable[Listing[T]] | Awaitable[Sequence[T]]"]
Watch = Callable[
    [Request],
    "AsyncIterable[Event[T]] | Iterable[Event[T]] | Awaitable[AsyncIterable[Event[T]]] | Awaitable[Iterable[Event[T]]]",
]
Create = Callable[[Request, T], "T | Awaitable[T | None] | None"]
Update = Callable[[Request, T, T], "T | Awaitable[T | None] | None"]
Delete = Callable[[Request, T], "Awaitable[None] | None"]
G = TypeVar("G", bound=Callable[..., object])


@dataclass(slots=True)
class Handlers(Generic[T]):
    """The functions of a kind; None for verbs it does not have."""

    get: Get[T] | None = None
    list: List[T] | None = None
    watch: Watch[T] | None = None
    create: Create[T] | None = None
    update: Update[T] | None = None
    patch: Update[T] | None = None
    delete: Delete[T] | None = None

    def verbs(self, kind: str) -> tuple[str, ...]:
        """What is served with them, sorted; ModelError when one needs another that is missing."""
        readable = self.get is not None or self.list is not None
        served = {
            "get": self.get is not None,
            "list": self.list is not None,
            "watch": self.watch is not None,
            "create": self.create is not None,
            "update": self.update is not None,
            "patch": self.patch is not None or self.update is not None,
            "delete": self.delete is not None,
            "deletecollection": self.delete is not None and self.list is not None,
        }
        if self.watch is not None and self.list is None:
            raise ModelError(f"{kind}: watch needs list, clients list before they watch")
        for verb in ("update", "patch", "delete"):
            if served[verb] and not readable:
                raise ModelError(f"{kind}: {verb} needs get (or list), it is given the object as it is")
        if not any(served.values()):
            raise ModelError(f"{kind}: there is no handler; decorate functions with .get, .list, ...")
        return tuple(sorted(verb for verb, there in served.items() if there))


class Storage(Generic[T]):
    """Where the objects of a kind are, as a class: override the methods you have, only those verbs are served.

    ```python
    class Files(Storage[Document]):
        def list(self, request: Request) -> list[Document]: ...
        def get(self, request: Request, name: str) -> Document | None: ...

    app.kind(Document, "documents", storage=Files())
    ```

    Methods may be coroutines or plain functions. What each is given and may answer is told at the decorators of
    `Resource`, which do the same for functions.
    """

    def get(self, request: Request, name: str) -> T | Awaitable[T | None] | None:
        raise errors.method_not_allowed()

    def list(self, request: Request) -> Listing[T] | Sequence[T] | Awaitable[Listing[T]] | Awaitable[Sequence[T]]:
        raise errors.method_not_allowed()

    def watch(self, request: Request) -> AsyncIterable[Event[T]] | Iterable[Event[T]]:
        raise errors.method_not_allowed()

    def create(self, request: Request, obj: T) -> T | Awaitable[T | None] | None:
        raise errors.method_not_allowed()

    def update(self, request: Request, obj: T, old: T) -> T | Awaitable[T | None] | None:
        raise errors.method_not_allowed()

    def patch(self, request: Request, obj: T, old: T) -> T | Awaitable[T | None] | None:
        raise errors.method_not_allowed()

    def delete(self, request: Request, obj: T) -> Awaitable[None] | None:
        raise errors.method_not_allowed()

    def handlers(self) -> Handlers[T]:
        """The methods that are overridden."""
        own = {
            verb: getattr(self, verb) for verb in _ARGUMENTS if getattr(type(self), verb) is not getattr(Storage, verb)
        }
        return Handlers(**own)


_CHANGED = ("request", "new", "old")
#: Verbs, and what their handlers are called with.
_ARGUMENTS: Final[dict[str, tuple[str, ...]]] = {
    "get": ("request", "name"),
    "list": ("request",),
    "watch": ("request",),
    "create": ("request", "new"),
    "update": _CHANGED,
    "patch": _CHANGED,
    "delete": ("request", "old"),
}


class Kind(Generic[T]):
    """What both sorts of kinds have in common."""

    def __init__(self, declaration: Declaration[T]) -> None:
        self.declaration = declaration
        self.subresources: dict[str, Subresource[object]] = {}
        self.rules: tuple[Prepare[T] | None, Validate[T] | None] = (None, None)
        self._objects: Objects[T] = Objects(declaration)

    @property
    def objects(self) -> Objects[T]:
        """The objects, for background tasks and handlers: through the server itself, as `system:apiserver`."""
        return self._objects

    def subresource(self, name: str, model: type[B], *, kind: str = "") -> Subresource[B]:
        """Declare `PLURAL/NAME/<name>` with handlers of its own; `model` is what it takes and answers.

        `status` and `scale` are options of the kind instead.
        """
        if name in ("status", "scale") or name in self.subresources:
            raise ModelError(f"{self.declaration.kind}: the subresource {name!r} is there already, or an option")
        made: Subresource[B] = Subresource(name, model_of(model, kind), self.declaration)
        check_schema(made.model)
        self.subresources[name] = made  # type: ignore[assignment]
        return made

    # What handlers raise

    def not_found(self, name: str) -> errors.APIError:
        """404: there is no such object."""
        return errors.not_found(self.declaration.plural, self.declaration.group, name)

    def already_exists(self, name: str) -> errors.APIError:
        """409 of a create: the name is taken."""
        return errors.already_exists(self.declaration.plural, self.declaration.group, name)

    def conflict(self, name: str, message: str = CONFLICT_TEXT) -> errors.APIError:
        """409 of an update or delete: the object is another one than the handler was given. It is then called again with
        the newest object where the client's request allows that."""
        return errors.conflict(self.declaration.plural, self.declaration.group, name, message)

    # Hooks

    def prepare(self, hook: Prepare[T]) -> Prepare[T]:
        """Decorator: `hook(new, old)` before each write is checked (`old` None for a new object).

        Change `new`, or answer another object. Runs for objects that the schema finds nothing wrong with, on the event
        loop: it must not block."""
        check_handler(hook, f"{self.declaration.kind}.prepare", "new", "old", taken=self.rules[0])
        self.rules = (hook, self.rules[1])
        return hook

    def validate(self, hook: Validate[T]) -> Validate[T]:
        """Decorator: `hook(new, old)` answers everything that is wrong beyond the schema; 422 with all of it.

        ```python
        @databases.validate
        def check(new: Database, old: Database | None) -> Iterable[FieldError]:
            if old and new.spec.size < old.spec.size:
                yield FieldError("Invalid value", "spec.size", "may not shrink", new.spec.size)
        ```
        """
        check_handler(hook, f"{self.declaration.kind}.validate", "new", "old", taken=self.rules[1])
        self.rules = (self.rules[0], hook)
        return hook


class Resource(Kind[T]):
    """A kind that functions answer for; made by `Extension.kind`.

    Each method is a decorator that takes the handler of a verb, a coroutine function or a plain one (which runs in a
    thread, unless it is `@quick`). Verbs without a handler are not served, and discovery does not name them. An
    `APIError` that a handler raises is the answer; any other exception is logged and answered 500 without its words.
    """

    def __init__(self, declaration: Declaration[T], handlers: Handlers[T] | None = None) -> None:
        super().__init__(declaration)
        self.handlers: Handlers[T] = handlers or Handlers()
        for verb in _ARGUMENTS:
            handler = getattr(self.handlers, verb)
            if handler is not None:
                self._check(verb, handler, None)

    def _check(self, verb: str, handler: Callable[..., Any], taken: object) -> None:
        check_handler(handler, f"{self.declaration.kind}.{verb}", *_ARGUMENTS[verb], taken=taken)

    def get(self, handler: Get[T]) -> Get[T]:
        """`handler(request, name)`: the object, or None (or an APIError) when there is none."""
        self._check("get", handler, self.handlers.get)
        self.handlers.get = handler
        return handler

    def list(self, handler: List[T]) -> List[T]:
        """`handler(request)`: all objects of `request.namespace`, or of all namespaces when that is empty.

        Selectors, paging, tables and sorting are done to the answer. A `Listing` tells the version of the list, without
        which watches cannot go on from it."""
        self._check("list", handler, self.handlers.list)
        self.handlers.list = handler
        return handler

    def watch(self, handler: Watch[T]) -> Watch[T]:
        """`handler(request)`: a generator of events behind `request.resource_version`, for one client.

        Initial events come from `list`; selectors are applied, bookmarks and the end in time are seen to. Raise
        `fastapi_core.errors.expired(text)` for a version that is too old. An async generator is closed when the client goes; a plain
        generator takes a thread as long as the watch lasts."""
        self._check("watch", handler, self.handlers.watch)
        self.handlers.watch = handler
        return handler

    def create(self, handler: Create[T]) -> Create[T]:
        """`handler(request, object)`: keep a new object, and answer it as it is kept (None: as it was given).

        It comes validated and stamped: uid, creationTimestamp, a generated name. Raise `kind.already_exists(name)` for a
        name that is taken."""
        self._check("create", handler, self.handlers.create)
        self.handlers.create = handler
        return handler

    def update(self, handler: Update[T]) -> Update[T]:
        """`handler(request, object, old)`: keep a changed object. With `get` this gives patch and apply, too.

        `old` is what `get` answered for this request; raise `kind.conflict(name)` when the object has changed since: the
        request is then tried again on the newest state. Through a subresource (`request.subresource`: status, scale)
        only that part differs."""
        self._check("update", handler, self.handlers.update)
        self.handlers.update = handler
        return handler

    def patch(self, handler: Update[T]) -> Update[T]:
        """As `update`, for patches alone; without it they go to `update`."""
        self._check("patch", handler, self.handlers.patch)
        self.handlers.patch = handler
        return handler

    def delete(self, handler: Delete[T]) -> Delete[T]:
        """`handler(request, object)`: remove it. Also gives deletecollection where there is a `list`."""
        self._check("delete", handler, self.handlers.delete)
        self.handlers.delete = handler
        return handler


class Stored(Kind[T]):
    """A kind whose objects the framework keeps; made by `Extension.stored`. All verbs are served."""

    def __init__(self, declaration: Declaration[T]) -> None:
        super().__init__(declaration)
        self.versions: list[Version[T, Any]] = []

    def version(
        self,
        name: str,
        model: type[V],
        *,
        show: Callable[[T], V],
        keep: Callable[[V], T],
        columns: Sequence[Column] | None = None,
        selectable: Sequence[str] | None = None,
        scale: Scale | None = None,
    ) -> Version[T, V]:
        """Serve the kind in another version (`v2`), too: as objects of `model`.

        `show` makes such an object of one that is kept, `keep` the other way; they must lose nothing that their version can
        say, and run on the event loop. Hooks see objects of the kept version, whichever version a request speaks.

        All subresources are served in this version, too. `columns` and `selectable` are those of the kept version where
        `model` has their paths, unless they are given; `scale` says where replicas stand here."""
        known = model_of(model, self.declaration.kind)
        seen, found, replicas = inherited(self.declaration, known, keep)
        declaration = replace(
            self.declaration,
            model=known,
            version=name,
            columns=seen if columns is None else tuple(columns),
            selectable=found if selectable is None else tuple(selectable),
            scale=scale or replicas,
            kept_version=self.declaration.version,
        )
        declaration.check()
        if name == self.declaration.version or any(name == other.declaration.version for other in self.versions):
            raise ModelError(f"{declaration.group_version} has {declaration.kind} already")
        made: Version[T, V] = Version(declaration, show, keep, Objects(declaration))  # type: ignore[arg-type]
        self.versions.append(made)
        return made
