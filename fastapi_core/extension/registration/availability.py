"""Waiting until an API is available, and what is most likely wrong when it does not become so."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from fastapi_core.authn.outbound import OutboundError
from fastapi_core.extension.delegated.client import segment
from fastapi_core.extension.registration.manifests import API_SERVICES

if TYPE_CHECKING:
    from fastapi_core.extension.delegated.client import CoreClient
    from fastapi_core.extension.description import Description

Tree = dict[str, Any]

_NAMES = (
    "the serving certificate is for other names: it needs {names} (a server that makes its own is told by "
    "--external-hostname)"
)
#: What is in the message of a failed probe, and what to do then.
_PROBE_ADVICE = (
    (
        "unknown authority",
        "the serving certificate is not signed by the registered CA: give its CA by --ca-file, or the directory of the "
        "running server by --data-dir, and register again",
    ),
    (
        "certificate is not valid for",
        _NAMES,
    ),
    (
        "hostname mismatch",
        _NAMES,
    ),
    (
        "certificate has expired",
        "the serving certificate has expired: renew it, or restart a server that makes its own",
    ),
    ("connection refused", "nothing listens there: is the server running, and on this port?"),
    (
        "no such host",
        "the name is not known where the API server runs",
    ),
    (
        "timeout",
        "the API server cannot reach the address: without kube-proxy start it with --enable-aggregator-routing, or register "
        "with --external-name",
    ),
    (
        "unreachable",
        "the API server cannot reach the address: without kube-proxy start it with --enable-aggregator-routing, or register "
        "with --external-name",
    ),
    (
        "bad status",
        "the server answers, but not with the document of the group version: does it serve {group_version}?",
    ),
)
_STRANGER = (
    "the server takes the API server for a stranger: that has to show a proxy certificate, with fastapi-core serve by "
    "--aggregator-make-proxy-certificate, else by --proxy-client-cert-file and the --requestheader-* flags"
)
_REFUSES = re.compile(r"bad status from .*: 40[13]$")
_PATIENCE = 10.0
"""Seconds a refusal has to last before it is believed: a server that has just been given its rights may not know yet."""
_ADVICE = {
    "ServiceNotFound": "the Service {service} is missing: register again",
    "ServicePortError": "the Service {service} does not have the port of the APIService: register again",
    "ServiceAccessError": "the API server cannot read the Service {service}",
    "EndpointsNotFound": "no pod stands behind the Service {service}: `kubectl -n {namespace} get pods --show-labels` and "
    "compare with --selector",
    "MissingEndpoints": "no ready pod stands behind the Service {service}: `kubectl -n {namespace} get pods --show-labels` and "
    "compare with --selector, or say where the server is by --endpoint or --external-name",
}


async def wait(client: CoreClient, description: Description, timeout: float) -> list[str]:
    """Wait until all group versions are available; what is wrong with those that are not after `timeout` seconds."""
    loop = asyncio.get_running_loop()
    end = loop.time() + timeout
    wrong = []
    for version in description.versions:
        state: dict[str, Tree] = {}
        tree = await client.get(f"{API_SERVICES.collection()}/{segment(version.name)}")
        try:
            # Of those that come after a slow one, too, the state is known.
            async with asyncio.timeout_at(end) as limit:
                await _until_available(client, tree, partial(_available, state, limit, end))
        except TimeoutError:
            wrong += _problem(version.name, str(version), description, state.get("condition"))
    return wrong


async def _until_available(client: CoreClient, tree: Tree, available: Callable[[Tree], bool]) -> None:
    path, name = API_SERVICES.collection(), tree["metadata"]["name"]
    selected = {"fieldSelector": f"metadata.name={name}"}
    while not available(tree):
        query = {**selected, "watch": "true", "resourceVersion": tree["metadata"]["resourceVersion"]}
        try:
            async with aclosing(client.watch(f"{path}?{urlencode(query)}")) as events:
                async for event in events:
                    found = event.get("object")
                    if event.get("type") not in ("ADDED", "MODIFIED") or not isinstance(found, dict):
                        break
                    if available(found):
                        return
        except OutboundError:
            pass
        # Over before anything happened: a server that is busy with itself is not asked again at once.
        await asyncio.sleep(0.5)
        tree = await client.get(f"{path}/{segment(name)}")


def _available(state: dict[str, Tree], limit: asyncio.Timeout, end: float, tree: Tree) -> bool:
    """Keep the condition in `state`; while it is a refusal there is less time: waiting does not change it."""
    conditions = (tree.get("status") or {}).get("conditions") or ()
    condition = next((c for c in conditions if c.get("type") == "Available"), None)
    if condition is None:
        return False
    before, after = _refused(state.get("condition") or {}), _refused(condition)
    state["condition"] = condition
    if before != after:
        limit.reschedule(min(end, asyncio.get_running_loop().time() + _PATIENCE) if after else end)
    return bool(condition.get("status") == "True")


def _refused(condition: Tree) -> bool:
    return condition.get("status") == "False" and _REFUSES.search(condition.get("message") or "") is not None


def _problem(name: str, group_version: str, description: Description, condition: Tree | None) -> list[str]:
    shown = f"apiservice/{name} is not available"
    if condition is None:
        return [f"{shown}: the API server has said nothing of it: does it aggregate APIs?"]
    reason, message = condition.get("reason") or "", condition.get("message") or ""
    advice = _ADVICE.get(reason, "")
    if not advice:
        lowered = message.lower()
        advice = next((text for sign, text in _PROBE_ADVICE if sign in lowered), "")
    if _refused(condition):
        advice = _STRANGER
    facts = {
        "service": f"{description.namespace}/{description.name}",
        "namespace": description.namespace,
        "names": ", ".join(description.service_names()[:1]),
        "group_version": group_version,
    }
    lines = [f"{shown}: {reason}: {message}"]
    if advice:
        lines.append(f"  {advice.format_map(facts)}")
    return lines
