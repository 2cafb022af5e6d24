"""`make bench`: every row of the server, and the same bytes from the bare limit server, in one run.

    python -m bench [--seconds N] [--only WORD] [--quick]

Prints a table and appends one JSON line to `bench/results/HOST.jsonl`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pickle
import platform
import shutil
import subprocess
import tempfile
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from bench import (
    aggregate,
    custom,
    etcd,
    identity,
    micro_admission,
    micro_authz,
    micro_pod,
    micro_structural,
    micro_webhooks,
    objects,
)
from bench.client import JSON, TOKEN, Client, body, pusher
from bench.fanout import fan_out
from bench.load import Result, Shot, fire, results_folder
from bench.process import Limit, Served

USER_TOKEN = "bench-user-token"
NS = f"/api/v1/namespaces/{objects.NAMESPACE}"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{objects.NAMESPACE}/leases"
THINGS = f"/apis/{custom.GROUP}/v1/namespaces/{objects.NAMESPACE}/things"
PODS = 1000
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
MERGE = (("Content-Type", "application/merge-patch+json"),)
APPLY = (("Content-Type", "application/apply-patch+yaml"),)
POD_ALONE = "decode+validate+encode pod 5 KB"
ADMISSION = "default admission"
WEBHOOKS = "webhooks"
AGGREGATED = "aggregated, proxied"
CUSTOM = "custom definitions"
SCHEMAS = "schema of a custom resource"


def rows() -> dict[str, Shot]:
    """Row name -> what is sent."""
    pods = f"{NS}/pods"
    return {
        "GET configmap 1 KB": Shot(f"{NS}/configmaps/one"),
        "GET pod 5 KB": Shot(f"{pods}/pod-0001"),
        "GET missing (404)": Shot(f"{NS}/configmaps/none"),
        "LIST 1000 pods": Shot(pods),
        "LIST 1000 pods RV=0": Shot(f"{pods}?resourceVersion=0"),
        "LIST pods limit=100": Shot(f"{pods}?limit=100"),
        "LIST pods label (10 of 1000)": Shot(f"{pods}?labelSelector=rare%3Dyes"),
        "LIST pods field (20 of 1000)": Shot(f"{pods}?fieldSelector=spec.nodeName%3Dnode-7"),
        "LIST 500 pods": Shot("/api/v1/namespaces/half/pods"),
        "Table of 500 pods": Shot("/api/v1/namespaces/half/pods", headers=(("Accept", TABLE),)),
        "PartialObjectMetadata 1000": Shot(pods, headers=(("Accept", PARTIAL),)),
        "create configmap 1 KB": Shot(f"{NS}/configmaps", "POST", body(objects.configmap("c-@ID@-@N@")), JSON),
        "create pod": Shot("/api/v1/namespaces/new/pods", "POST", body(objects.pod("p-@ID@-@N@")), JSON),
        "GET custom resource 1 KB": Shot(f"{THINGS}/one"),
        "create custom resource 1 KB": Shot(THINGS, "POST", body(custom.thing("c-@ID@-@N@")), JSON),
        "merge patch configmap": Shot(
            f"{NS}/configmaps/patched-@N@", "PATCH", '{"data":{"n":"@N@"}}', MERGE, modulo=64
        ),
        "lease renewal": Shot(
            f"{LEASES}/lease-@N@",
            "PATCH",
            '{"spec":{"renewTime":"2026-01-02T03:04:05.000000Z","leaseTransitions":@N@}}',
            MERGE,
            modulo=64,
        ),
        "apply pod, nothing changes": Shot(
            f"{pods}/applied-@N@?fieldManager=bench", "PATCH", body(objects.pod("applied-@M@")), APPLY, modulo=64
        ),
        "apply pod, one label changes": Shot(
            f"{pods}/applied-@N@?fieldManager=bench", "PATCH", _relabelled("applied-@M@", "n@N@"), APPLY, modulo=64
        ),
    }


#: Rows that are measured once more with everything written down at level Metadata.
AUDITED = ("GET configmap 1 KB", "create configmap 1 KB", "lease renewal")
POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"


def _relabelled(name: str, label: str) -> str:
    pod = objects.pod(name)
    pod["metadata"]["labels"]["turn"] = label
    return body(pod)


def populate(client: Client) -> None:
    for name in (objects.NAMESPACE, "half", "new"):
        client.send("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        client.send("POST", f"/api/v1/namespaces/{name}/serviceaccounts", account)
    client.send("POST", f"{NS}/configmaps", objects.configmap("one"))
    client.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", custom.definition("things"))
    client.until(THINGS)
    client.send("POST", THINGS, custom.thing("one"))
    for number in range(64):
        client.send("POST", f"{NS}/configmaps", objects.configmap(f"patched-{number}"))
        client.send("POST", LEASES, objects.lease(f"lease-{number}"))
    for namespace, count in ((objects.NAMESPACE, PODS), ("half", PODS // 2)):
        add_pods(client, namespace, count)


def add_pods(client: Client, namespace: str, count: int) -> None:
    target = f"/api/v1/namespaces/{namespace}/pods"
    for number in range(count):
        name = f"pod-{number:04d}"
        client.send("POST", target, objects.pod(name, number))
        client.send("PATCH", f"{target}/{name}/status", objects.pod_status(number), MERGE)


def certificate(folder: Path) -> None:
    """The limit serves with the server's own certificate."""
    shutil.copy(folder / "data/pki/apiserver.crt", folder / "cert.pem")
    shutil.copy(folder / "data/pki/apiserver.key", folder / "key.pem")


def watch_rows(server: Served, folder: Path, client: Client, events: int) -> dict[str, dict[str, Any]]:
    found = {}
    (folder / "answers.bin").write_bytes(pickle.dumps({}))
    limit = Limit(folder, folder / "limit.log")
    for watchers in (200, 1000):
        listing = json.loads(client.send("GET", f"{NS}/configmaps?limit=1"))
        version = listing["metadata"]["resourceVersion"]
        target = f"{NS}/configmaps?watch=true&resourceVersion={version}"

        def change(number: int) -> None:
            client.send("PATCH", f"{NS}/configmaps/one", {"data": {"n": str(time.time_ns())}}, MERGE)

        ours = fan_out(server, server.port, target, TOKEN, watchers, events, change)
        frame = b'{"type":"MODIFIED","object":' + client.send("GET", f"{NS}/configmaps/one").rstrip() + b"}\n"
        bare = fan_out(limit, limit.port, "/stream", TOKEN, watchers, events, pusher(limit, frame))
        name, ratio = f"watch event x {watchers}", ours["cpu"] / bare["cpu"]
        found[name] = {"ours": ours, "limit": bare, "ratio": ratio}
        print(f"{name:32} {ours['cpu']:9.1f} {bare['cpu']:9.1f} {ratio:6.2f}x", flush=True)
    limit.stop()
    return found


#: After this a server has loaded what it put off when it started.
LOADED_SECONDS = 2.0


def start_rows(folder: Path, log: Path) -> dict[str, float]:
    """Start time and memory, empty and with 10,000 pods of 5 KB."""
    empty = Served(folder / "empty", log)
    first = empty.ready_seconds
    empty.stop()
    found = {"first start s": first}
    again = Served(folder / "empty", log, "--token-auth-file", str(folder / "tokens.csv"))
    found |= {"start s": again.ready_seconds, "start CPU s": again.ready_cpu}
    time.sleep(LOADED_SECONDS)
    found["idle MB"] = again.resident() / 1e6
    client = Client(again.port)
    client.send("GET", "/version")
    began = time.perf_counter()
    client.send("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "many"}})
    found["first write ms"] = (time.perf_counter() - began) * 1e3
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    client.send("POST", "/api/v1/namespaces/many/serviceaccounts", account)
    add_pods(client, "many", 10_000)
    found["10k pods MB"] = again.resident() / 1e6
    again.stop()
    loaded = Served(folder / "empty", log)
    found["start with 10k pods s"] = loaded.ready_seconds
    found["start with 10k pods CPU s"] = loaded.ready_cpu
    time.sleep(LOADED_SECONDS)
    found["10k pods after restart MB"] = loaded.resident() / 1e6
    loaded.stop()
    return found


def identity_rows(
    server: Served, client: Client, folder: Path, plain: dict[str, Any], load: dict[str, Any]
) -> dict[str, Any]:
    """The first row once more, with each of the other ways to say who asks."""
    name = "GET configmap 1 KB"
    if name not in plain:
        return {}
    bare = Result(**plain[name]["limit"])
    found = identity.rows(server, client, folder / "data", rows()[name], bare, **load)
    for row, values in found.items():
        print(f"{row:42} {values['ours']['cpu']:9.1f} {bare.cpu:9.1f} {values['ratio']:6.2f}x", flush=True)
    return found


def audit_rows(options: argparse.Namespace, folder: Path, plain: dict[str, Any]) -> dict[str, Any]:
    """The same requests to a server that writes all of them to a file; against the limits of the rows without."""
    wanted = [name for name in AUDITED if name in plain]
    if not wanted:
        return {}
    (folder / "policy.yaml").write_text(POLICY)
    flags = ["--token-auth-file", str(folder / "tokens.csv"), "--audit-policy-file", str(folder / "policy.yaml")]
    server = Served(folder / "data", folder / "server.log", *flags, "--audit-log-path", str(folder / "audit.log"))
    found: dict[str, Any] = {}
    for name in wanted:
        load = {"seconds": options.seconds, "connections": options.connections}
        ours = fire(server, server.url, rows()[name], TOKEN, run=f"a{len(found)}", **load)
        bare = Result(**plain[name]["limit"])
        found[f"{name}, audited"] = {"ours": asdict(ours), "limit": asdict(bare), "ratio": ours.cpu / bare.cpu}
        show(f"{name}, audited", ours, bare)
    server.stop()
    return found


def fairness_rows(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """GET with priority and fairness and with the two limits instead, for an exempt user and one who is not."""
    tokens = folder / "users.csv"
    tokens.write_text(f'{TOKEN},admin,1,"system:masters"\nplain,alice,2,"devs"\n')
    flags = ("--token-auth-file", str(tokens), "--authorization-mode=AlwaysAllow")
    found: dict[str, Any] = {}
    shot = Shot("/api/v1/namespaces/default")
    for name, flag in (("fair", "true"), ("two limits", "false")):
        server = Served(
            folder / name.replace(" ", "-"), folder / "server.log", *flags, f"--enable-priority-and-fairness={flag}"
        )
        for user, token in (("exempt", TOKEN), ("limited", "plain")):
            load = {"seconds": options.seconds, "connections": options.connections}
            row = fire(server, server.url, shot, token, run="f", **load)
            found[f"GET {name}, {user} user"] = asdict(row)
            print(f"{f'GET {name}, {user} user':32} {row.cpu:9.1f} {row.per_second:27.0f}/s", flush=True)
        server.stop()
    return found


POLICY_ROW = "GET by role, 1000 roles 10000 bindings"


def policy_row(server: Served, client: Client, folder: Path, load: dict[str, Any]) -> dict[str, Any]:
    """GET of a user whose right is one of many: policies in the store, every request judged."""
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    for number in range(micro_authz.NAMESPACES):
        client.send("POST", "/api/v1/namespaces", {"metadata": {"name": f"team-{number}"}})
    for plural, tree in micro_authz.policies(100):
        client.send("POST", f"{rbac}/namespaces/{tree['metadata']['namespace']}/{plural}", tree)
    shot = Shot("/api/v1/namespaces/team-0/configmaps/one")
    client.send("POST", "/api/v1/namespaces/team-0/configmaps", objects.configmap("one"))
    (folder / "answers.bin").write_bytes(pickle.dumps({shot.target: client.raw(shot, 0)}))
    ours = fire(server, server.url, shot, USER_TOKEN, run="p", **load)
    limit = Limit(folder, folder / "limit.log")
    bare = fire(limit, limit.url, shot, USER_TOKEN, run="l", **load)
    limit.stop()
    show(POLICY_ROW, ours, bare)
    return {"ours": asdict(ours), "limit": asdict(bare), "ratio": ours.cpu / bare.cpu}


def run(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    tokens = f'{TOKEN},admin,1,"system:masters"\n{USER_TOKEN},{micro_authz.USER.name},2,"devs"\n'
    (folder / "tokens.csv").write_text(tokens)
    server = Served(folder / "data", folder / "server.log", "--token-auth-file", str(folder / "tokens.csv"))
    client = Client(server.port)
    populate(client)
    shots = {name: shot for name, shot in rows().items() if options.only.lower() in name.lower()}
    raw = {name: client.raw(shot, number) for number, (name, shot) in enumerate(shots.items())}
    certificate(folder)
    measured: dict[str, Any] = {}
    load = {"seconds": options.seconds, "connections": options.connections}
    for name, shot in shots.items():
        ours = fire(server, server.url, shot, TOKEN, run=f"r{len(measured)}", **load)
        key = shot.target if shot.method == "GET" else f"{shot.method} {shot.target.partition('?')[0]}"
        answers = {key.replace("@N@", str(n)): raw[name] for n in range(64 if "@N@" in key else 1)}
        (folder / "answers.bin").write_bytes(pickle.dumps(answers))
        limit = Limit(folder, folder / "limit.log")
        bare = fire(limit, limit.url, shot, TOKEN, run="l", **load)
        limit.stop()
        measured[name] = {"ours": asdict(ours), "limit": asdict(bare), "ratio": ours.cpu / bare.cpu}
        show(name, ours, bare)
    if options.only.lower() in "watch event":
        measured |= watch_rows(server, folder, client, options.events)
    measured |= identity_rows(server, client, folder, measured, load)
    if options.only.lower() in POLICY_ROW.lower():
        measured[POLICY_ROW] = policy_row(server, client, folder, load)
    if options.only.lower() in "authorization from cold":
        measured |= _authorization()
    server.stop()
    measured |= audit_rows(options, folder, measured)
    if options.only.lower() in "get fair, two limits":
        measured["priority and fairness"] = fairness_rows(folder, options)
    if options.only.lower() in POD_ALONE:
        measured[POD_ALONE] = _pod_alone(measured)
    for part, measure in (
        (ADMISSION, micro_admission.measure),
        (WEBHOOKS, micro_webhooks.measure),
        (SCHEMAS, micro_structural.measure),
        (etcd.TITLE, partial(etcd.measure, folder, options, rows(), TOKEN)),
    ):
        if options.only.lower() in part:
            measured[part] = measure()
            for name, spent in measured[part].items():
                print(f"{f'{part}, {name}':40} {spent:5.1f}", flush=True)
    if options.only.lower() in AGGREGATED:
        measured |= aggregate.rows(folder, options)
    if not options.quick and options.only.lower() in CUSTOM:
        measured[CUSTOM] = _definitions(folder)
    if not options.quick and options.only.lower() in "start":
        measured["start and memory"] = start_rows(folder, folder / "server.log")
        for name, value in measured["start and memory"].items():
            print(f"{name:32} {value:9.3f}")
    return measured


def _authorization() -> dict[str, Any]:
    found = asyncio.run(micro_authz.run(20_000))
    for name, value in found.items():
        print(f"{name:40} {value:9.3f}", flush=True)
    return dict(found)


def _definitions(folder: Path) -> dict[str, float]:
    found = custom.measure(folder)
    for name, value in found.items():
        print(f"{name:40} {value:9.2f}", flush=True)
    return found


def _pod_alone(measured: dict[str, Any]) -> dict[str, float]:
    """The object's own part of a create, and its share of the whole where that was measured."""
    spent = micro_pod.measure()
    create = measured.get("create pod")
    if create is not None:
        spent["share"] = spent["cpu"] / create["ours"]["cpu"]
    print(f"{POD_ALONE:32} {spent['cpu']:9.1f} {spent.get('share', 0):27.0%} of a create", flush=True)
    return spent


def show(name: str, ours: Result, bare: Result) -> None:
    print(
        f"{name:32} {ours.cpu:9.1f} {bare.cpu:9.1f} {ours.cpu / bare.cpu:6.2f}x {ours.per_second:9.0f}/s "
        f"p50 {ours.p50 * 1e3:7.2f} ms p99 {ours.p99 * 1e3:7.2f} ms"
        + (f" ERRORS {ours.errors}" if ours.errors else ""),
        flush=True,
    )


def commit() -> str:
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return found.stdout.strip() or "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5, help="load per row")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--events", type=int, default=50, help="changes per watch row")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--quick", action="store_true", help="leave out what takes thousands of objects")
    parser.set_defaults(services=1000, dead=50)
    options = parser.parse_args()
    print(f"{'row':32} {'us/op':>9} {'limit':>9} {'ratio':>7}")
    with tempfile.TemporaryDirectory(prefix="fastapi-core-bench-") as folder:
        measured = run(options, Path(folder))
    record = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": commit(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "seconds": options.seconds,
        "rows": measured,
    }
    results_folder().mkdir(exist_ok=True)
    with (results_folder() / "results.jsonl").open("a") as file:
        file.write(json.dumps(record, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
