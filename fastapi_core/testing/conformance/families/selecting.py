"""Label and field selectors of lists."""

from __future__ import annotations

from fastapi_core.testing.conformance.subject import LABEL, Subject, error, items, name_of, names, success
from fastapi_core.testing.conformance.verdicts import SHOULD, Skipped, check, demand

_KEY = "fastapi-core.conformance/color"


def _three(t: Subject) -> dict[str, str]:
    """Objects labelled red, blue and not at all: label -> name."""
    return {
        "red": name_of(t.create(t.new(labels={_KEY: "red"}))),
        "blue": name_of(t.create(t.new(labels={_KEY: "blue"}))),
        "": name_of(t.create()),
    }


@check("select.labels", needs="list create delete")
def select_labels(t: Subject) -> None:
    """Label selectors choose by equality, sets and presence; controllers own what these find, and nothing else."""
    made = _three(t)
    wanted = {
        f"{_KEY}=red": {"red"},
        f"{_KEY}==blue": {"blue"},
        f"{_KEY}!=red": {"blue", ""},
        f"{_KEY} in (red,blue)": {"red", "blue"},
        f"{_KEY} notin (red)": {"blue", ""},
        _KEY: {"red", "blue"},
        f"!{_KEY}": {""},
        f"{_KEY},{_KEY}!=red": {"blue"},
    }
    for selector, colors in wanted.items():
        answer = t.listing({"labelSelector": f"{selector},{LABEL}={t.around.run}"})
        found = set(names(items(answer))) & set(made.values())
        demand(found == {made[color] for color in colors}, f"those that {selector!r} selects", answer)


@check("select.labels-only", needs="list create delete")
def select_labels_only(t: Subject) -> None:
    """A selector that nothing fulfils finds nothing; a selector that is ignored would find everything."""
    t.create()
    answer = t.listing({"labelSelector": f"{_KEY}=nobody-has-this"})
    demand(items(answer) == [], "no items", answer)


@check("select.labels-invalid", needs="list")
def select_labels_invalid(t: Subject) -> None:
    """A selector that cannot be read is a 400; answering everything instead has deleted the wrong things before."""
    for selector in ("a in", "=x", "a=b=c", "a in (x"):
        error(t.listing({"labelSelector": selector}), 400, "BadRequest")


@check("select.name", needs="list create delete")
def select_name(t: Subject) -> None:
    """The field selector metadata.name finds that one object; clients watch single objects by it."""
    made, other = t.create(), t.create()
    answer = t.listing({"fieldSelector": f"metadata.name={name_of(made)}"})
    demand(names(items(answer)) == [name_of(made)], "that object alone", answer)
    answer = t.listing({"fieldSelector": f"metadata.name!={name_of(made)}"})
    found = names(items(answer))
    demand(name_of(made) not in found and name_of(other) in found, "all others with !=", answer)


@check("select.namespace", needs="list create delete namespaced")
def select_namespace(t: Subject) -> None:
    """The field selector metadata.namespace chooses among all namespaces."""
    made = t.create()
    answer = t.listing({"fieldSelector": f"metadata.namespace={t.around.namespace}"}, namespace="")
    demand(name_of(made) in names(items(answer)), "the object in that namespace", answer)
    answer = t.listing({"fieldSelector": "metadata.namespace=conformance-nowhere"}, namespace="")
    demand(items(answer) == [], "no items in a namespace that has none", answer)


@check("select.fields-unknown", needs="list")
def select_fields_unknown(t: Subject) -> None:
    """A field that cannot be selected by is a 400; ignoring it would answer everything."""
    error(t.listing({"fieldSelector": "spec.conformanceUnknown=x"}), 400, "BadRequest")
    error(t.listing({"fieldSelector": "metadata.name"}), 400, "BadRequest")


@check("select.both", SHOULD, needs="list create delete")
def select_both(t: Subject) -> None:
    """Label and field selectors together select what fulfils both."""
    made = _three(t)
    query = {"labelSelector": f"{_KEY}=red", "fieldSelector": f"metadata.name={made['blue']}"}
    answer = t.listing(query)
    demand(items(answer) == [], "nothing is both", answer)
    answer = t.listing({**query, "fieldSelector": f"metadata.name={made['red']}"})
    demand(names(items(answer)) == [made["red"]], "the one that is both", answer)


@check("select.read-only", needs="list")
def select_read_only(t: Subject) -> None:
    """Lists of objects that others made are selected by label as well: what comes back has the label, all of it."""
    found, _ = t.listed(namespace="")
    labels = [(key, value) for item in found for key, value in (item["metadata"].get("labels") or {}).items()]
    if not labels:
        raise Skipped("no object has labels")
    key, value = labels[0]
    answer = success(t.listing({"labelSelector": f"{key}={value}"}, namespace=""), "the list")
    selected = items(answer)
    wanted = [item for item in found if (item["metadata"].get("labels") or {}).get(key) == value]
    demand(
        all((item["metadata"].get("labels") or {}).get(key) == value for item in selected)
        and {name_of(item) for item in wanted} <= set(names(selected)),
        f"exactly those labelled {key}={value}",
        answer,
    )
