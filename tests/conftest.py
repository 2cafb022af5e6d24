"""Fixtures are plugins by topic; nothing else lives here."""

pytest_plugins = ("tests.fixtures.server",)
