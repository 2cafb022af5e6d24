from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastapi_core.storage.interface import Code, StorageError
from fastapi_core.storage.keys import MAX_REQUEST_BYTES, check_revision, check_write, prefix_end

# No surrogates: they have no UTF-8 form. Small alphabet with the edges, so that prefixes are met.
texts = st.text(st.sampled_from("ab/0\0\x7f\ud7ff\ue000\uffff\U0010fffe\U0010ffff"), max_size=4)


@given(texts, texts)
def test_range_is_the_prefix(prefix: str, key: str) -> None:
    inside = prefix <= key < prefix_end(prefix)
    if key.startswith("\U0010ffff" * 2) and not prefix.strip("\U0010ffff"):
        # The only keys that can be above the last bound; a noncharacter, in no name.
        return
    assert inside == key.startswith(prefix)
    assert (prefix.encode() <= key.encode() < prefix_end(prefix).encode()) == inside


def test_common_prefixes() -> None:
    assert prefix_end("/registry/pods/") == "/registry/pods0"
    assert prefix_end("a\U0010ffff") == "b"


def test_size_counts_key_and_value_in_bytes() -> None:
    check_write("ab", b"x" * (MAX_REQUEST_BYTES - 2))
    with pytest.raises(StorageError) as caught:
        check_write("é", b"x" * (MAX_REQUEST_BYTES - 1))
    assert caught.value.code is Code.TOO_LARGE
    assert caught.value.key == "é"
    with pytest.raises(UnicodeEncodeError):
        check_write("\ud800", b"")


def test_revisions() -> None:
    check_revision(5, newest=5, compacted=5)
    for revision, code, told in ((6, Code.FUTURE_REVISION, 5), (2, Code.COMPACTED, 3)):
        with pytest.raises(StorageError) as caught:
            check_revision(revision, newest=5, compacted=3)
        assert (caught.value.code, caught.value.revision) == (code, told)
