"""POST serviceaccounts/NAME/token: a signed token for a service account, bound to an object when asked."""

from __future__ import annotations

import time
from collections.abc import Awaitable

from fastapi_core import errors
from fastapi_core.admission.chain import Attributes
from fastapi_core.authn.issuer import Subject
from fastapi_core.errors import FieldError
from fastapi_core.http.exchange import Response
from fastapi_core.registry.definition import Tree
from fastapi_core.registry.lifecycle import new_uid, timestamp
from fastapi_core.request.context import Endpoint, RequestContext
from fastapi_core.rest import render
from fastapi_core.rest.backends import NODES, PODS, SECRETS, Backends
from fastapi_core.rest.body import Expected, read_object
from fastapi_core.rest.create import settle_namespace
from fastapi_core.rest.options import WriteOptions, write_options
from fastapi_core.rest.scope import Scope
from fastapi_core.schema import normalize
from fastapi_core.schema.tables import type_of
from fastapi_core.schema.types import Type

GROUP, KIND = "authentication.k8s.io", "TokenRequest"
ISSUED_NOTE = "authentication.kubernetes.io/issued-credential-id"
DEFAULT_SECONDS, SHORTEST, LONGEST = 3600, 600, 1 << 32


def _type() -> Type:
    return type_of(f"{GROUP}/v1.{KIND}")


def requester(scope: Scope, backends: Backends) -> Endpoint:
    """POST .../NAME/token."""

    def request(ctx: RequestContext) -> Awaitable[Response]:
        options = write_options(ctx.request.query, "CreateOptions")
        tree = read_object(ctx, Expected(KIND, GROUP, "v1", _type()), options.field_validation)
        metadata = tree["metadata"] = dict(tree.get("metadata") or {})
        settle_namespace(scope, ctx.info.namespace, metadata)
        name = ctx.info.name
        if metadata.get("name") and metadata["name"] != name:
            text = "must match the service account name if specified"
            problem = FieldError("Invalid value", "metadata.name", text, metadata["name"])
            raise errors.invalid(KIND, GROUP, name, [problem])
        return _issue(ctx, scope, backends, tree, options)

    return request


async def _issue(ctx: RequestContext, scope: Scope, backends: Backends, tree: Tree, options: WriteOptions) -> Response:
    issuer = backends.issuer
    account = scope.store.get(ctx.info.namespace, ctx.info.name).tree()["metadata"]
    attributes = Attributes(
        "CREATE",
        scope.definition,
        "token",
        ctx.info.namespace,
        ctx.info.name,
        tree,
        None,
        options.dry_run,
        ctx,
        options=options,
    )
    await scope.admission.mutate(attributes)
    tree = attributes.object or tree
    _complete(tree, account, issuer.audiences)
    spec = tree["spec"]
    _check(spec["expirationSeconds"])
    await scope.admission.validate(attributes)
    bound = _bound(backends, account, spec.get("boundObjectRef"))
    seconds = spec["expirationSeconds"]
    if issuer.longest and seconds > issuer.longest:
        ctx.warn(f"requested expiration of {seconds} seconds shortened to {issuer.longest} seconds")
        seconds = spec["expirationSeconds"] = issuer.longest
    subject = Subject(account["namespace"], account["name"], account["uid"], bound)
    now = time.time()
    new_id = new_uid()
    token = issuer.issue(subject, spec["audiences"], seconds, new_id=new_id, now=now)
    ctx.annotate(ISSUED_NOTE, f"JTI={new_id}")
    tree["metadata"]["creationTimestamp"] = timestamp(now)
    tree["status"] = {"token": token, "expirationTimestamp": timestamp(now + seconds)}
    return render.tree(ctx, normalize.normalize(_type(), tree).tree, status=201)


def _complete(tree: Tree, account: Tree, audiences: tuple[str, ...]) -> None:
    metadata = tree["metadata"]
    if metadata.get("uid") and metadata["uid"] != account["uid"]:
        text = (
            f"the UID in the token request ({metadata['uid']}) does not match the UID of the service account "
            f"({account['uid']})"
        )
        raise errors.conflict(KIND, GROUP, account["name"], text)
    metadata["name"], metadata["namespace"], metadata["uid"] = account["name"], account["namespace"], account["uid"]
    spec = tree["spec"] = dict(tree.get("spec") or {})
    if not spec.get("audiences"):
        spec["audiences"] = list(audiences)
    if spec.get("expirationSeconds") is None:
        spec["expirationSeconds"] = DEFAULT_SECONDS
    tree.pop("status", None)


def _check(seconds: int) -> None:
    text = ""
    if seconds < SHORTEST:
        text = "may not specify a duration less than 10 minutes"
    elif seconds > LONGEST:
        text = "may not specify a duration larger than 2^32 seconds"
    if text:
        raise errors.invalid(KIND, GROUP, "", [FieldError("Invalid value", "spec.expirationSeconds", text, seconds)])


def _bound(backends: Backends, account: Tree, reference: Tree | None) -> list[tuple[str, str, str]]:
    """What the token's life hangs on, as (claim, name, uid). Raises NotFound, BadRequest and Conflict."""
    if reference is None:
        return []
    kind, name = reference.get("kind") or "", reference.get("name") or ""
    group, _, version = (reference.get("apiVersion") or "").rpartition("/")
    prefix = {"Pod": PODS, "Secret": SECRETS, "Node": NODES}.get(kind)
    if group or prefix is None:
        raise errors.bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    if not name:
        raise errors.bad_request("Name parameter required.")
    found = backends.stores[prefix].get(account["namespace"], name).tree()
    uid = found["metadata"]["uid"]
    bound = [(kind.lower(), name, uid)]
    if kind == "Pod":
        spec = found.get("spec") or {}
        if spec.get("serviceAccountName") != account["name"]:
            quoted = errors.go_quote(account["name"])
            raise errors.bad_request(
                f"cannot bind token for serviceaccount {quoted} to pod running with different serviceaccount name."
            )
        if spec.get("nodeName"):
            bound.append(("node", spec["nodeName"], _node_uid(backends, spec["nodeName"])))
    if reference.get("uid") and reference["uid"] != uid:
        text = (
            f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
        raise errors.conflict(kind, group, name, text)
    return bound


def _node_uid(backends: Backends, name: str) -> str:
    """Empty for a node that does not exist (yet)."""
    nodes = backends.stores[NODES]
    node = nodes.cache.get(nodes.key("", name))
    return "" if node is None else str(node.tree()["metadata"]["uid"])
