"""What an author holds of a kind: where handlers are given, and the objects of one that is stored."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from fastapi_core.errors import FieldError
from fastapi_core.extension.request import Event, Listing, Request

T = TypeVar("T")

Get = Callable[[Request, str], "T | None | Awaitable[T | None]"]
List = Callable[[Request], "Listing[T] | Sequence[T] | Awaitable[Listing[T] | Sequence[T]]"]
Watch = Callable[[Request], "AsyncIterator[Event[T]] | Iterator[Event[T]]"]
Create = Callable[[Request, T], "T | None | Awaitable[T | None]"]
Update = Callable[[Request, T, T], "T | None | Awaitable[T | None]"]
Delete = Callable[[Request, T], "None | Awaitable[None]"]


class Storage(Generic[T]):
    """Where the objects of a kind are, as a class: override the methods you have, only those are served.

    ```python
    class Files(Storage[Document]):
        def list(self, request: Request) -> list[Document]: ...
        def get(self, request: Request, name: str) -> Document | None: ...

    app.kind(Document, "documents", storage=Files())
    ```

    Methods may be coroutines or plain functions; what each is given and may answer is told at the decorators of
    `Resource`, which do the same for functions.
    """


class Resource(Generic[T]):
    """A kind that functions answer for; made by `Extension.kind`.

    Each method is a decorator that takes the handler of a verb. Verbs without a handler are not served, and discovery
    does not name them.
    """

    def get(self, handler: Get[T]) -> Get[T]:
        """`handler(request, name)`: the object, or None (or an APIError) when there is none."""
        return handler

    def list(self, handler: List[T]) -> List[T]:
        """`handler(request)`: all objects of `request.namespace`, or of all namespaces when that is empty.

        Selectors, paging, tables and sorting are done to the answer. A `Listing` tells the version of the list, without
        which watches cannot go on from it."""
        return handler

    def watch(self, handler: Watch[T]) -> Watch[T]:
        """`handler(request)`: a generator of events behind `request.resource_version`, for one client.

        Initial events come from `list`, selectors are applied, bookmarks and the end in time are seen to. Raise
        `fastapi_core.errors.expired` for a version that is too old. An async generator is closed when the client goes;
        a plain generator takes a thread as long as the watch lasts."""
        return handler

    def create(self, handler: Create[T]) -> Create[T]:
        """`handler(request, object)`: keep a new object; answers it as it is kept, or None when nothing is to change.

        It comes validated and stamped (uid, creationTimestamp, generated name)."""
        return handler

    def update(self, handler: Update[T]) -> Update[T]:
        """`handler(request, object, old)`: keep a changed object. With `get` this gives patch and apply, too.

        `old` is what `get` answered for this request; raise `fastapi_core.errors.conflict` when it has changed since."""
        return handler

    def patch(self, handler: Update[T]) -> Update[T]:
        """As `update`, for patches alone; without it they go to `update`."""
        return handler

    def delete(self, handler: Delete[T]) -> Delete[T]:
        """`handler(request, object)`: remove it. Also gives deletecollection where there is a `list`."""
        return handler


class Stored(Generic[T]):
    """A kind whose objects the framework keeps; made by `Extension.stored`."""

    def prepare(self, hook: Callable[[T, T | None], T | None]) -> Callable[[T, T | None], T | None]:
        """`hook(new, old)` before validation of each write (`old` None for a new object): change `new`, or answer
        another one."""
        return hook

    def validate(
        self, hook: Callable[[T, T | None], Iterable[FieldError | str]]
    ) -> Callable[[T, T | None], Iterable[FieldError | str]]:
        """`hook(new, old)`: everything that is wrong beyond the schema; 422 with all of it."""
        return hook


AnyResource = Resource[Any] | Stored[Any]
