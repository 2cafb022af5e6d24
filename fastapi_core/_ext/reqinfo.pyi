"""Request path and query to RequestInfo."""

from typing import final

@final
class RequestInfo:
    """What a request asks for, in Kubernetes terms (inventory 2.1). Immutable after parse."""

    is_resource_request: bool
    path: str
    """Decoded path."""
    verb: str
    """get, list, watch, create, update, patch, delete, deletecollection, proxy, or "" for another method on a resource;
    the lower-case method when it is not a resource request."""
    api_prefix: str
    api_group: str
    api_version: str
    namespace: str
    resource: str
    subresource: str
    name: str
    parts: tuple[str, ...]
    """Path parts from the resource on."""
    query: dict[str, list[str]]
    """Decoded query parameters in order of arrival. Shared between requests: read only."""
    label_selector: str
    field_selector: str
    def first(self, name: str, default: str = "") -> str:
        """First value of a query parameter."""

class ParseError(ValueError):
    """Broken percent-encoding (`code` 400) or a path that names no kind (500); see `request.info.refusal`."""

    code: int
    def __init__(self, message: str, code: int = 400) -> None: ...

def parse(method: str, path: str, query: str) -> RequestInfo:
    """Parse one request; raises ParseError."""

def parse_query(query: str) -> dict[str, list[str]]:
    """As Go's `url.ParseQuery` with its error ignored: pairs that do not decode are dropped."""
