from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from fastapi_core.authz.base import Authorizer, Decision, Verdict
from fastapi_core.controlplane.authority import uses_roles
from fastapi_core.controlplane.compose import compose
from fastapi_core.options.complete import Completed, complete
from fastapi_core.options.options import Options
from fastapi_core.request.context import User
from tests.fixtures.policies import asked

HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers: "
QUESTION = asked(User("alice"), "get", "pods")
ADMIN = asked(User("root", groups=("system:masters",)), "get", "pods")


@pytest_asyncio.fixture
async def composed(tmp_path: Path) -> AsyncIterator[tuple[Path, Completed, Authorizer]]:
    file = tmp_path / "config"
    file.write_text(HEAD + "[{type: AlwaysDeny, name: d}]")
    completed = complete(Options.parse([f"--authorization-config={file}"]))
    server = await compose(completed)
    yield file, completed, server.config.authorizer
    await server.stop()
    completed.close()


async def test_a_changed_configuration_is_taken_and_a_broken_one_is_not(
    composed: tuple[Path, Completed, Authorizer],
) -> None:
    file, completed, authorizer = composed

    def decision() -> Decision:
        verdict, admin = authorizer.authorize(QUESTION), authorizer.authorize(ADMIN)
        assert isinstance(verdict, Verdict)
        assert isinstance(admin, Verdict)
        assert admin.decision is Decision.ALLOW
        return verdict.decision

    seen = [(decision(), authorizer.generation)]
    for content in ("[{type: AlwaysAllow, name: a}]", "[", "[{type: Node, name: node}, {type: RBAC, name: rbac}]"):
        file.write_text(HEAD + content)
        completed.config.files.check()
        seen.append((decision(), authorizer.generation))
    allow, none = Decision.ALLOW, Decision.NO_OPINION
    assert [d for d, _ in seen] == [none, allow, allow, none]
    first, second, third, fourth = (generation for _, generation in seen)
    assert first < second == third < fourth


def test_roles_count_where_a_mode_says_so(tmp_path: Path) -> None:
    assert uses_roles(Options.parse([]))
    assert not uses_roles(Options.parse(["--authorization-mode=Node"]))
    file = tmp_path / "config"
    file.write_text(HEAD + "[{type: RBAC, name: r}]")
    assert uses_roles(Options.parse([f"--authorization-config={file}"]))
