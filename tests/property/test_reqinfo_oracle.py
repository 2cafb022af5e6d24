"""The compiled request info equals the oracle on anything a request line can hold."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core._ext import reqinfo
from tests.oracles import reqinfo as oracle

FIELDS = list(oracle.Info.__dataclass_fields__)

word = st.sampled_from(
    [
        "api",
        "apis",
        "v1",
        "apps",
        "watch",
        "proxy",
        "namespaces",
        "pods",
        "status",
        "finalize",
        "log",
        "ns",
        "a",
        "",
        ".",
        "..",
        "%2F",
        "%2f",
        "%2e%2e",
        "%",
        "%z",
        "%zz",
        "%0",
        "%ff",
        "%C3%A9",
        "é",
        "a+b",
        "%25",
        "x%20y",
        "\x00",
        "\x7f",
        "*",
    ]
)
prefix = st.sampled_from(
    ["/api/v1", "/apis/apps/v1", "/apis", "/api", "", "/", "//api/v1", "/api/v1/watch", "/apis/g/v/proxy"]
)
paths = st.one_of(
    st.builds(
        lambda a, b, c: a + "".join("/" + x for x in b) + c,
        prefix,
        st.lists(word, max_size=6),
        st.sampled_from(["", "/", "//"]),
    ),
    st.builds(lambda a, b: a + "/" + b, prefix, st.text(max_size=30)),
)
key = st.sampled_from(
    ["watch", "fieldSelector", "labelSelector", "limit", "timeoutSeconds", "w%61tch", "x", "", "%", ";"]
)
value = st.one_of(
    st.sampled_from(
        [
            "",
            "0",
            "1",
            "true",
            "false",
            "FALSE",
            "maybe",
            "metadata.name=x",
            "metadata.name%3Dx",
            "metadata.name==a%2Cspec.x=1",
            "metadata.name!=x",
            "metadata.name!==x",
            "metadata.name=..",
            "metadata.name=a%2Fb",
            "metadata.name=a\\=b",
            "metadata.name=a\\",
            "a=b,,metadata.name=x,metadata.name=y",
            "metadata.name=a\\,b",
            "x",
            "%zz",
            "+5",
            "9223372036854775807",
            "9223372036854775808",
            "-9223372036854775808",
            "007",
            "1e3",
        ]
    ),
    st.text(alphabet="am=,!\\.%2Cname+;&", max_size=20),
)
queries = st.one_of(
    st.lists(st.builds(lambda k, v: f"{k}={v}", key, value) | key, max_size=4).map("&".join),
    st.text(max_size=40),
)
methods = st.sampled_from(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get"])


@settings(max_examples=200, deadline=None)
@given(methods, paths, queries)
def test_parse_equals_the_oracle(method: str, path: str, query: str) -> None:
    try:
        want = oracle.parse(method, path, query)
    except oracle.MalformedError as error:
        code = error.code
    else:
        code = 0
    if code:
        with pytest.raises(reqinfo.ParseError) as caught:
            reqinfo.parse(method, path, query)
        assert caught.value.code == code
        return
    got = reqinfo.parse(method, path, query)
    assert {f: getattr(got, f) for f in FIELDS} == {f: getattr(want, f) for f in FIELDS}
    assert list(got.query) == list(want.query)


@settings(max_examples=200, deadline=None)
@given(st.lists(value, max_size=5).map("&fieldSelector=".join))
def test_field_selector_names_equal_the_oracle(query: str) -> None:
    query = "fieldSelector=" + query
    assert reqinfo.parse("GET", "/api/v1/pods", query).name == oracle.parse("GET", "/api/v1/pods", query).name


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
def test_query_equals_the_oracle(query: str) -> None:
    assert reqinfo.parse_query(query) == oracle.parse_query(query)
