"""Forms of bodies: which are offered, which are refused, and that answers are what they say."""

from __future__ import annotations

import json

from fastapi_core.testing.conformance.client import unpacked
from fastapi_core.testing.conformance.subject import Subject, error, name_of, success
from fastapi_core.testing.conformance.verdicts import SHOULD, check, demand

PROTOBUF = "application/vnd.kubernetes.protobuf"
YAML = "application/yaml"


@check("form.json", needs="list")
def form_json(t: Subject) -> None:
    """Whoever asks for anything, or for nothing, gets JSON, labelled so."""
    for accept in ("*/*", "application/*, */*;q=0.1", ""):
        answer = t.listing({"limit": 1}, {"Accept": accept})
        success(answer, f"JSON for Accept {accept!r}")
        demand(answer.media == "application/json", "Content-Type application/json", answer)
        answer.tree()


@check("form.not-acceptable", needs="list")
def form_not_acceptable(t: Subject) -> None:
    """A form that is not offered is a 406; sending another one breaks whoever decodes it."""
    error(t.listing(headers={"Accept": "application/x-conformance"}), 406, "NotAcceptable")


@check("form.fallback", needs="list")
def form_fallback(t: Subject) -> None:
    """Of several forms the first that is offered is taken; clients ask for protobuf, else JSON."""
    answer = success(
        t.listing({"limit": 1}, {"Accept": f"application/x-conformance, {PROTOBUF}, application/json"}), "one of them"
    )
    if answer.media == PROTOBUF:
        demand(answer.body.startswith(b"k8s\0"), "a protobuf envelope", answer)
    else:
        demand(answer.media == "application/json", "JSON", answer)
        answer.tree()


@check("form.protobuf", needs="list")
def form_protobuf(t: Subject) -> None:
    """Protobuf is an envelope that begins with k8s and a zero byte, or a 406; nothing else under its name."""
    answer = t.listing({"limit": 1}, {"Accept": PROTOBUF})
    demand(answer.status in (200, 406), "200, or 406 where it is not offered", answer)
    # The Status of a 406 may itself come as protobuf: that form is known, only not for this kind.
    if answer.status == 200 or answer.media == PROTOBUF:
        demand(answer.media == PROTOBUF and answer.body.startswith(b"k8s\0"), "a protobuf envelope", answer)
    else:
        error(answer, 406, "NotAcceptable")


@check("form.yaml", SHOULD, needs="list")
def form_yaml(t: Subject) -> None:
    """YAML is offered and says the same as JSON; `curl` and people ask for it."""
    import yaml

    answer = success(t.listing({"limit": 1}, {"Accept": YAML}), "the list as YAML")
    demand(answer.media == YAML, f"Content-Type {YAML}", answer)
    try:
        tree = yaml.safe_load(answer.body)
    except yaml.YAMLError:
        tree = None
    demand(isinstance(tree, dict) and tree.get("kind") == f"{t.resource.kind}List", "the list, in YAML", answer)


@check("form.body-yaml", SHOULD, needs="create delete")
def form_body_yaml(t: Subject) -> None:
    """Objects may be sent as YAML."""
    import yaml

    body = t.new()
    answer = t.post(yaml.safe_dump(body).encode(), headers={"Content-Type": YAML})
    demand(answer.status == 201, "201: the object is created", answer)
    demand(name_of(answer.tree()) == name_of(body), "the object that was sent", answer)


@check("form.unsupported", needs="create delete")
def form_unsupported(t: Subject) -> None:
    """A body of an unknown form is a 415; guessing what it is would store nonsense."""
    body = json.dumps(t.new()).encode()
    error(t.post(body, headers={"Content-Type": "application/x-conformance"}), 415, "UnsupportedMediaType")


@check("form.watch", needs="list watch")
def form_watch(t: Subject) -> None:
    """A watch is JSON too, one event a line, or a 406 for what it cannot be streamed in."""
    with t.watch({"timeoutSeconds": 1}, {"Accept": "application/json;stream=watch"}) as watch:
        demand("json" in watch.answer.media, "Content-Type application/json", watch)
    other = t.client.watch(t.path(), {"timeoutSeconds": 1}, {"Accept": "application/x-conformance"})
    other.close()
    error(other.answer, 406, "NotAcceptable")


@check("form.large", needs="list create delete")
def form_large(t: Subject) -> None:
    """A large list comes whole, packed or not; half of one that looks like all of it would be worse than none."""
    filler = "x" * 60_000
    made = [name_of(t.create(t.new(annotations={"fastapi-core.conformance/filler": filler}))) for _ in range(4)]
    answer = success(t.listing(headers={"Accept-Encoding": "gzip"}), "the list")
    packed = answer.header("Content-Encoding") == "gzip"
    try:
        tree = json.loads(unpacked(answer.body) if packed else answer.body)
    except (ValueError, RecursionError):
        tree = {}
    found = [item["metadata"]["name"] for item in tree.get("items") or ()]
    demand(set(made) <= set(found), "all objects, whole", answer)
    if packed:
        demand("accept-encoding" in answer.header("Vary").lower(), "Vary: Accept-Encoding with a packed answer", answer)


@check("form.text", needs="create delete get")
def form_text(t: Subject) -> None:
    """Text comes back as it was sent: any script, quotes, control characters; users keep documents in annotations."""
    text = 'quote " back \\ slash / tab \t line \n é 中文 🎉 <b>&amp;</b> \u2028 \x7f'
    made = t.create(t.new(annotations={"fastapi-core.conformance/text": text}))
    answer = success(t.get(name_of(made)), "the object")
    found = (answer.tree()["metadata"].get("annotations") or {}).get("fastapi-core.conformance/text")
    demand(found == text, "the text that was sent", answer)
