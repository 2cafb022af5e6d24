from __future__ import annotations

import base64
import os
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from fastapi_core._ext.reqinfo import parse
from fastapi_core.authz.base import Attributes, Decision, Verdict
from fastapi_core.obs import logs
from fastapi_core.options.complete import complete
from fastapi_core.options.flags import OptionsError
from fastapi_core.options.kubeconfig import server_url
from fastapi_core.options.options import Options
from fastapi_core.request.context import RequestContext, User
from tests.fixtures.exchange import FakeRequest


def identity(authenticator: Any, authorization: str | None, path: str = "/api/v1/pods") -> Any:
    request: Any = FakeRequest(target=path, headers={"Authorization": authorization} if authorization else None)
    return authenticator.authenticate(RequestContext(request, parse("GET", path, "")))


def test_data_directory(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('usertoken,alice,2,"devs"\n')
    home = tmp_path / "a/b"
    completed = complete(Options.parse([f"--data-dir={home}", f"--token-auth-file={tokens}", "--request-timeout=5s"]))
    assert (completed.data_dir, completed.home) == (str(home), str(home))
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    config = completed.config
    assert config.request_timeout == config.drain_timeout == 5.0
    assert config.tls is not None
    assert config.tls.client_cas == (completed.pki.ca,)
    assert identity(config.authenticator, f"Bearer {completed.pki.admin_token()}").groups[0] == "system:masters"
    assert identity(config.authenticator, "Bearer usertoken").name == "alice"
    assert identity(config.authenticator, None, "/healthz").name == "system:anonymous"
    assert identity(config.authenticator, None).name == "system:anonymous"
    completed.close()
    assert home.exists()


def test_without_a_data_directory_everything_is_temporary() -> None:
    completed = complete(Options.parse(["--anonymous-auth=false"]))
    assert completed.data_dir is None
    assert os.path.exists(completed.pki.ca)
    assert identity(completed.config.authenticator, None, "/healthz") is None
    completed.close()
    assert not os.path.exists(completed.home)


@pytest.mark.parametrize("modes", ["AlwaysAllow", "Node,RBAC,AlwaysAllow", "AlwaysAllow,RBAC"])
def test_where_whoever_is_known_may_do_everything_strangers_get_no_further_than_health(modes: str) -> None:
    completed = complete(Options.parse([f"--authorization-mode={modes}"]))
    assert identity(completed.config.authenticator, None, "/healthz").name == "system:anonymous"
    assert identity(completed.config.authenticator, None) is None
    completed.close()


def test_until_the_store_is_open_nobody_but_administrators_may_do_anything() -> None:
    completed = complete(Options.parse([]))
    for groups, decision in ((("system:masters",), Decision.ALLOW), (("devs",), Decision.NO_OPINION)):
        attributes = Attributes(User("x", groups=groups), "get", "", "v1", "", "pods", "", "", "", True, "", "")
        assert completed.config.authorizer.authorize(attributes) == Verdict(decision)
    completed.close()


def test_kubeconfig_holds_everything(tmp_path: Path) -> None:
    completed = complete(Options.parse([f"--data-dir={tmp_path}"]))
    path = Path(completed.write_kubeconfig(12345))
    assert path == tmp_path / "admin.kubeconfig"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    config = yaml.safe_load(path.read_text())
    cluster = config["clusters"][0]["cluster"]
    assert cluster["server"] == "https://127.0.0.1:12345"
    assert base64.b64decode(cluster["certificate-authority-data"]) == Path(completed.pki.ca).read_bytes()
    user = config["users"][0]["user"]
    assert base64.b64decode(user["client-certificate-data"]) == Path(completed.pki.admin_cert).read_bytes()
    assert base64.b64decode(user["client-key-data"]) == Path(completed.pki.admin_key).read_bytes()
    assert config["current-context"] == config["contexts"][0]["name"]


def test_renewal_reaches_the_kubeconfig(tmp_path: Path) -> None:
    completed = complete(Options.parse([f"--data-dir={tmp_path}"]))
    path = Path(completed.write_kubeconfig(1))
    before = path.read_bytes()
    completed.renew(1)
    assert path.read_bytes() == before
    os.unlink(completed.pki.admin_cert)
    completed.renew(1)
    user = yaml.safe_load(path.read_text())["users"][0]["user"]
    assert base64.b64decode(user["client-certificate-data"]) == Path(completed.pki.admin_cert).read_bytes()
    assert path.read_bytes() != before


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("0.0.0.0", "https://127.0.0.1:1"), ("::", "https://127.0.0.1:1"), ("10.1.2.3", "https://10.1.2.3:1"),
        ("::1", "https://[::1]:1"),
    ],
)  # fmt: skip
def test_server_urls(address: str, url: str) -> None:
    assert server_url(address, 1) == url


def test_unusable_files_name_their_flag(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("only,two\n")
    with pytest.raises(OptionsError, match=r"--token-auth-file: .*line 1: expected token,user,uid"):
        complete(Options.parse([f"--token-auth-file={tokens}", f"--data-dir={tmp_path / 'd'}"]))
    blocked = tmp_path / "file"
    blocked.write_text("")
    options = Options()
    options.storage.data_dir = str(blocked / "below")
    with pytest.raises(OptionsError, match=r"--data-dir: .* cannot be made"):
        complete(options)


def test_flags_that_are_not_in_force_are_announced_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs.SINK.configure()
    complete(
        Options.parse(
            [
                f"--data-dir={tmp_path}",
                "--encryption-provider-config=x",
                "--storage-media-type=application/json",
                "--goaway-chance=0.01",
            ]
        )
    )
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("W")
    assert lines[0].endswith('"Flags not in force" flags="--encryption-provider-config"')
    assert lines[1].endswith('"Flags without effect" flags="--goaway-chance --storage-media-type"')


def refusals(*arguments: str) -> list[str]:
    with pytest.raises(OptionsError) as caught:
        complete(Options.parse(arguments)).close()
    return caught.value.errors


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--oidc-issuer-url=https://i"], "--oidc-client-id: is needed too"),
        (["--oidc-client-id=x"], "--oidc-issuer-url: is needed too"),
        (["--oidc-groups-claim=x"], "--oidc-groups-claim: needs --oidc-issuer-url"),
        (["--oidc-issuer-url=http://i", "--oidc-client-id=x"], "--oidc-issuer-url: 'http://i' is not an https URL"),
        (["--oidc-issuer-url=https://i", "--oidc-client-id=x", "--oidc-signing-algs=HS256"], "'HS256' is none of"),
        (["--oidc-issuer-url=https://i", "--oidc-client-id=x", "--oidc-required-claim=x"], "'x' is no pair"),
        (["--oidc-issuer-url=https://i", "--oidc-client-id=x", "--service-account-issuer=https://i"], "must differ"),
        (["--service-account-issuer="], "--service-account-issuer: cannot be empty"),
        (["--service-account-issuer=a", "--service-account-issuer=a"], "is given twice"),
        (["--service-account-issuer=https://[x"], "was not a valid URL"),
        (["--service-account-jwks-uri=http://x"], "requires https scheme"),
        (["--service-account-max-token-expiration=10m"], "must be between 1 hour and 2^32 seconds"),
        (["--service-account-key-file=/nosuch"], "--service-account-key-file: '/nosuch' does not exist"),
        (["--authentication-token-webhook-version=v2"], "'v2' is none of v1, v1beta1"),
        (["--authentication-token-webhook-cache-ttl=-1s"], "cannot be negative"),
        (["--requestheader-client-ca-file=/nosuch"], "--requestheader-client-ca-file: '/nosuch' does not exist"),
    ],
)
def test_flags_of_authentication_that_do_not_fit(flags: list[str], text: str) -> None:
    assert any(text in line for line in refusals(*flags)), refusals(*flags)


def test_files_of_authentication_that_cannot_be_used(tmp_path: Path) -> None:
    junk = tmp_path / "junk"
    junk.write_text("junk: [")
    names = (
        "client-ca-file", "requestheader-client-ca-file", "authentication-config", "service-account-key-file",
        "authentication-token-webhook-config-file",
    )  # fmt: skip
    errors = refusals(*(f"--{name}={junk}" for name in names))
    assert sorted(error.partition(":")[0] for error in errors) == sorted(f"--{name}" for name in names)
    config = tmp_path / "config"
    config.write_text(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\nanonymous: {enabled: true}\n"
    )
    assert "leave the flag out" in refusals(f"--authentication-config={config}", "--anonymous-auth=false")[0]
    flags = [f"--authentication-config={config}", "--oidc-issuer-url=https://i", "--oidc-client-id=x"]
    assert "mutually exclusive" in refusals(*flags)[0]


def test_audiences_and_issuers() -> None:
    for flags, issuers, audiences in (
        ([], ("https://kubernetes.default.svc",), ("https://kubernetes.default.svc",)),
        (["--service-account-issuer=a", "--service-account-issuer=b"], ("a", "b"), ("a", "b")),
        (["--service-account-issuer=a", "--api-audiences=x,y"], ("a",), ("x", "y")),
    ):
        completed = complete(Options.parse(flags))
        assert (completed.credentials.issuers, completed.credentials.audiences) == (issuers, audiences)
        completed.close()


def test_oidc_flags_are_an_issuer_of_the_configuration() -> None:
    for flags, prefix in (
        ([], "https://i#"), (["--oidc-username-claim=email"], ""), (["--oidc-username-prefix=-"], ""),
        (["--oidc-username-claim=email", "--oidc-username-prefix=p:"], "p:"),
    ):  # fmt: skip
        completed = complete(Options.parse(["--oidc-issuer-url=https://i", "--oidc-client-id=c", *flags]))
        assert completed.credentials.config is not None
        (jwt,) = completed.credentials.config.jwt
        assert (jwt.issuer.url, jwt.issuer.audiences, jwt.username.prefix) == ("https://i", ("c",), prefix)
        completed.close()


def test_where_unknown_clients_may_go(tmp_path: Path) -> None:
    config = tmp_path / "config"
    head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
    for anonymous, allowed in (
        ("{enabled: false}", []), ("{enabled: true, conditions: [{path: /livez}]}", ["/livez"]),
        ("{enabled: true}", ["/healthz", "/livez"]),
    ):  # fmt: skip
        config.write_text(f"{head}anonymous: {anonymous}\n")
        completed = complete(Options.parse([f"--authentication-config={config}", "--authorization-mode=AlwaysAllow"]))
        known = completed.config.authenticator
        assert [path for path in ("/healthz", "/livez", "/metrics") if identity(known, None, path)] == allowed
        completed.close()


def test_a_front_proxy_of_its_own(tmp_path: Path) -> None:
    completed = complete(Options.parse([f"--data-dir={tmp_path}", "--aggregator-make-proxy-certificate"]))
    options = completed.options
    folder = tmp_path / "pki/front-proxy"
    assert options.aggregation.proxy_client_cert_file == str(folder / "proxy.crt")
    assert options.authentication.requestheader_allowed_names == ("front-proxy-client",)
    assert options.authentication.requestheader_username_headers == ("X-Remote-User",)
    assert completed.credentials.proxy_trust is not None
    assert completed.config.tls is not None
    assert completed.config.tls.client_cas == (completed.pki.ca, str(folder / "ca.crt"))
    before = (folder / "proxy.crt").read_bytes()
    completed.renew(1)
    assert (folder / "proxy.crt").read_bytes() == before
    with pytest.raises(OptionsError, match="--aggregator-make-proxy-certificate: makes what"):
        Options.parse(["--aggregator-make-proxy-certificate", f"--requestheader-client-ca-file={folder / 'ca.crt'}"])
