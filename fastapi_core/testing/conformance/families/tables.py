"""The other forms of objects: Table, which kubectl prints, and PartialObjectMetadata, which caches of metadata read."""

from __future__ import annotations

import contextlib

from fastapi_core.testing.conformance.client import Answer, Tree
from fastapi_core.testing.conformance.subject import Subject, items, metadata, name_of, names, success, version
from fastapi_core.testing.conformance.verdicts import SHOULD, Skipped, check, demand

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
KUBECTL = f"{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


def rows(answer: Answer) -> list[Tree]:
    """The rows of a well-formed Table."""
    tree = success(answer, "a Table").tree()
    demand(
        tree.get("kind") == "Table" and tree.get("apiVersion") == "meta.k8s.io/v1", "a Table of meta.k8s.io/v1", answer
    )
    columns, found = tree.get("columnDefinitions"), tree.get("rows")
    demand(isinstance(columns, list) and columns, "columnDefinitions", answer)
    demand(
        all(column.get("name") and column.get("type") for column in columns or ()), "columns with name and type", answer
    )
    demand(isinstance(found, list), "rows is a list", answer)
    for row in found or ():
        # More of them do no harm: clients print those that have a column.
        demand(len(row.get("cells") or ()) >= len(columns or ()), "a cell in each row for every column", answer)
    return list(found or ())


@check("table.kubectl", needs="list")
def table_kubectl(t: Subject) -> None:
    """What `kubectl get` asks for is answered: a Table, or the list as JSON; anything else and get does not work."""
    with contextlib.suppress(Skipped):
        t.existing()
    answer = success(t.listing(headers={"Accept": KUBECTL}, namespace=""), "Table or list")
    if answer.tree().get("kind") == "Table":
        rows(answer)
    else:
        items(answer)


@check("table.list", SHOULD, needs="list")
def table_list(t: Subject) -> None:
    """A list as a Table has a row for each object, with its metadata; kubectl prints the cells and sorts by it."""
    obj = t.existing()
    namespace = str(metadata(obj).get("namespace", ""))
    answer = t.listing(headers={"Accept": TABLE}, namespace=namespace)
    found = rows(answer)
    objects = [row.get("object") or {} for row in found]
    demand(all(part.get("kind") == "PartialObjectMetadata" for part in objects), "metadata in each row", answer)
    demand(name_of(obj) in names(objects), f"a row for {name_of(obj)}", answer)
    if "watch" in t.resource.verbs:
        demand(version(answer.tree()), "metadata.resourceVersion, to watch from", answer)


@check("table.get", SHOULD, needs="get")
def table_get(t: Subject) -> None:
    """One object as a Table is one row; `kubectl get KIND NAME` asks for it."""
    obj = t.existing()
    answer = t.client.request("GET", t.where(obj), headers={"Accept": TABLE})
    found = rows(answer)
    demand(len(found) == 1 and name_of(found[0].get("object") or {}) == name_of(obj), "its row alone", answer)


@check("table.include", SHOULD, needs="list")
def table_include(t: Subject) -> None:
    """includeObject chooses what each row carries: nothing, or the whole object; `kubectl get -w -o wide` relies on it."""
    t.existing()
    whole = rows(t.listing({"includeObject": "Object"}, {"Accept": TABLE}, namespace=""))
    demand(
        whole and all((row.get("object") or {}).get("kind") == t.resource.kind for row in whole),
        "whole objects with includeObject=Object",
        t.listing({"includeObject": "Object"}, {"Accept": TABLE}, namespace=""),
    )
    answer = t.listing({"includeObject": "None"}, {"Accept": TABLE}, namespace="")
    demand(all(not row.get("object") for row in rows(answer)), "no objects with includeObject=None", answer)


@check("table.watch", SHOULD, needs="list watch create delete")
def table_watch(t: Subject) -> None:
    """Events of a watch as Table are Tables of one row; `kubectl get -w` prints them as they come."""
    start = t.version()
    with t.watch({"resourceVersion": start}, {"Accept": TABLE}) as watch:
        made = name_of(t.create())
        event = watch.next()
        demand(event.object.get("kind") == "Table", "a Table in the event", watch)
        found = event.object.get("rows") or []
        demand(len(found) == 1 and name_of(found[0].get("object") or {}) == made, "the row of the object", watch)
        demand(event.object.get("columnDefinitions"), "columnDefinitions in the first event", watch)


@check("partial.get", needs="get")
def partial_get(t: Subject) -> None:
    """An object as PartialObjectMetadata is its metadata and nothing else."""
    obj = t.existing()
    answer = t.client.request("GET", t.where(obj), headers={"Accept": PARTIAL})
    if answer.status == 406 and "watch" not in t.resource.verbs:
        raise Skipped("not offered, and nothing watches this resource")
    tree = success(answer, "its metadata").tree()
    _partial(tree, answer)
    demand(metadata(tree) == metadata(obj) or name_of(tree) == name_of(obj), "the metadata of the object", answer)


def _partial(tree: Tree, answer: Answer) -> None:
    demand(tree.get("kind") == "PartialObjectMetadata", "kind PartialObjectMetadata", answer)
    demand(tree.get("apiVersion") == "meta.k8s.io/v1", "apiVersion meta.k8s.io/v1", answer)
    demand(tree.keys() <= {"kind", "apiVersion", "metadata"}, "metadata and nothing else", answer)


@check("partial.list", needs="list watch")
def partial_list(t: Subject) -> None:
    """A list of metadata has it of every object; the garbage collector and namespace deletion read all kinds so."""
    with contextlib.suppress(Skipped):
        t.existing()
    plain = success(t.listing(namespace=""), "the list")
    answer = success(t.listing(headers={"Accept": PARTIAL_LIST}, namespace=""), "metadata of all")
    tree = answer.tree()
    demand(tree.get("kind") == "PartialObjectMetadataList", "kind PartialObjectMetadataList", answer)
    demand(version(tree), "metadata.resourceVersion, to watch from", answer)
    found = tree.get("items") or []
    demand(set(names(items(plain))) <= set(names(found)), "an item for each object", answer)
    for item in found:
        demand(item.keys() <= {"kind", "apiVersion", "metadata"}, "metadata and nothing else", answer)


@check("partial.watch", needs="list watch create delete")
def partial_watch(t: Subject) -> None:
    """Events of a watch on metadata carry metadata; caches of metadata live on them."""
    start = t.version()
    with t.watch({"resourceVersion": start}, {"Accept": PARTIAL}) as watch:
        made = name_of(t.create())
        event = watch.next()
        demand(event.type == "ADDED" and event.name == made, f"ADDED of {made}", watch)
        _partial(event.object, watch.answer)
