"""Test kit for users: contract suites and a server to run in tests."""
