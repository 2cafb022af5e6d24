"""CustomResourceDefinitions: names, versions, conversion, subresources, columns.

What all versions have in common the reference keeps once, and names it so in errors (`spec.validation`,
`spec.subresources`, ...); what differs stands under its version.
"""

from __future__ import annotations

from base64 import b64decode
from typing import Any, Final
from urllib.parse import urlsplit

from fastapi_core.apis.validation import formats
from fastapi_core.apis.validation.admission import review_versions, webhook_service, webhook_url
from fastapi_core.apis.validation.definition_parts import common_parts, divide, version_parts
from fastapi_core.apis.validation.rules import IMMUTABLE, Report, Tree, choice
from fastapi_core.structural import goform
from fastapi_core.structural.structure import walk

_SCOPE = choice("scope", "Cluster", "Namespaced", empty=1)
_MIXED: Final = "may have mixed case, but should otherwise match: "
_APPROVAL: Final = "api-approved.kubernetes.io"
_POLICY: Final = "https://github.com/kubernetes/enhancements/pull/1111"
_LONGEST_WARNING: Final = 256
_NAME: Final = 'must be spec.names.plural+"."+spec.group'


def definition(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    names: Tree = spec.get("names") or {}
    metadata: Tree = tree.get("metadata") or {}
    group = spec.get("group") or ""
    wanted = f"{names.get('plural') or ''}.{group}"
    if report.old is None:
        for member in ("generateName", "name"):
            if metadata.get(member) and metadata[member] != wanted:
                report.invalid(f".metadata.{member}", metadata[member], _NAME)
    _group(group, report)
    _SCOPE(spec, ".spec", report)
    versions: list[Tree] = spec.get("versions") or []
    common, rest = divide(versions)
    _preserve_start(spec, versions, report)
    _versions(None if spec.get("versions") is None else rest, common, report)
    for member in ("plural", "singular", "kind", "listKind"):
        if not names.get(member):
            report.required(f".spec.names.{member}")
    _names(names, ".spec.names", report)
    common_parts(common, rest, ".spec", report)
    if spec.get("preserveUnknownFields") and (spec.get("conversion") or {}).get("strategy") != "None":
        text = "must be None if spec.preserveUnknownFields is true"
        report.invalid(".spec.conversion.strategy", (spec.get("conversion") or {}).get("strategy") or "", text)
    _conversion(spec.get("conversion") or {}, ".spec.conversion", report)
    if report.old is None:
        _finish(tree, versions, report)


def _finish(tree: Tree, versions: list[Tree], report: Report) -> None:
    """What the reference checks after the spec."""
    spec: Tree = tree.get("spec") or {}
    group = spec.get("group") or ""
    _stored((tree.get("status") or {}).get("storedVersions") or [], versions, report)
    if group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io")):
        _approved(_note(tree), report)
    if spec.get("preserveUnknownFields") and not ((report.old or {}).get("spec") or {}).get("preserveUnknownFields"):
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        report.invalid(".spec.preserveUnknownFields", True, text)


def _joined(path: str, value: str, problems: list[str], report: Report, start: str = "") -> None:
    """One error for all that is wrong with a name."""
    if problems:
        report.invalid(path, value, start + ",".join(problems))


def _note(tree: Tree) -> str:
    """What a definition says of its approval."""
    return ((tree.get("metadata") or {}).get("annotations") or {}).get(_APPROVAL) or ""


def _approval(note: str) -> str:
    if not note or note.startswith("unapproved"):
        return "unapproved" if note else "missing"
    try:
        parts = urlsplit(note)
    except ValueError:
        return "invalid"
    return "approved" if parts.scheme and parts.netloc else "invalid"


def _approved(note: str, report: Report) -> None:
    """A protected group needs somebody's approval; a definition may go on without."""
    state = _approval(note)
    if report.old is not None and _approval(_note(report.old)) == state:
        return
    at = f".metadata.annotations[{_APPROVAL}]"
    start, end = f'protected groups must have approval annotation "{_APPROVAL}"', f", see {_POLICY}"
    if state == "missing":
        report.required(at, start + end)
    elif state == "invalid":
        report.invalid(at, note, f'{start} with either a URL or a reason starting with "unapproved"{end}')


def definition_update(tree: Tree, path: str, report: Report) -> None:
    spec: Tree = tree.get("spec") or {}
    old: Tree = report.old or {}
    before: Tree = old.get("spec") or {}
    if spec == before and tree.get("status") != old.get("status"):
        # Written through the status: nothing else can have changed.
        _names((tree.get("status") or {}).get("acceptedNames") or {}, ".status.acceptedNames", report)
        return
    definition(tree, path, report)
    established = _established(old)
    members: list[tuple[str, ...]] = [("scope",), ("names", "kind")] if established else []
    for member in [*members, ("group",), ("names", "plural")]:
        new_value, old_value = _value(spec, member), _value(before, member)
        if new_value != old_value:
            report.invalid(".spec." + ".".join(member), new_value or "", IMMUTABLE)
    _finish(tree, spec.get("versions") or [], report)


def _established(tree: Tree) -> bool:
    return any(
        condition.get("type") == "Established" and condition.get("status") == "True"
        for condition in (tree.get("status") or {}).get("conditions") or ()
    )


def _value(tree: Any, steps: tuple[str, ...]) -> Any:
    for step in steps:
        tree = (tree or {}).get(step)
    return tree


def _group(group: str, report: Report) -> None:
    if not group:
        report.required(".spec.group")
        return
    problems = formats.subdomain(group)
    if not problems and "." not in group:
        problems = ["should be a domain with at least one dot"]
    _joined(".spec.group", group, problems, report)


def _schema(version: Tree) -> Tree | None:
    found: Tree | None = (version.get("schema") or {}).get("openAPIV3Schema")
    return found


def _preserve_start(spec: Tree, versions: list[Tree], report: Report) -> None:
    for index, version in enumerate(versions):
        if _schema(version) is None:
            report.required(f".spec.versions[{index}].schema.openAPIV3Schema")
    if spec.get("preserveUnknownFields") and any(_has_defaults(_schema(version) or {}) for version in versions):
        report.invalid(".spec.preserveUnknownFields", True, "must be false in order to use defaults in the schema")


def _has_defaults(schema: Tree) -> bool:
    return any(inner.get("default") is not None for inner in walk(schema))


def _versions(found: list[Tree] | None, common: Tree, report: Report) -> None:
    """The versions without what they have in common."""
    versions, shown = found or [], None if found is None else goform.versions(found)
    names = [version.get("name") or "" for version in versions]
    for index, version in enumerate(versions):
        at = f".spec.versions[{index}]"
        _joined(at + ".name", names[index], formats.label1035(names[index]), report)
        warning = version.get("deprecationWarning")
        if warning is not None:
            for text in _warning_texts(warning, deprecated=bool(version.get("deprecated"))):
                report.invalid(at + ".deprecationWarning", warning, text)
        version_parts(version, common, versions, at, report)
    if len(set(names)) < len(names):
        report.invalid(".spec.versions", shown, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        text = "must have exactly one version marked as storage version"
        report.invalid(".spec.versions", shown, text)
    if names and names[0]:
        _joined(".spec.version", names[0], formats.label1035(names[0]), report)


def _warning_texts(warning: str, *, deprecated: bool) -> list[str]:
    """What is wrong with the warning of a version."""
    if not deprecated:
        return ["can only be set for deprecated versions"]
    texts = []
    if len(warning.encode()) > _LONGEST_WARNING:
        texts.append(f"must be <= {_LONGEST_WARNING} characters long")
    if not warning:
        texts.append("must not be an empty string")
    for index, character in enumerate(warning):
        if not character.isprintable():
            place = len(warning[:index].encode())
            texts.append(
                f"must only contain printable UTF-8 characters; non-printable character found at index {place}"
            )
            break
    return texts


def _names(names: Tree, path: str, report: Report) -> None:
    for member in ("plural", "singular"):
        value = names.get(member)
        if value:
            _joined(f"{path}.{member}", value, formats.label1035(value), report)
    for member in ("kind", "listKind"):
        value = names.get(member)
        if value:
            _joined(f"{path}.{member}", value, formats.label1035(value.lower()), report, start=_MIXED)
    for member in ("shortNames", "categories"):
        for index, value in enumerate(names.get(member) or ()):
            _joined(f"{path}.{member}[{index}]", value, formats.label1035(value), report)
        if member == "shortNames" and names.get("kind") and names.get("kind") == names.get("listKind"):
            report.invalid(path + ".listKind", names["listKind"], "kind and listKind may not be the same")


def _conversion(conversion: Tree, path: str, report: Report) -> None:
    strategy, hook = conversion.get("strategy") or "", conversion.get("webhook") or {}
    client, versions = hook.get("clientConfig"), hook.get("conversionReviewVersions") or []
    if not strategy:
        if conversion:
            report.required(path + ".strategy")
    elif strategy not in ("None", "Webhook"):
        report.unsupported(path + ".strategy", strategy, ("None", "Webhook"))
    at = path + ".webhookClientConfig"
    if strategy == "Webhook":
        if client is None:
            report.required(at, "required when strategy is set to Webhook")
        else:
            _client(client, at, report)
        if not versions:
            report.required(path + ".conversionReviewVersions")
        else:
            review_versions(versions, path + ".conversionReviewVersions", report)
        return
    text = "should not be set when strategy is not set to Webhook"
    if client is not None:
        report.forbidden(at, text)
    if versions:
        report.forbidden(path + ".conversionReviewVersions", text)


def _client(client: Tree, path: str, report: Report) -> None:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        report.required(path, "exactly one of url or service is required")
    elif url is not None:
        webhook_url(url, path + ".url", report)
    else:
        webhook_service(service or {}, path + ".service", report)
    bundle = client.get("caBundle")
    if bundle and report.old is not None and _established(report.old) and not _sound(bundle):
        before = _value(report.old, ("spec", "conversion", "webhook", "clientConfig", "caBundle"))
        if not before or _sound(before):
            text = "unable to load root certificates: unable to parse bytes as PEM block"
            report.invalid(path + ".caBundle", bundle, text)


def _sound(bundle: str) -> bool:
    """Whether a bundle holds certificates."""
    import ssl

    try:
        ssl.create_default_context(cadata=b64decode(bundle, validate=True).decode("ascii"))
    except (ssl.SSLError, ValueError):
        return False
    return True


def _stored(stored: list[str], versions: list[Tree], report: Report) -> None:
    """Versions in which objects have been written stay; the one for writing is among them."""
    at = ".status.storedVersions"
    if not stored:
        report.invalid(at, None, "must have at least one stored version")
        return
    for version in versions:
        if version.get("storage") and (version.get("name") or "") not in stored:
            report.invalid(at, stored, f"must have the storage version {version.get('name') or ''}")
    names = [version.get("name") or "" for version in versions]
    for index, name in enumerate(stored):
        if name not in names:
            text = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions "
                f"until a storage migration ensures no data remains persisted in {name} and removes {name} from "
                "status.storedVersions"
            )
            report.invalid(f"{at}[{index}]", name, text)
