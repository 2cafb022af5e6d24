from __future__ import annotations

import json
from pathlib import Path

import pytest

from fastapi_core.options import inert
from fastapi_core.options.flags import OptionsError
from fastapi_core.options.inert import PROTECTIVE
from fastapi_core.options.options import Options, flags, usage

FACTS = Path(__file__).parents[3].parent / "shared/facts/flags.json"


def errors(*arguments: str) -> list[str]:
    with pytest.raises(OptionsError) as caught:
        Options.parse(arguments)
    return caught.value.errors


def test_no_flag_at_all() -> None:
    options = Options.parse([])
    assert options == Options()
    assert options.validate() == []


def test_the_forms_of_flags() -> None:
    options = Options.parse(
        [
            "--secure-port=0", "--bind-address", "127.0.0.1", "--anonymous-auth=false",
            "--request-timeout=1m30s", "-v=4",
            "--cors-allowed-origins=^https://a$,//b$", "--cors-allowed-origins", "//c$", "--event_ttl=2h",
        ]
    )  # fmt: skip
    assert options.serving.secure_port == 0
    assert options.serving.bind_address == "127.0.0.1"
    assert options.authentication.anonymous_auth is False
    assert options.generic.request_timeout == 90.0
    assert options.logging.v == 4
    assert options.generic.cors_allowed_origins == ("^https://a$", "//b$", "//c$")
    assert options.storage.event_ttl == 7200.0
    assert Options.parse(["-v", "2"]).logging.v == 2
    assert Options.parse(["--anonymous-auth"]).authentication.anonymous_auth is True


def test_all_errors_at_once_each_with_flag_and_fix() -> None:
    found = errors(
        "--secure-port=70000", "--bind-adress=::", "--tls-cert-file=/nope", "--max-requests-inflight", "many",
        "--request-timeout=5", "--service-cluster-ip-range=10.0.0.0/24,10.1.0.0/24", "--cors-allowed-origins=evil",
        "--logging-format=xml", "stray", "--strict-transport-security-directives=max-age",
        "--service-node-port-range=9-1",
    )  # fmt: skip
    assert found == [
        "unknown flag --bind-adress, did you mean --bind-address?",
        "--max-requests-inflight: 'many' does not fit: a whole number is expected",
        "--request-timeout: '5' does not fit: a duration such as 30s or 1m30s is expected "
        '(time: missing unit in duration "5")',
        "unexpected argument 'stray': flags start with --",
        "--secure-port: 70000 is not a port, use 1 to 65535, or 0 for any free port",
        "--tls-private-key-file: is needed too, certificate and key come together",
        "--cors-allowed-origins: 'evil' matches anywhere in an origin, anchor it: ^https://host$ or //host$",
        "--strict-transport-security-directives: 'max-age' is none of max-age=SECONDS, includeSubDomains, preload",
        "--service-cluster-ip-range: at most one CIDR of each IP family, as in 10.0.0.0/24,fd00::/108",
        "--service-node-port-range: '9-1' is not a range of ports, use for example 30000-32767",
        "--tls-cert-file: '/nope' does not exist, check the path",
        "--logging-format: 'xml' is none of text, json",
    ]


@pytest.mark.parametrize(
    ("argument", "error"),
    [
        (
            "--bind-address=localhost",
            "--bind-address: 'localhost' does not fit: an IP address such as 127.0.0.1 is expected",
        ),
        ("--bind-address=", "--bind-address: '' is not an IP address, use for example 127.0.0.1"),
        ("--max-mutating-requests-inflight=-1", "--max-mutating-requests-inflight: cannot be negative, use 0 or more"),
        ("--request-timeout=0s", "--request-timeout: must be longer than nothing, use for example 1m"),
        ("--event-ttl=-1s", "--event-ttl: must be longer than nothing, use for example 1h"),
        ("--service-cluster-ip-range=x", "--service-cluster-ip-range: 'x' is not a CIDR, use for example 10.0.0.0/24"),
        ("--cors-allowed-origins=^(", "--cors-allowed-origins: '^(' is not a regular expression"),
        ("--anonymous-auth=maybe", "--anonymous-auth: 'maybe' does not fit: true or false is expected"),
        ("--secure-port", "--secure-port: needs a value, write --secure-port=VALUE"),
        ("--zzzzzzzz", "unknown flag --zzzzzzzz: see --help for all flags"),
        (
            "--data-dir=/dev/null",
            "--data-dir: '/dev/null' is a file, give a directory (it is made when it does not exist)",
        ),
        ("-x", "unexpected argument '-x': flags start with --"),
    ],
)
def test_single_errors(argument: str, error: str) -> None:
    (found,) = errors(argument)
    assert found.startswith(error)


def test_a_misspelt_flag_takes_its_value_with_it() -> None:
    assert len(errors("--bind-adress", "127.0.0.1", "--secure-port=0")) == 1


def test_flags_of_the_reference_without_meaning_are_noted() -> None:
    options = Options.parse(
        [
            "--watch-cache-sizes=x#1",
            "--watch-cache",
            "--goaway-chance",
            "0.01",
            "--secure-port=1",
            "--watch-cache-sizes=y#1",
        ]
    )
    assert options.inert == {"watch-cache-sizes": ("x#1", "y#1"), "watch-cache": True, "goaway-chance": 0.01}
    assert options.serving.secure_port == 1
    assert inert.reference().keys() >= PROTECTIVE


@pytest.mark.parametrize(
    ("argument", "error"),
    [
        ("--watch-cache=maybe", "true or false is expected"),
        ("--lease-reuse-duration-seconds=1s", "a whole number is expected"),
        ("--etcd-healthcheck-timeout=2", "a duration such as 30s or 1m30s is expected"),
        ("--goaway-chance=rarely", "a number is expected"),
        ("--log-json-info-buffer-size=many", "a quantity such as 512Ki is expected"),
        ("--tls-curve-preferences=X25519", "a whole number is expected"),
        ("--allow-metric-labels=a", "name=value pairs are expected, 'a' has no value"),
    ],
)
def test_flags_without_meaning_still_have_a_type(argument: str, error: str) -> None:
    (found,) = errors(argument)
    assert error in found
    assert found.startswith(argument.partition("=")[0] + ": ")


def test_every_flag_of_the_reference_is_known_with_its_default() -> None:
    if not FACTS.exists():
        pytest.skip("facts are not here")
    facts = json.loads(FACTS.read_text())["flags"]
    own, reference = flags(), inert.reference()
    assert facts.keys() - reference.keys() == {"help", "version"}
    for name, (kind, default) in reference.items():
        known = facts[name]
        assert kind == known["type"], name
        shown = str(known["default"]).lower() if isinstance(known["default"], bool) else str(known["default"])
        assert default == (shown.strip("[]").removesuffix(".0") if "float" in kind else shown.strip("[]")), name
    for name, quiet in inert.inert(own).items():
        assert name not in own
        if quiet.default:
            quiet.kind.parse(quiet.default)
    chosen_by_us = {"service-cluster-ip-range", "authorization-mode"}
    for name in own.keys() & facts.keys() - chosen_by_us:
        default = facts[name]["default"]
        if own[name].kind.name == "duration":
            default = own[name].kind.parse(default)
        elif own[name].kind.repeats:
            default = tuple(part for part in default.strip("[]").split(",") if part)
        assert own[name].default == default, name


def test_help_lists_every_flag() -> None:
    text = usage()
    assert all(f"  --{name}" in text for name in flags())
    assert "(default 6443)" in text
