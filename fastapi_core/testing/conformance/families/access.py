"""Who may: nobody without a credential, nobody by saying so, and not everybody with one."""

from __future__ import annotations

from fastapi_core.testing.conformance.client import Client
from fastapi_core.testing.conformance.subject import Subject, error
from fastapi_core.testing.conformance.target import NOBODY, Credential
from fastapi_core.testing.conformance.verdicts import Skipped, check, demand

#: What a front proxy would send; without its client certificate it is a lie.
_CLAIMS = {
    "X-Remote-User": "system:admin",
    "X-Remote-Group": "system:masters",
    "X-Remote-Uid": "1",
    "X-Forwarded-User": "system:admin",
}


def _other(t: Subject) -> Client:
    if t.client.target.other is None:
        raise Skipped("give a second credential that may not do this")
    return t.another(t.client.target.other)


@check("access.nobody", needs="list")
def access_nobody(t: Subject) -> None:
    """Without a credential there is a 401, or a 403 for anonymous, and no data."""
    answer = t.another(NOBODY).request("GET", t.path())
    demand(answer.status in (401, 403), "401 or 403", answer)
    error(answer, answer.status, "Unauthorized" if answer.status == 401 else "Forbidden")


@check("access.nobody-writes", needs="create delete")
def access_nobody_writes(t: Subject) -> None:
    """Without a credential nothing is written."""
    body = t.new()
    answer = t.post(body, client=t.another(NOBODY))
    demand(answer.status in (401, 403), "401 or 403", answer)


@check("access.wrong-token", needs="list")
def access_wrong_token(t: Subject) -> None:
    """A token that is none is a 401, not anonymous: the client must learn that it has to get another."""
    stranger = t.another(Credential(token="conformance-is-no-token"))
    error(stranger.request("GET", t.path()), 401, "Unauthorized")


@check("access.claimed-identity", needs="list")
def access_claimed_identity(t: Subject) -> None:
    """Identity headers of a front proxy are not believed without its client certificate; anybody can send them."""
    nobody = t.another(NOBODY)
    plain = nobody.request("GET", t.path())
    if plain.status == 200:
        raise Skipped("everybody may list: see access.nobody")
    answer = nobody.request("GET", t.path(), headers=_CLAIMS)
    demand(answer.status in (401, 403), "401 or 403, as without them", answer)
    demand(b"system:admin" not in answer.body, "no word of whom they claim to be", answer)


@check("access.forbidden", needs="list")
def access_forbidden(t: Subject) -> None:
    """Who may not is told so with a 403 Forbidden."""
    answer = _other(t).request("GET", t.path())
    error(answer, 403, "Forbidden")


@check("access.forbidden-first", needs="get")
def access_forbidden_first(t: Subject) -> None:
    """Who may not does not learn what exists: the 403 comes for what is there and what is not, whatever is sent."""
    client = _other(t)
    obj = t.existing()
    for path in (t.where(obj), t.path("conformance-nothing")):
        error(client.request("GET", path), 403, "Forbidden")
    if "create" in t.resource.verbs:
        error(client.request("POST", t.path(), b"{"), 403, "Forbidden", "authorization comes before the body")


@check("access.forbidden-claims", needs="list")
def access_forbidden_claims(t: Subject) -> None:
    """Identity headers beside a credential change nothing about who asks."""
    answer = _other(t).request("GET", t.path(), headers=_CLAIMS)
    error(answer, 403, "Forbidden")
