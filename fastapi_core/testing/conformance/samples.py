"""Sample objects from files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fastapi_core.testing.conformance.client import Tree
from fastapi_core.testing.conformance.target import TargetError


def load(files: Iterable[str | Path]) -> list[Tree]:
    """The objects of YAML or JSON files, one or more a file; TargetError names what is wrong."""
    import yaml

    found: list[Tree] = []
    for file in files:
        try:
            documents = list(yaml.safe_load_all(Path(file).read_text()))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise TargetError(f"sample {file}: {error}") from None
        for document in documents:
            if document is None:
                continue
            if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
                raise TargetError(f"sample {file}: not an object with a kind")
            found.append(document)
    return found
