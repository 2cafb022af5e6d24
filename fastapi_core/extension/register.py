"""`register` and `unregister`: the objects that put an extension behind an API server."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from fastapi_core.authn.outbound import OutboundError
from fastapi_core.errors import APIError
from fastapi_core.extension.cli import program
from fastapi_core.extension.delegated import access, patience
from fastapi_core.extension.delegated.client import CoreClient
from fastapi_core.extension.registration import manifests, options
from fastapi_core.extension.registration.program import credential
from fastapi_core.extension.registration.registrar import Registrar, RegistrationError
from fastapi_core.options.flags import OptionsError

if TYPE_CHECKING:
    from fastapi_core.extension.description import Description
    from fastapi_core.extension.registration.manifests import Object
    from fastapi_core.extension.registration.options import Common, Registration

_Flags = TypeVar("_Flags", bound="Common")
_AGENT = "fastapi-core-register"


def register(description: Description | None, arguments: Sequence[str]) -> int:
    """Create or update the objects and wait until the API is available; `arguments` are the flags behind `register`.

    Without a `description` the flags say what is served. The exit code: 0, 1 for a failure, 2 for a wrong command line.
    """
    if any(argument in ("--help", "-h") for argument in arguments):
        print(f"usage: {program()} register [flags]\n\n{options.usage(options.Registration)}")
        return 0
    return _command(description, arguments, options.registration, _register)


def unregister(description: Description | None, arguments: Sequence[str]) -> int:
    """Remove exactly what `register` made. Exit code as there."""
    if any(argument in ("--help", "-h") for argument in arguments):
        print(f"usage: {program()} unregister [flags]\n\n{options.usage(options.Withdrawal)}")
        return 0
    return _command(description, arguments, options.withdrawal, _unregister)


def _command(
    description: Description | None,
    arguments: Sequence[str],
    read: Callable[[Sequence[str]], _Flags],
    run: Callable[[Description, _Flags], Awaitable[int]],
) -> int:
    try:
        flags = read(arguments)
        described = flags.described(description)
    except OptionsError as error:
        return _complain(error.errors, 2)

    async def main() -> int:
        return await run(described, flags)

    try:
        return asyncio.run(main())
    except OptionsError as error:
        return _complain(error.errors, 1)
    except (RegistrationError, OutboundError) as error:
        return _complain([str(error)], 1)
    except APIError as error:
        return _complain([error.message], 1)
    except KeyboardInterrupt:
        return 130


def _complain(errors: Sequence[str], code: int) -> int:
    for error in errors:
        print(f"fastapi-core: {error}", file=sys.stderr)
    return code


async def _register(description: Description, flags: Registration) -> int:
    patient = min(flags.timeout, patience.SECONDS)
    client = None if flags.print else await _client(flags, patient)
    try:
        if client is not None:
            await patience.patiently(partial(client.get, "/version"), _waiting, patient)
        secret, ca = await _certificate(description, flags, client)
        wanted = manifests.objects(description, flags, ca, secret)
        if client is None:
            _print(wanted, manifests.mark_of(description))
            return 0
        return await _apply(description, flags, client, wanted)
    finally:
        if client is not None:
            client.close()


async def _apply(description: Description, flags: Registration, client: CoreClient, wanted: list[Object]) -> int:
    from fastapi_core.extension.registration.availability import wait

    registrar = Registrar(client, description, print, force=flags.force_conflicts)
    await registrar.check(wanted)
    for obj in wanted:
        await registrar.apply(obj)
    kept = manifests.Object(manifests.SECRETS, description.namespace, flags.tls_secret, {})
    await registrar.prune([*wanted, kept])
    if not flags.timeout:
        return 0
    wrong = await wait(client, description, flags.timeout)
    for version in description.versions if not wrong else ():
        print(f"{version} is available")
    return _complain(wrong, 1) if wrong else 0


async def _unregister(description: Description, flags: options.Withdrawal) -> int:
    client, said = await _client(flags, 0.0), []

    def say(line: str) -> None:
        said.append(line)
        print(line)

    try:
        gone = await Registrar(client, description, say).withdraw(with_namespace=flags.delete_namespace)
    finally:
        client.close()
    if not said:
        print(f"Nothing is registered as {manifests.mark_of(description)}")
    return 0 if gone else 1


async def _client(flags: Common, patient: float) -> CoreClient:
    """The API server to register with; its kubeconfig is waited for where one is named. Raises OptionsError."""
    named = access.kubeconfigs(flags.kubeconfig)
    home = os.path.join(os.path.expanduser("~"), ".kube", "config")

    async def attempt() -> access.Access:
        if named:
            return access.by_kubeconfig(access.existing(named), credential)
        return access.by_kubeconfig(home, credential) if os.path.exists(home) else access.in_cluster()

    try:
        return CoreClient(await patience.patiently(attempt, _waiting, patient), _AGENT)
    except access.NotInClusterError:
        raise OptionsError(
            [
                f"--kubeconfig: is not given, $KUBECONFIG is not set, and {home} does not exist: name the file of the API server"
            ]
        ) from None
    except access.AccessError as error:
        raise OptionsError([f"--kubeconfig: {error}"]) from None


def _waiting(why: str) -> None:
    print(f"fastapi-core: waiting for the API server: {why}", file=sys.stderr)


async def _certificate(
    description: Description, flags: Registration, client: CoreClient | None
) -> tuple[Object | None, bytes]:
    """The Secret to make (or none) and the bundle for `caBundle`. Raises OptionsError and what asking raises."""
    from fastapi_core.authn.trust import identities

    if flags.insecure_skip_tls_verify:
        return None, b""
    if flags.tls_secret:
        return await _secret(description, flags.tls_secret, client)
    if flags.data_dir:
        from fastapi_core.extension.certificates import FOLDER, made

        path, flag = os.path.join(flags.data_dir, FOLDER, "ca.crt"), "data-dir"
        if not os.path.exists(path):
            # The server takes what it finds, so it does not matter who comes first.
            made(os.path.join(flags.data_dir, FOLDER), description.service_names())
    else:
        path, flag = flags.ca_file, "ca-file"
    try:
        with open(path, "rb") as file:
            ca = file.read()
        identities(ca)
    except OSError as error:
        raise OptionsError([f"--{flag}: {path!r}: {error.strerror or error}"]) from None
    except ValueError as error:
        raise OptionsError([f"--{flag}: {path!r}: {error}: PEM certificates are expected"]) from None
    return None, ca


async def _secret(description: Description, name: str, client: CoreClient | None) -> tuple[Object | None, bytes]:
    """A Secret with a good certificate stays; the CA of one that is replaced is trusted once more, while pods notice."""
    from base64 import b64decode

    from fastapi_core.extension.registration import secret

    empty = manifests.Object(manifests.SECRETS, description.namespace, name, {})
    there = await client.find(empty.path) if client is not None else None
    ca = secret.holds(there, description)
    if ca:
        return None, ca
    obj, ca = secret.make(name, description)
    try:
        before = b64decode(((there or {}).get("data") or {}).get("ca.crt") or "")
    except ValueError:
        before = b""
    return obj, ca + before


def _print(wanted: Sequence[Object], mark: str) -> None:
    from fastapi_core.codec import yaml

    documents = [yaml.dump(obj.tree(mark)).decode() for obj in wanted]
    print("---\n".join(documents), end="")
