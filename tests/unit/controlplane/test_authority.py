from __future__ import annotations

from pathlib import Path

from fastapi_core.authz.base import AlwaysAllow, AlwaysDeny, Authorizer, Decision, Verdict
from fastapi_core.authz.modes import AuthorizerConfig
from fastapi_core.authz.reload import Exchangeable
from fastapi_core.controlplane.authority import follower
from fastapi_core.options.options import Options
from fastapi_core.request.context import User
from tests.fixtures.policies import asked

HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers: "
QUESTION = asked(User("alice"), "get", "pods")


async def test_a_changed_configuration_is_taken_and_a_broken_one_is_not(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(HEAD + "[{type: AlwaysDeny, name: d}]")
    options = Options.parse([f"--authorization-config={file}"])

    def make() -> Authorizer:
        kinds = {"AlwaysAllow": AlwaysAllow, "AlwaysDeny": AlwaysDeny}
        (entry,) = options.authorization.authorizers()
        assert isinstance(entry, AuthorizerConfig)
        return kinds[entry.type]()

    def decision() -> Decision:
        verdict = found.authorize(QUESTION)
        assert isinstance(verdict, Verdict)
        return verdict.decision

    found = Exchangeable(make)
    keeper = follower(options, found)
    assert keeper is not None

    async def look() -> None:
        await keeper.start()
        await keeper.stop()

    await look()
    assert (decision(), found.generation) == (Decision.NO_OPINION, 0)
    file.write_text(HEAD + "[{type: AlwaysAllow, name: a}]")
    await look()
    assert decision() is Decision.ALLOW
    file.write_text("nonsense: [")
    await look()
    assert decision() is Decision.ALLOW
    file.unlink()
    await look()
    assert decision() is Decision.ALLOW
    file.write_text(HEAD + "[{type: AlwaysDeny, name: denied}]")
    await look()
    assert decision() is Decision.NO_OPINION


def test_without_a_file_there_is_nothing_to_follow() -> None:
    assert follower(Options.parse([]), AlwaysAllow()) is None
