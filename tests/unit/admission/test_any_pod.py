"""Mutating plugins run before validation: whatever decodes as a pod is completed or refused, never a crash."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fastapi_core.admission.chain import AdmissionChain, Plugin
from fastapi_core.admission.plugins.accounts import ServiceAccount
from fastapi_core.admission.plugins.classes import RuntimeClass
from fastapi_core.admission.plugins.limits import LimitRanger
from fastapi_core.admission.plugins.namespaced_pods import PodNodeSelector, PodTolerationRestriction
from fastapi_core.admission.plugins.pods import (
    AlwaysPullImages,
    DefaultTolerationSeconds,
    ExtendedResourceToleration,
    LimitPodHardAntiAffinityTopology,
    PodTopologyLabels,
    Priority,
)
from fastapi_core.admission.podsecurity.plugin import PodSecurity
from fastapi_core.admission.quota.plugin import ResourceQuota
from fastapi_core.apis.defaults import apply_defaults
from fastapi_core.errors import APIError
from fastapi_core.schema import defaults as type_defaults
from fastapi_core.schema.normalize import normalize
from tests.fixtures.admission import World, definition, request

Tree = dict[str, Any]
words = st.sampled_from(["", "a", "b", "kube-api-access-x", "ALL", "RuntimeDefault", "Exists"])
quantities = st.sampled_from(["0", "1", "100m", "-1", "1Gi"])
lists = st.dictionaries(st.sampled_from(["cpu", "memory", "example.com/gpu", "hugepages-2Mi"]), quantities, max_size=3)


def tree(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[Tree]:
    return st.fixed_dictionaries({}, optional=members)


secret = tree(name=words)
context = tree(
    privileged=st.booleans(),
    runAsUser=st.integers(0, 2),
    runAsNonRoot=st.booleans(),
    allowPrivilegeEscalation=st.booleans(),
    capabilities=tree(add=st.lists(words, max_size=2), drop=st.lists(words, max_size=2)),
    seccompProfile=tree(type=words),
    appArmorProfile=tree(type=words),
    seLinuxOptions=tree(type=words, user=words),
    procMount=words,
    windowsOptions=tree(hostProcess=st.booleans()),
)
container = tree(
    name=words,
    image=words,
    env=st.lists(tree(name=words, valueFrom=tree(secretKeyRef=secret)), max_size=2),
    envFrom=st.lists(tree(secretRef=secret, configMapRef=secret), max_size=2),
    ports=st.lists(tree(hostPort=st.integers(0, 2), containerPort=st.integers(0, 2)), max_size=2),
    resources=tree(requests=lists, limits=lists),
    volumeMounts=st.lists(tree(name=words, mountPath=words), max_size=2),
    securityContext=context,
    livenessProbe=tree(httpGet=tree(host=words)),
    lifecycle=tree(preStop=tree(tcpSocket=tree(host=words))),
    restartPolicy=words,
)
toleration = tree(key=words, operator=words, value=words, effect=words, tolerationSeconds=st.integers(0, 2))
volume = tree(
    name=words,
    secret=tree(secretName=words),
    hostPath=tree(path=words),
    projected=tree(sources=st.lists(tree(serviceAccountToken=tree(path=words), secret=secret), max_size=2)),
    image=tree(reference=words),
    csi=tree(driver=words, nodePublishSecretRef=secret),
)
term = tree(topologyKey=words, namespaces=st.lists(words, max_size=1))
pods = tree(
    metadata=tree(
        name=words,
        generateName=words,
        labels=st.dictionaries(words, words, max_size=1),
        annotations=st.dictionaries(st.sampled_from(["kubernetes.io/config.mirror", "a"]), words, max_size=2),
    ),
    spec=tree(
        containers=st.lists(container, max_size=2),
        initContainers=st.lists(container, max_size=2),
        ephemeralContainers=st.lists(container, max_size=1),
        volumes=st.lists(volume, max_size=2),
        tolerations=st.lists(toleration, max_size=2),
        securityContext=context,
        serviceAccountName=st.sampled_from(["", "strict"]),
        imagePullSecrets=st.lists(secret, max_size=2),
        nodeSelector=st.dictionaries(words, words, max_size=1),
        nodeName=words,
        priority=st.integers(0, 1),
        runtimeClassName=st.sampled_from(["vm"]),
        overhead=lists,
        resources=tree(requests=lists, limits=lists),
        affinity=tree(podAntiAffinity=tree(requiredDuringSchedulingIgnoredDuringExecution=st.lists(term, max_size=1))),
        hostUsers=st.booleans(),
        os=tree(name=words),
    ),
)


async def gates(world: World) -> AdmissionChain:
    """Every plugin that looks at pods, with something to do for each."""
    await world.add("namespaces", "ns", labels={"pod-security.kubernetes.io/enforce": "restricted"})
    enforced = {"kubernetes.io/enforce-mountable-secrets": "true"}
    await world.add("serviceaccounts", "default", "ns", imagePullSecrets=[{"name": "a"}])
    await world.add("serviceaccounts", "strict", "ns", annotations=enforced)
    limit = {"type": "Container", "default": {"cpu": "1"}, "max": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "2"}}
    limits = [limit, {"type": "Pod", "max": {"cpu": "1"}}]
    await world.add("limitranges", "l", "ns", spec={"limits": limits})
    status = {"hard": {"pods": "9", "requests.cpu": "1"}, "used": {"pods": "0", "requests.cpu": "0"}}
    await world.add("resourcequotas", "q", "ns", status=status)
    runtime = {"handler": "h", "scheduling": {"nodeSelector": {"a": "b"}}, "overhead": {"podFixed": {"cpu": "1"}}}
    await world.add("runtimeclasses", "vm", group="node.k8s.io", **runtime)
    spaces = world.see("namespaces")
    plugins: list[Plugin] = [
        LimitPodHardAntiAffinityTopology(),
        LimitRanger(world.see("limitranges")),
        ServiceAccount(world.see("serviceaccounts"), patience=0.01),
        AlwaysPullImages(),
        PodSecurity(spaces, world.see("pods")),
        PodNodeSelector(spaces, {"clusterDefaultNodeSelector": "x=y"}),
        Priority(world.see("priorityclasses", "scheduling.k8s.io")),
        DefaultTolerationSeconds(),
        PodTolerationRestriction(spaces),
        ExtendedResourceToleration(),
        RuntimeClass(world.see("runtimeclasses", "node.k8s.io")),
        PodTopologyLabels(world.see("nodes")),
        ResourceQuota(world.see("resourcequotas")),
    ]
    return AdmissionChain(plugins)


@settings(max_examples=8, deadline=None)
@given(st.lists(pods, min_size=15, max_size=25))
def test_any_pod_is_completed_or_refused(bodies: list[Tree]) -> None:
    async def run() -> None:
        world = World()
        await world.storage.open()
        await world.cacher.open()
        try:
            chain = await gates(world)
            for body in bodies:
                await judged(chain, body)
        finally:
            await world.cacher.close()
            await world.storage.close()

    asyncio.run(run())


async def judged(chain: AdmissionChain, body: Tree) -> None:
    kind = definition("pods")
    pod = normalize(kind.type, {"kind": "Pod", "apiVersion": "v1", **body}).tree
    pod["metadata"] = {"namespace": "ns", **(pod.get("metadata") or {})}
    type_defaults.apply(kind.type, pod)
    apply_defaults(kind, pod)
    for number in range(len(chain.plugins)):
        single = AdmissionChain(chain.plugins[number : number + 1])
        attributes = request("pods", copy.deepcopy(pod), dry_run=True)
        try:
            await single.mutate(attributes)
        except APIError:
            continue
        assert attributes.object is not None
        again = normalize(kind.type, attributes.object).tree
        try:
            await single.validate(attributes)
        except APIError:
            continue
        assert normalize(kind.type, again).unknown == []


@settings(max_examples=8, deadline=None)
@given(st.lists(pods, min_size=10, max_size=20))
def test_all_plugins_together_are_idempotent(bodies: list[Tree]) -> None:
    """A second run, as a webhook may ask for, changes nothing more."""

    async def run() -> None:
        world = World()
        await world.storage.open()
        await world.cacher.open()
        try:
            chain = await gates(world)
            for body in bodies:
                await repeated(chain, body)
        finally:
            await world.cacher.close()
            await world.storage.close()

    asyncio.run(run())


async def repeated(chain: AdmissionChain, body: Tree) -> None:
    kind = definition("pods")
    pod = normalize(kind.type, {"kind": "Pod", "apiVersion": "v1", **body}).tree
    pod["metadata"] = {"namespace": "ns", **(pod.get("metadata") or {})}
    apply_defaults(kind, pod)
    attributes = request("pods", pod, dry_run=True)
    try:
        await chain.mutate(attributes)
        once = normalize(kind.type, copy.deepcopy(attributes.object or {})).tree
        await chain.mutate(attributes)
    except APIError:
        return
    assert normalize(kind.type, attributes.object or {}).tree == once
