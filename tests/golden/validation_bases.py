"""Valid, well filled objects to repeat the recorded experiments on.

The recording does not carry its objects; these are built to have the same members, ties and shared parts: what is one
dict here in several places is changed in all of them by an experiment, as it was there.
"""

from __future__ import annotations

import base64
import copy
from typing import Any

Tree = dict[str, Any]
NS = "defns"
OWNER = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "name": "o",
    "uid": "u1",
    "controller": True,
    "blockOwnerDeletion": True,
}


def meta(name: str, namespaced: bool = True, rich: bool = False, **more: Any) -> Tree:
    out: Tree = {"name": name}
    if namespaced:
        out["namespace"] = NS
    if rich:
        out |= {
            "labels": {"a": "b"},
            "annotations": {"c": "d"},
            "finalizers": ["ex.io/f"],
            "ownerReferences": [copy.deepcopy(OWNER)],
        }
    return out | more


def selector() -> Tree:
    return {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}


def node_term() -> Tree:
    return {
        "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}],
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}],
    }


def affinity() -> Tree:
    term, chosen = node_term(), selector()
    pods = {
        "labelSelector": chosen,
        "namespaceSelector": chosen,
        "namespaces": ["n1"],
        "topologyKey": "zone",
        "matchLabelKeys": ["mk"],
        "mismatchLabelKeys": ["mm"],
    }
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}],
        },
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [pods],
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": pods}],
        },
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [pods]},
    }


def claim_spec() -> Tree:
    return {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "sc",
        "volumeMode": "Filesystem",
    }


def volumes() -> list[Tree]:
    items = [{"key": "k", "path": "p", "mode": 420}]
    field = {"path": "f", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}, "mode": 256}
    resource = {"path": "r", "resourceFieldRef": {"containerName": "c", "resource": "limits.cpu", "divisor": "0"}}
    sources: list[tuple[str, Tree]] = [
        ("host", {"hostPath": {"path": "/x", "type": "Directory"}}),
        ("empty", {"emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}),
        ("dev", {"persistentVolumeClaim": {"claimName": "pvc"}}),
        ("gce", {"gcePersistentDisk": {"pdName": "d", "partition": 1}}),
        ("aws", {"awsElasticBlockStore": {"volumeID": "v", "partition": 1}}),
        ("git", {"gitRepo": {"repository": "r", "directory": "d"}}),
        ("secret", {"secret": {"secretName": "s", "items": copy.deepcopy(items), "defaultMode": 420}}),
        ("nfs", {"nfs": {"server": "s", "path": "/p"}}),
        (
            "iscsi",
            {
                "iscsi": {
                    "targetPortal": "1.2.3.4",
                    "iqn": "iqn.2001-04.com.example:x",
                    "lun": 0,
                    "chapAuthSession": True,
                    "secretRef": {"name": "s"},
                    "initiatorName": "iqn.2001-04.com.example:i",
                }
            },
        ),
        ("gluster", {"glusterfs": {"endpoints": "e", "path": "p"}}),
        ("rbd", {"rbd": {"monitors": ["m"], "image": "i"}}),
        ("flex", {"flexVolume": {"driver": "d"}}),
        ("cinder", {"cinder": {"volumeID": "v"}}),
        ("ceph", {"cephfs": {"monitors": ["m"], "path": "/p"}}),
        ("flocker", {"flocker": {"datasetName": "d"}}),
        ("down", {"downwardAPI": {"items": [field, resource], "defaultMode": 420}}),
        ("fc", {"fc": {"targetWWNs": ["w"], "lun": 1}}),
        ("azf", {"azureFile": {"secretName": "s", "shareName": "h"}}),
        ("config", {"configMap": {"name": "c", "items": copy.deepcopy(items), "defaultMode": 420}}),
        ("vsphere", {"vsphereVolume": {"volumePath": "v"}}),
        ("quobyte", {"quobyte": {"registry": "h:1", "volume": "v"}}),
        (
            "azd",
            {"azureDisk": {"diskName": "d", "kind": "Managed", "diskURI": "/subscriptions/x/y"}},
        ),
        ("photon", {"photonPersistentDisk": {"pdID": "p"}}),
        ("proj", {"projected": projected()}),
        ("portworx", {"portworxVolume": {"volumeID": "v"}}),
        ("scaleio", {"scaleIO": {"gateway": "g", "system": "s", "volumeName": "v", "secretRef": {"name": "s"}}}),
        ("storageos", {"storageos": {"volumeName": "v", "volumeNamespace": "n"}}),
        ("csi", {"csi": {"driver": "d.x", "nodePublishSecretRef": {"name": "s"}}}),
        ("eph", {"ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": claim_spec()}}}),
        ("image", {"image": {"reference": "r", "pullPolicy": "Always"}}),
    ]
    return [{"name": name, **source} for name, source in sources]


def projected() -> Tree:
    item = {"key": "k", "mode": 256}
    down = {"path": "pd", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}, "mode": 256}
    return {
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"audience": "a", "expirationSeconds": 3600, "path": "tok"}},
            {"secret": {"name": "s", "items": [{**item, "path": "p1"}]}},
            {"configMap": {"name": "c", "items": [{**item, "path": "p2"}]}},
            {"downwardAPI": {"items": [down]}},
        ],
    }


def security(local: bool) -> Tree:
    kind = {"type": "Localhost", "localhostProfile": "p"} if local else {"type": "RuntimeDefault"}
    return {
        "runAsUser": 1,
        "runAsGroup": 1,
        "runAsNonRoot": True,
        "seLinuxOptions": {"user": "u"},
        "seccompProfile": dict(kind),
        "appArmorProfile": dict(kind),
    }


def container() -> Tree:
    numbers = {
        "initialDelaySeconds": 1,
        "timeoutSeconds": 1,
        "periodSeconds": 1,
        "successThreshold": 1,
        "failureThreshold": 1,
    }
    get = {
        "host": "h",
        "path": "/",
        "port": 80,
        "scheme": "HTTP",
        "httpHeaders": [{"name": "X-A", "value": "v"}],
    }
    return {
        "name": "c",
        "image": "img:1",
        "command": ["c"],
        "args": ["a"],
        "workingDir": "/w",
        "ports": [
            {"name": "p1", "containerPort": 80, "protocol": "TCP"},
            {"name": "p2", "containerPort": 81, "protocol": "TCP"},
        ],
        "env": [
            {"name": "A", "value": "v"},
            {"name": "B", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
            {
                "name": "C",
                "valueFrom": {"resourceFieldRef": {"containerName": "c", "resource": "limits.cpu", "divisor": "0"}},
            },
            {"name": "D", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
            {"name": "E", "valueFrom": {"secretKeyRef": {"name": "c", "key": "k"}}},
        ],
        "envFrom": [{"prefix": "P", "configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}}],
        "resources": {
            "limits": {"cpu": "2", "memory": "2Gi"},
            "requests": {"cpu": "1", "memory": "1Gi"},
            "claims": [{"name": "rc"}],
        },
        "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
        "volumeMounts": [
            {
                "name": "host",
                "mountPath": "/m",
                "readOnly": True,
                "mountPropagation": "None",
                "recursiveReadOnly": "Disabled",
                "subPath": "s",
            },
            {"name": "empty", "mountPath": "/e", "subPathExpr": "x"},
        ],
        "volumeDevices": [{"name": "dev", "devicePath": "/dev/x"}],
        "livenessProbe": {"httpGet": get, **numbers, "terminationGracePeriodSeconds": 10},
        "readinessProbe": {"tcpSocket": {"host": "h", "port": 80}, **numbers},
        "startupProbe": {"exec": {"command": ["c"]}, **numbers},
        "lifecycle": {"postStart": {"exec": {"command": ["c"]}}, "preStop": {"sleep": {"seconds": 5}}},
        "terminationMessagePath": "/t",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "Always",
        "securityContext": {
            **security(True),
            "capabilities": {"add": ["A"], "drop": ["B"]},
            "privileged": False,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "procMount": "Default",
        },
        "stdin": True,
        "tty": True,
    }


def pod_spec() -> Tree:
    parts = affinity()
    chosen = parts["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]["labelSelector"]
    return {
        "volumes": volumes(),
        "containers": [
            container(),
            {
                "name": "c2",
                "image": "img:1",
                "ports": [{"containerPort": 81, "hostPort": 81, "hostIP": "1.2.3.4", "protocol": "TCP"}],
            },
        ],
        "initContainers": [
            {"name": "i", "image": "img:1"},
            {"name": "side", "image": "img:1", "restartPolicy": "Always"},
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 10,
        "activeDeadlineSeconds": 100,
        "dnsPolicy": "None",
        "dnsConfig": {
            "nameservers": ["1.2.3.4"],
            "searches": ["s.x"],
            "options": [{"name": "n", "value": "v"}],
        },
        "nodeSelector": {"a": "b"},
        "serviceAccountName": "default",
        "automountServiceAccountToken": False,
        "nodeName": "n1",
        "securityContext": {
            **security(False),
            "fsGroup": 1,
            "fsGroupChangePolicy": "Always",
            "supplementalGroups": [1],
            "supplementalGroupsPolicy": "Merge",
            "sysctls": [{"name": "kernel.x", "value": "1"}],
        },
        "imagePullSecrets": [{"name": "s"}],
        "hostname": "h",
        "subdomain": "sub",
        "affinity": parts,
        "schedulerName": "s",
        "tolerations": [
            {"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute", "tolerationSeconds": 10}
        ],
        "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["h.x"]}],
        "priorityClassName": "system-node-critical",
        "readinessGates": [{"conditionType": "c"}],
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": chosen,
                "minDomains": 1,
                "nodeAffinityPolicy": "Honor",
                "nodeTaintsPolicy": "Honor",
                "matchLabelKeys": ["mk"],
            }
        ],
        "setHostnameAsFQDN": False,
        "os": {"name": "linux"},
        "hostUsers": True,
        "resourceClaims": [
            {"name": "rc", "resourceClaimName": "r"},
            {"name": "rd", "resourceClaimTemplateName": "t"},
        ],
    }


def template(restart: str = "Always") -> Tree:
    """A smaller template, for the kinds that were tried with one."""
    first: Tree = {"name": "c", "image": "img:1"}
    metadata = {"labels": {"a": "b"}}
    return {"metadata": metadata, "spec": {"containers": [first], "restartPolicy": restart}}


def match_resources(kind: str, operations: list[str]) -> Tree:
    chosen = selector()
    rule = {
        "resourceNames": ["n"],
        "operations": operations,
        "apiGroups": ["g"],
        "apiVersions": ["v1"],
        "resources": ["r"],
        "scope": "Namespaced",
    }
    return {
        "namespaceSelector": chosen,
        "objectSelector": chosen,
        "matchPolicy": "Equivalent",
        "resourceRules": [rule],
        "excludeResourceRules": [copy.deepcopy(rule)],
    }


def webhook(name: str, client: Tree, mutating: bool) -> Tree:
    chosen = selector()
    hook = {
        "name": name,
        "clientConfig": client,
        "rules": [
            {
                "operations": ["CREATE"],
                "apiGroups": ["g"],
                "apiVersions": ["v1"],
                "resources": ["r"],
                "scope": "Namespaced",
            }
        ],
        "failurePolicy": "Fail",
        "matchPolicy": "Exact",
        "namespaceSelector": chosen,
        "objectSelector": chosen,
        "sideEffects": "None",
        "timeoutSeconds": 5,
        "admissionReviewVersions": ["v1"],
        "matchConditions": [{"name": "m", "expression": "true"}],
    }
    if mutating:
        hook["reinvocationPolicy"] = "Never"
    return hook


def policies() -> list[Tree]:
    group = "admissionregistration.k8s.io/v1"
    audited = {
        "failurePolicy": "Fail",
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": match_resources("", ["CREATE"]),
        "validations": [{"expression": "true", "message": "m", "reason": "Invalid", "messageExpression": "'m'"}],
        "auditAnnotations": [{"key": "k", "valueExpression": "'v'"}],
        "matchConditions": [{"name": "m", "expression": "true"}],
        "variables": [{"name": "v", "expression": "1"}],
    }
    mutating = {
        "failurePolicy": "Fail",
        "matchConstraints": match_resources("", ["CREATE"]),
        "variables": [{"name": "v", "expression": "1"}],
        "matchConditions": [{"name": "m", "expression": "true"}],
        "reinvocationPolicy": "Never",
        "mutations": [
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}},
            {"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}},
        ],
    }
    reference = {"parameterNotFoundAction": "Deny", "namespace": "n"}
    bound = match_resources("", ["CREATE"])
    service = {"name": "s", "namespace": "n", "path": "/p", "port": 443}
    return [
        {"apiVersion": group, "kind": "ValidatingAdmissionPolicy", "metadata": meta("b-vap", False), "spec": audited},
        {
            "apiVersion": group,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": meta("b-vapb", False),
            "spec": {
                "policyName": "p",
                "validationActions": ["Deny"],
                "paramRef": {"name": "n", **reference},
                "matchResources": match_resources("", ["CREATE"]),
            },
        },
        {"apiVersion": group, "kind": "MutatingAdmissionPolicy", "metadata": meta("b-map", False), "spec": mutating},
        {
            "apiVersion": group,
            "kind": "MutatingAdmissionPolicyBinding",
            "metadata": meta("b-mapb", False),
            "spec": {
                "policyName": "p",
                "paramRef": {"selector": bound["namespaceSelector"], **reference},
                "matchResources": bound,
            },
        },
        {
            "apiVersion": group,
            "kind": "ValidatingWebhookConfiguration",
            "metadata": meta("b-vwc", False),
            "webhooks": [webhook("a.b.c", {"service": service}, False)],
        },
        {
            "apiVersion": group,
            "kind": "MutatingWebhookConfiguration",
            "metadata": meta("b-mwc", False),
            "webhooks": [webhook("a.b.c", {"url": "https://h/p"}, True)],
        },
    ]


def workloads() -> list[Tree]:
    chosen = {"matchLabels": {"a": "b"}}
    retention = {"whenDeleted": "Retain", "whenScaled": "Retain"}
    mutable = template()
    stateful_template = template()
    claim = {"metadata": {"name": "data"}, "spec": claim_spec()}
    deployment_template = template()
    deployment_template["metadata"] = {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    expression = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": meta("b-dep", rich=True),
            "spec": {
                "replicas": 1,
                "selector": expression,
                "template": deployment_template,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}},
                "minReadySeconds": 1,
                "revisionHistoryLimit": 1,
                "paused": True,
                "progressDeadlineSeconds": 100,
            },
        },
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": meta("b-rs"),
            "spec": {"replicas": 1, "minReadySeconds": 1, "selector": chosen, "template": template()},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": meta("b-ds"),
            "spec": {
                "selector": chosen,
                "template": template(),
                "minReadySeconds": 1,
                "revisionHistoryLimit": 1,
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
            },
        },
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": meta("b-sts"),
            "spec": {
                "replicas": 1,
                "selector": chosen,
                "template": stateful_template,
                "volumeClaimTemplates": [claim],
                "serviceName": "s",
                "podManagementPolicy": "Parallel",
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}},
                "revisionHistoryLimit": 1,
                "minReadySeconds": 1,
                "persistentVolumeClaimRetentionPolicy": retention,
                "ordinals": {"start": 1},
            },
        },
        {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": meta("b-cr"),
            "data": {"a": 1},
            "revision": 1,
        },
        {
            "apiVersion": "v1",
            "kind": "ReplicationController",
            "metadata": meta("b-rc"),
            "spec": {"replicas": 1, "minReadySeconds": 1, "selector": {"a": "b"}, "template": template()},
        },
        {"apiVersion": "v1", "kind": "PodTemplate", "metadata": meta("b-pt"), "template": mutable},
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": meta("b-job"),
            "spec": {
                "parallelism": 1,
                "completions": 3,
                "activeDeadlineSeconds": 10,
                "backoffLimit": 1,
                "backoffLimitPerIndex": 1,
                "maxFailedIndexes": 1,
                "completionMode": "Indexed",
                "suspend": True,
                "managedBy": "ex.io/m",
                "ttlSecondsAfterFinished": 10,
                "podReplacementPolicy": "Failed",
                "podFailurePolicy": {
                    "rules": [
                        {
                            "action": "FailJob",
                            "onExitCodes": {"containerName": "c", "operator": "In", "values": [1]},
                        },
                        {"action": "Ignore", "onPodConditions": [{"type": "T", "status": "True"}]},
                    ]
                },
                "successPolicy": {"rules": [{"succeededIndexes": "0-1", "succeededCount": 1}]},
                "template": template("Never"),
            },
        },
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": meta("b-cj"),
            "spec": {
                "schedule": "* * * * *",
                "timeZone": "UTC",
                "startingDeadlineSeconds": 10,
                "concurrencyPolicy": "Allow",
                "suspend": True,
                "successfulJobsHistoryLimit": 1,
                "failedJobsHistoryLimit": 1,
                "jobTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {"template": template("Never")}},
            },
        },
    ]


def core() -> list[Tree]:
    v1 = {"apiVersion": "v1"}
    return [
        {
            **v1,
            "kind": "Pod",
            "metadata": meta("b-pod", rich=True) | {"labels": {"a": "b", "mk": "x", "mm": "y"}},
            "spec": pod_spec(),
        },
        {
            **v1,
            "kind": "Service",
            "metadata": meta("b-svc", rich=True),
            "spec": {
                "type": "LoadBalancer",
                "ports": [
                    {"name": "p1", "port": 80, "targetPort": 8080, "protocol": "TCP", "appProtocol": "ex.io/p"},
                    {"name": "p2", "port": 81, "protocol": "TCP"},
                ],
                "selector": {"a": "b"},
                "externalIPs": ["1.2.3.4"],
                "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10}},
                "loadBalancerSourceRanges": ["10.0.0.0/8"],
                "loadBalancerClass": "ex.io/c",
                "externalTrafficPolicy": "Local",
                "internalTrafficPolicy": "Cluster",
                "publishNotReadyAddresses": True,
                "ipFamilies": ["IPv4"],
                "ipFamilyPolicy": "SingleStack",
                "allocateLoadBalancerNodePorts": True,
                "trafficDistribution": "PreferClose",
            },
        },
        {
            **v1,
            "kind": "Service",
            "metadata": meta("b-svc2"),
            "spec": {"type": "ExternalName", "externalName": "e.x"},
        },
        {
            **v1,
            "kind": "ConfigMap",
            "metadata": meta("b-cm", rich=True),
            "data": {"k": "v"},
            "binaryData": {"b": "YQ=="},
            "immutable": True,
        },
        {**v1, "kind": "Secret", "metadata": meta("b-sec"), "data": {"k": "YQ=="}, "type": "Opaque", "immutable": True},
        {
            **v1,
            "kind": "Secret",
            "metadata": meta("b-sec2"),
            "data": {".dockerconfigjson": base64.b64encode(b"{}").decode()},
            "type": "kubernetes.io/dockerconfigjson",
        },
        {
            **v1,
            "kind": "Secret",
            "metadata": meta("b-sec3"),
            "data": {"tls.crt": "YQ==", "tls.key": "YQ=="},
            "type": "kubernetes.io/tls",
        },
        {
            **v1,
            "kind": "ServiceAccount",
            "metadata": meta("b-sa"),
            "secrets": [{"kind": "Secret", "name": "s", "namespace": "n"}],
            "imagePullSecrets": [{"name": "s"}],
        },
        {
            **v1,
            "kind": "Endpoints",
            "metadata": meta("b-ep"),
            "subsets": [
                {
                    "addresses": [{"ip": "1.2.3.4", "hostname": "h", "nodeName": "n"}],
                    "notReadyAddresses": [{"ip": "1.2.3.5"}],
                    "ports": [{"name": "p", "port": 80, "protocol": "TCP", "appProtocol": "ex.io/p"}],
                }
            ],
        },
        {
            **v1,
            "kind": "Event",
            "metadata": meta("b-ev"),
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": NS},
            "reason": "r",
            "message": "m",
            "type": "Normal",
            "eventTime": "2024-01-01T00:00:00.000000Z",
            "series": {"count": 2, "lastObservedTime": "2024-01-01T00:00:00.000000Z"},
            "action": "a",
            "reportingComponent": "c",
            "reportingInstance": "i",
        },
        {
            **v1,
            "kind": "LimitRange",
            "metadata": meta("b-lr"),
            "spec": {
                "limits": [
                    {
                        "type": "Container",
                        "max": {"cpu": "4", "memory": "4Gi"},
                        "min": {"cpu": "1"},
                        "default": {"cpu": "2"},
                        "defaultRequest": {"cpu": "2"},
                        "maxLimitRequestRatio": {"cpu": "2"},
                    }
                ]
            },
        },
        {**v1, "kind": "Namespace", "metadata": meta("b-ns", False, rich=True), "spec": {"finalizers": ["ex.io/f"]}},
        {
            **v1,
            "kind": "Node",
            "metadata": meta("b-node", False, rich=True),
            "spec": {
                "podCIDR": "10.1.0.0/24",
                "podCIDRs": ["10.1.0.0/24"],
                "providerID": "p",
                "unschedulable": True,
                "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
            },
        },
        {
            **v1,
            "kind": "ResourceQuota",
            "metadata": meta("b-rq"),
            "spec": {
                "hard": {"pods": "1"},
                "scopes": ["NotTerminating"],
                "scopeSelector": {
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["a"]}]
                },
            },
        },
        {
            **v1,
            "kind": "PersistentVolumeClaim",
            "metadata": meta("b-pvc"),
            "spec": claim_spec()
            | {
                "selector": selector(),
                "resources": {"requests": {"storage": "1Gi"}, "limits": {"storage": "2Gi"}},
                "volumeName": "v",
                "volumeAttributesClassName": "vac",
                "dataSource": {"kind": "PersistentVolumeClaim", "name": "src"},
            },
        },
        *volumes_kind(),
    ]


def volumes_kind() -> list[Tree]:
    reference = {"name": "s", "namespace": "n"}
    shared = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "sc",
        "mountOptions": ["o"],
        "volumeMode": "Filesystem",
        "claimRef": {"kind": "PersistentVolumeClaim", "name": "c", "namespace": "n"},
    }
    csi = {
        "driver": "d.x",
        "volumeHandle": "h",
        "fsType": "ext4",
        "controllerPublishSecretRef": dict(reference),
        "nodeStageSecretRef": dict(reference),
        "nodePublishSecretRef": dict(reference),
        "controllerExpandSecretRef": dict(reference),
        "nodeExpandSecretRef": dict(reference),
    }
    where = {"required": {"nodeSelectorTerms": [node_term()]}}
    plain = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
    sources: list[Tree] = [
        {**shared, "csi": csi, "volumeAttributesClassName": "vac", "nodeAffinity": copy.deepcopy(where)},
        {**copy.deepcopy(plain), "local": {"path": "/l"}, "nodeAffinity": copy.deepcopy(where)},
        {**copy.deepcopy(plain), "nfs": {"server": "s", "path": "/p"}},
        {**copy.deepcopy(plain), "hostPath": {"path": "/x", "type": "Directory"}},
    ]
    return [
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta(f"b-pv{index}", False), "spec": spec}
        for index, spec in enumerate(sources, 1)
    ]


def autoscaling() -> Tree:
    chosen = selector()
    metric: Tree = {"name": "m", "selector": chosen}
    target = {"type": "Utilization", "averageUtilization": 1}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": meta("b-hpa"),
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            "minReplicas": 2,
            "maxReplicas": 3,
            "metrics": [
                {"type": "Resource", "resource": {"name": "cpu", "target": dict(target)}},
                {
                    "type": "Pods",
                    "pods": {"metric": dict(metric), "target": {"type": "AverageValue", "averageValue": "1"}},
                },
                {
                    "type": "Object",
                    "object": {
                        "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "s"},
                        "metric": dict(metric),
                        "target": {"type": "Value", "value": "1"},
                    },
                },
                {"type": "External", "external": {"metric": dict(metric), "target": {"type": "Value", "value": "1"}}},
                {
                    "type": "ContainerResource",
                    "containerResource": {"name": "cpu", "container": "c", "target": dict(target)},
                },
            ],
            "behavior": {
                "scaleUp": {
                    "stabilizationWindowSeconds": 1,
                    "selectPolicy": "Max",
                    "tolerance": "100m",
                    "policies": [{"type": "Pods", "value": 1, "periodSeconds": 1}],
                }
            },
        },
    }


def networking() -> list[Tree]:
    group = "networking.k8s.io/v1"
    chosen = selector()
    peers = [
        {"podSelector": chosen, "namespaceSelector": chosen},
        {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}},
        {"podSelector": chosen},
    ]
    ports = [{"protocol": "TCP", "port": 80, "endPort": 90}, {"protocol": "TCP", "port": "name"}]
    return [
        {
            "apiVersion": group,
            "kind": "Ingress",
            "metadata": meta("b-ing"),
            "spec": {
                "ingressClassName": "c",
                "defaultBackend": {"service": {"name": "s", "port": {"number": 80}}},
                "tls": [{"hosts": ["h.x"], "secretName": "s"}],
                "rules": [
                    {
                        "host": "h.x",
                        "http": {
                            "paths": [
                                {
                                    "path": "/p",
                                    "pathType": "Prefix",
                                    "backend": {"service": {"name": "s", "port": {"name": "n"}}},
                                },
                                {
                                    "path": "/q",
                                    "pathType": "Prefix",
                                    "backend": {"resource": {"apiGroup": "g.x", "kind": "K", "name": "n"}},
                                },
                            ]
                        },
                    }
                ],
            },
        },
        {
            "apiVersion": group,
            "kind": "IngressClass",
            "metadata": meta("b-ic", False),
            "spec": {
                "controller": "ex.io/c",
                "parameters": {
                    "apiGroup": "g.x",
                    "kind": "K",
                    "name": "n",
                    "scope": "Namespace",
                    "namespace": "n",
                },
            },
        },
        {
            "apiVersion": group,
            "kind": "NetworkPolicy",
            "metadata": meta("b-np"),
            "spec": {
                "podSelector": chosen,
                "ingress": [{"from": peers, "ports": ports}],
                "egress": [{"to": [peers[2]], "ports": copy.deepcopy(ports)}],
                "policyTypes": ["Ingress", "Egress"],
            },
        },
        {
            "apiVersion": group,
            "kind": "ServiceCIDR",
            "metadata": meta("b-sc", False),
            "spec": {"cidrs": ["10.8.0.0/24"]},
        },
        {
            "apiVersion": group,
            "kind": "IPAddress",
            "metadata": meta("10.8.0.9", False),
            "spec": {"parentRef": {"group": "", "resource": "r", "name": "n", "namespace": "n"}},
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": meta("b-eps"),
            "addressType": "IPv4",
            "endpoints": [
                {
                    "addresses": ["1.2.3.4"],
                    "conditions": {"ready": True},
                    "hostname": "h",
                    "nodeName": "n",
                    "zone": "z",
                    "hints": {"forZones": [{"name": "z"}]},
                }
            ],
            "ports": [{"name": "p", "port": 80, "protocol": "TCP", "appProtocol": "ex.io/p"}],
        },
    ]


def storage() -> list[Tree]:
    group = "storage.k8s.io/v1"
    return [
        {
            "apiVersion": group,
            "kind": "StorageClass",
            "metadata": meta("b-stc", False),
            "provisioner": "p.x",
            "parameters": {"k": "v"},
            "reclaimPolicy": "Delete",
            "mountOptions": ["o"],
            "allowVolumeExpansion": True,
            "volumeBindingMode": "Immediate",
            "allowedTopologies": [{"matchLabelExpressions": [{"key": "k", "values": ["v"]}]}],
        },
        {
            "apiVersion": group,
            "kind": "CSIDriver",
            "metadata": meta("b-csid", False),
            "spec": {
                "attachRequired": True,
                "podInfoOnMount": True,
                "storageCapacity": True,
                "fsGroupPolicy": "File",
                "requiresRepublish": True,
                "seLinuxMount": True,
                "volumeLifecycleModes": ["Persistent"],
                "tokenRequests": [{"audience": "a", "expirationSeconds": 3600}],
                "nodeAllocatableUpdatePeriodSeconds": 10,
            },
        },
        {
            "apiVersion": group,
            "kind": "CSINode",
            "metadata": meta("b-csin", False),
            "spec": {"drivers": [{"name": "d.x", "nodeID": "n", "topologyKeys": ["k"], "allocatable": {"count": 1}}]},
        },
        {
            "apiVersion": group,
            "kind": "CSIStorageCapacity",
            "metadata": meta("b-csc"),
            "storageClassName": "sc",
            "nodeTopology": selector(),
            "capacity": "1Gi",
            "maximumVolumeSize": "1Gi",
        },
        {
            "apiVersion": group,
            "kind": "VolumeAttachment",
            "metadata": meta("b-va", False),
            "spec": {"attacher": "a.x", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
        },
        {
            "apiVersion": group,
            "kind": "VolumeAttributesClass",
            "metadata": meta("b-vac", False),
            "driverName": "d.x",
            "parameters": {"k": "v"},
        },
    ]


def roles() -> list[Tree]:
    group = "rbac.authorization.k8s.io"
    version = f"{group}/v1"
    rule = {"verbs": ["get"], "apiGroups": ["g"], "resources": ["r"], "resourceNames": ["n"]}
    subjects = [
        {"kind": "User", "name": "u", "apiGroup": group},
        {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
        {"kind": "Group", "name": "g", "apiGroup": group},
    ]
    return [
        {"apiVersion": version, "kind": "Role", "metadata": meta("b-role", rich=True), "rules": [dict(rule)]},
        {
            "apiVersion": version,
            "kind": "ClusterRole",
            "metadata": meta("b-crole", False, rich=True),
            "rules": [dict(rule), {"verbs": ["get"], "nonResourceURLs": ["/x"]}],
            "aggregationRule": {"clusterRoleSelectors": [selector()]},
        },
        {
            "apiVersion": version,
            "kind": "RoleBinding",
            "metadata": meta("b-rb"),
            "subjects": copy.deepcopy(subjects),
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "r"},
        },
        {
            "apiVersion": version,
            "kind": "ClusterRoleBinding",
            "metadata": meta("b-crb", False),
            "subjects": copy.deepcopy(subjects),
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "r"},
        },
    ]


def flow() -> list[Tree]:
    group = "flowcontrol.apiserver.k8s.io/v1"
    return [
        {
            "apiVersion": group,
            "kind": "FlowSchema",
            "metadata": meta("b-fs", False),
            "spec": {
                "priorityLevelConfiguration": {"name": "p"},
                "matchingPrecedence": 100,
                "distinguisherMethod": {"type": "ByUser"},
                "rules": [
                    {
                        "subjects": [
                            {"kind": "User", "user": {"name": "u"}},
                            {"kind": "Group", "group": {"name": "g"}},
                            {"kind": "ServiceAccount", "serviceAccount": {"name": "s", "namespace": "n"}},
                        ],
                        "resourceRules": [
                            {"verbs": ["get"], "apiGroups": ["g"], "resources": ["r"], "namespaces": ["n"]}
                        ],
                        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}],
                    }
                ],
            },
        },
        {
            "apiVersion": group,
            "kind": "PriorityLevelConfiguration",
            "metadata": meta("b-plc", False),
            "spec": {
                "type": "Limited",
                "limited": {
                    "nominalConcurrencyShares": 1,
                    "lendablePercent": 1,
                    "borrowingLimitPercent": 1,
                    "limitResponse": {
                        "type": "Queue",
                        "queuing": {"queues": 8, "handSize": 2, "queueLengthLimit": 1},
                    },
                },
            },
        },
    ]


def devices() -> list[Tree]:
    group = "resource.k8s.io/v1"
    cel = [{"cel": {"expression": "true"}}]
    config = {"opaque": {"driver": "d.x", "parameters": {"a": 1}}}
    return [
        {
            "apiVersion": group,
            "kind": "ResourceClaim",
            "metadata": meta("b-rcl"),
            "spec": {
                "devices": {
                    "requests": [
                        {
                            "name": "r",
                            "exactly": {
                                "deviceClassName": "c",
                                "selectors": copy.deepcopy(cel),
                                "allocationMode": "ExactCount",
                                "count": 1,
                            },
                        },
                        {"name": "f", "firstAvailable": [{"name": "s", "deviceClassName": "c"}]},
                    ],
                    "constraints": [{"requests": ["r"], "matchAttribute": "d.x/a"}],
                    "config": [{"requests": ["r"], **copy.deepcopy(config)}],
                }
            },
        },
        {
            "apiVersion": group,
            "kind": "DeviceClass",
            "metadata": meta("b-dc", False),
            "spec": {"selectors": copy.deepcopy(cel), "config": [copy.deepcopy(config)]},
        },
        {
            "apiVersion": group,
            "kind": "ResourceSlice",
            "metadata": meta("b-rsl", False),
            "spec": {
                "driver": "d.x",
                "nodeName": "n",
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "d", "attributes": {"a": {"string": "s"}}, "capacity": {"m": {"value": "1"}}}],
            },
        },
    ]


def others() -> list[Tree]:
    request = b"-----BEGIN CERTIFICATE REQUEST-----\nYQ==\n-----END CERTIFICATE REQUEST-----\n"
    return [
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": meta("v1.yy.io", False),
            "spec": {
                "group": "yy.io",
                "version": "v1",
                "groupPriorityMinimum": 100,
                "versionPriority": 10,
                "insecureSkipTLSVerify": True,
                "service": {"name": "s", "namespace": "n", "port": 443},
            },
        },
        autoscaling(),
        {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": meta("b-csr", False),
            "spec": {
                "request": base64.b64encode(request).decode(),
                "signerName": "ex.io/s",
                "expirationSeconds": 3600,
                "usages": ["client auth"],
            },
        },
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": meta("b-lease"),
            "spec": {
                "holderIdentity": "h",
                "leaseDurationSeconds": 1,
                "leaseTransitions": 1,
                "acquireTime": "2024-01-01T00:00:00.000000Z",
            },
        },
        {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": meta("b-rtc", False),
            "handler": "h",
            "overhead": {"podFixed": {"cpu": "1"}},
            "scheduling": {
                "nodeSelector": {"a": "b"},
                "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
            },
        },
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": meta("b-pdb"),
            "spec": {"minAvailable": 1, "selector": selector(), "unhealthyPodEvictionPolicy": "AlwaysAllow"},
        },
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": meta("b-pc", False),
            "value": 10,
            "globalDefault": False,
            "description": "d",
            "preemptionPolicy": "Never",
        },
    ]


def bases() -> list[Tree]:
    """All objects, each made afresh."""
    return [
        *core(),
        *workloads(),
        *policies(),
        *networking(),
        *storage(),
        *roles(),
        *flow(),
        *devices(),
        *others(),
    ]
