"""Questions that are asked again, sent on, and unpacked."""

from __future__ import annotations

import gzip
from collections.abc import Sequence

import pytest

from fastapi_core.admission.webhooks import letter as letters
from fastapi_core.admission.webhooks.letter import Letter
from fastapi_core.http.asking import Whole
from fastapi_core.http.client import BodyError, Target
from fastapi_core.http.exchange import Header
from fastapi_core.http.pool import Pool


class Post:
    """Answers one after the other; the last one again and again."""

    def __init__(self, *answers: tuple[int, Sequence[Header], bytes]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, bytes]] = []

    async def ask(self, pool: Pool, target: Target, request: bytes, *, limit: int, fresh: float) -> Whole:
        self.asked.append((target.authority, request))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return Whole(*answer)


async def sent(monkeypatch: pytest.MonkeyPatch, post: Post, limit: int = 1000) -> tuple[Letter, Whole]:
    monkeypatch.setattr(letters, "ask", post.ask)
    letter = Letter("h:1", "/a?timeout=5s", b"X: y\r\n", b"body")
    return letter, await letter.answer(Pool(), Target("h", 1), limit)


async def test_a_question(monkeypatch: pytest.MonkeyPatch) -> None:
    post = Post((200, [], b"yes"))
    letter, whole = await sent(monkeypatch, post)
    assert whole.body == b"yes"
    assert letter.url == "https://h:1/a?timeout=5s"
    (place, request), head = post.asked[0], b"POST /a?timeout=5s HTTP/1.1\r\nHost: h:1\r\nContent-Length: 4\r\nX: y\r\n"
    assert (place, request) == ("h:1", head + b"Accept-Encoding: gzip\r\n\r\nbody")


async def test_patience_is_asked_for_ten_times_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    post = Post((429, [(b"retry-after", b"0")], b""))
    _, whole = await sent(monkeypatch, post)
    assert (whole.status, len(post.asked)) == (429, 11)
    once = Post((503, [(b"retry-after", b"0")], b""), (200, [], b"yes"))
    assert (await sent(monkeypatch, once))[1].body == b"yes"
    for headers in ([], [(b"retry-after", b"soon")]):
        never = Post((503, headers, b""))
        await sent(monkeypatch, never)
        assert len(never.asked) == 1


async def test_redirects(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Post((307, [(b"location", b"/b?c=d")], b""), (200, [], b"yes"))
    letter, _ = await sent(monkeypatch, kept)
    assert kept.asked[1][1].startswith(b"POST /b?c=d HTTP/1.1\r\nHost: h:1\r\n")
    assert kept.asked[1][1].endswith(b"body")
    assert letter.url == "https://h:1/b?c=d"
    away = Post((302, [(b"location", b"https://other:7/x")], b""), (200, [], b"yes"))
    await sent(monkeypatch, away)
    assert away.asked[1] == ("other:7", b"GET /x HTTP/1.1\r\nHost: other:7\r\nX: y\r\nAccept-Encoding: gzip\r\n\r\n")
    nowhere = Post((302, [], b"x"))
    assert (await sent(monkeypatch, nowhere))[1].status == 302
    around = Post((308, [(b"location", b"/")], b""))
    assert (await sent(monkeypatch, around))[1].status == 308
    assert len(around.asked) == 11


async def test_packed_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = [(b"content-encoding", b"gzip")]
    assert (await sent(monkeypatch, Post((200, packed, gzip.compress(b"yes")))))[1].body == b"yes"
    with pytest.raises(BodyError, match="longer than 10 bytes"):
        await sent(monkeypatch, Post((200, packed, gzip.compress(bytes(1 << 20)))), limit=10)
    with pytest.raises(BodyError, match="gzip: invalid header"):
        await sent(monkeypatch, Post((200, packed, b"no gzip")))
