"""Slow, obvious oracle of the watch cache: the whole log of commits, read from the start for every question."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from tests.oracles.objects import with_revision

Tree = dict[str, Any]
Predicate = Callable[[Tree], bool]


@dataclass(frozen=True)
class Commit:
    revision: int
    key: str
    tree: Tree | None


class Log:
    def __init__(self) -> None:
        self.commits: list[Commit] = []

    def add(self, revision: int, key: str, tree: Tree | None) -> None:
        self.commits.append(Commit(revision, key, tree))

    def state(self, revision: int) -> dict[str, Commit]:
        """Commits that are the current state of their key, in key order."""
        current: dict[str, Commit] = {}
        for commit in self.commits:
            if commit.revision <= revision:
                current[commit.key] = commit
        return {key: current[key] for key in sorted(current, key=str.encode) if current[key].tree is not None}

    def listed(self, revision: int, prefix: str, selects: Predicate) -> list[bytes]:
        state = self.state(revision)
        return [
            orjson.dumps(with_revision(commit.tree, commit.revision))
            for key, commit in state.items()
            if key.startswith(prefix) and commit.tree is not None and selects(commit.tree)
        ]

    def events(self, since: int, prefix: str, name: str, selects: Predicate) -> list[tuple[str, bytes]]:
        """(type, object) that a watcher sees of everything after `since`."""
        seen = []
        for commit in self.commits:
            if commit.revision <= since or not commit.key.startswith(prefix):
                continue
            if name and commit.key.rsplit("/", 1)[1] != name:
                continue
            before = self.state(commit.revision - 1).get(commit.key)
            old = before.tree if before is not None and before.tree is not None and selects(before.tree) else None
            new = commit.tree if commit.tree is not None and selects(commit.tree) else None
            shown = new if new is not None else old
            if shown is not None:
                kind = "DELETED" if new is None else "ADDED" if old is None else "MODIFIED"
                seen.append((kind, orjson.dumps(with_revision(shown, commit.revision))))
        return seen
