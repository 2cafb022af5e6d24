"""URLs of webhooks that only a lenient parser takes."""

from __future__ import annotations

import pytest

from fastapi_core.apis.validation.admission import webhook_url
from fastapi_core.apis.validation.rules import Report


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://a b", 'parse "https://a b": invalid character " " in host name; desired'),
        ("https://a/%zz", 'parse "https://a/%zz": invalid URL escape "%zz"; desired'),
        ("https://a/%2", 'parse "https://a/%2": invalid URL escape "%2"; desired'),
        ("https://a/%20", ""),
        ("https://localhost:8443/x", ""),
        ("https://[::1]:8443/x", ""),
    ],
)
def test_what_is_no_url(url: str, said: str) -> None:
    report = Report()
    webhook_url(url, ".url", report)
    assert [problem.type for problem in report] == (["Required value"] if said else [])
    assert not said or f"url must be a valid URL: {said}" in report[0].detail
