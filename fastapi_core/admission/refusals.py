"""How plugins say no: the reference's 403 with the object's name, a list of reasons, a failure of the plugin itself."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi_core import errors
from fastapi_core.admission.chain import Attributes
from fastapi_core.errors import APIError, go_quote
from fastapi_core.meta import names


def shown_name(attributes: Attributes) -> str:
    """The name in a refusal: before it is generated the prefix stands for it."""
    if attributes.name:
        return attributes.name
    metadata = (attributes.object or {}).get("metadata") or {}
    return metadata.get("name") or metadata.get("generateName") or "Unknown"


def forbidden(attributes: Attributes, text: str) -> APIError:
    definition = attributes.definition
    return errors.forbidden(definition.plural, definition.group, shown_name(attributes), text)


def all_of(texts: Sequence[str]) -> str:
    """Several reasons as one text, each once."""
    distinct = list(dict.fromkeys(texts))
    return distinct[0] if len(distinct) == 1 else "[" + ", ".join(distinct) + "]"


def failure(text: str) -> APIError:
    """A plugin's plain error, which the reference answers as a 500 without a reason."""
    return APIError("", text, code=500)


def unaskable(name: str) -> str:
    """What is wrong with a name that cannot stand in a path, so that nobody can be asked for its object; empty when
    nothing is."""
    if not name:
        return "resource name may not be empty"
    problems = names.path_segment(name)
    return f"invalid resource name {go_quote(name)}: [{' '.join(problems)}]" if problems else ""
