"""A kind as it is declared, and what the generic parts make of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypedDict, TypeVar

from fastapi_core.crd.definitions import Scale, Version
from fastapi_core.crd.form import CustomType, LazyForm
from fastapi_core.crd.scope import Family
from fastapi_core.crd.strategy import steps
from fastapi_core.extension import checks
from fastapi_core.extension.columns import Column
from fastapi_core.extension.description import GroupVersion
from fastapi_core.extension.models import Model, ModelError, model_of
from fastapi_core.meta import names
from fastapi_core.records import dataclass
from fastapi_core.registry.definition import ResourceDefinition, Subresource, Tree
from fastapi_core.structural.schema import Schema, compiled

T = TypeVar("T")


class KindOptions(TypedDict, total=False):
    """What may be said of a kind besides its model and plural."""

    kind: str
    """CamelCase name; default: that of the class or type table."""
    singular: str
    """Default: the kind in lower case."""
    group_version: str
    """Default: that of the Extension."""
    namespaced: bool
    """Default: True."""
    short_names: Sequence[str]
    categories: Sequence[str]
    columns: Sequence[Column]
    """Of `kubectl get`, behind NAME. Default: AGE."""
    selectable: Sequence[str]
    """Paths such as `.spec.engine` that field selectors may ask for."""
    status: bool
    """Whether status is a subresource: written through /status only, and not with the object. Default: False."""
    scale: Scale
    """Where replicas stand, for the subresource scale."""


class SchemaForm(LazyForm):
    """A schema that is given, where custom resources read theirs from a definition."""

    __slots__ = ("_given", "_made")

    def __init__(self, schema: Tree) -> None:
        self._given = schema
        self._made: Schema | None = None

    @property
    def schema(self) -> Schema:
        if self._made is None:
            self._made = compiled(self._given, preserve=False)
        return self._made

    def openapi(self) -> Tree:
        return self._given


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration(Generic[T]):
    """What the author says of a kind."""

    model: Model[T]
    group: str
    version: str
    plural: str
    singular: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    selectable: tuple[str, ...] = ()
    status: bool = False
    scale: Scale | None = None
    kept_version: str = ""
    """In which version objects are kept, where it is another one."""

    @property
    def kind(self) -> str:
        return self.model.kind

    @property
    def group_version(self) -> str:
        return f"{self.group}/{self.version}"

    @property
    def key_prefix(self) -> str:
        return f"/registry/{self.group}/{self.plural}/"

    def check(self) -> None:
        """ModelError for names that no client could use."""
        for what, text in (("plural", self.plural), ("singular", self.singular), ("version", self.version)):
            if names.dns1035_label(text):
                raise ModelError(f"{self.kind}: {text!r} cannot be a {what}, it is lower case letters and digits")
        if names.dns1123_subdomain(self.group):
            raise ModelError(f"{self.kind}: {self.group!r} cannot be a group, it is a host name")
        problem = checks.version_problem(self.version)
        if problem:
            raise ModelError(f"{self.kind}: {problem}")
        for name in self.short_names:
            if names.dns1035_label(name) or name == self.plural or self.short_names.count(name) > 1:
                raise ModelError(f"{self.kind}: {name!r} cannot be a short name")
        checks.check_schema(self.model)
        checks.check_columns(self.model, self.columns)
        checks.check_selectable(self.model, self.selectable)
        checks.check_scale(self.model, self.scale)
        if self.status and "status" not in self.model.schema["properties"]:
            raise ModelError(f"{self.kind}: there is no member 'status' that could be a subresource")

    def served_version(self) -> Version:
        """As custom resources know their versions."""
        return Version(self.version, True, True, "", self.status, self.scale, (), self.selectable)

    def definition(
        self, form: SchemaForm, verbs: Sequence[str], subresources: Mapping[str, Subresource], *, unconditional: bool
    ) -> ResourceDefinition:
        """As the store, the handlers and discovery know resources; without a strategy."""
        return ResourceDefinition(
            group=self.group,
            version=self.version,
            kind=self.kind,
            plural=self.plural,
            singular=self.singular,
            namespaced=self.namespaced,
            verbs=tuple(verbs),
            type=CustomType(f"{self.group_version}.{self.kind}", form),
            storage_group=self.group,
            storage_version=self.kept_version or self.version,
            key_prefix=self.key_prefix,
            short_names=self.short_names,
            categories=self.categories,
            subresources=subresources,
            selectable_fields={path.removeprefix("."): steps(path) for path in self.selectable},
            list_kind=f"{self.kind}List",
            unconditional_update=unconditional,
            # What cannot be changed cannot wait for finalizers either.
            default_propagation="background" if "update" in verbs else "unsupported",
            custom=True,
            form=form,
        )


def declare(model: Any, plural: str, options: KindOptions, own: GroupVersion) -> Declaration[Any]:
    """A checked declaration; ModelError for one that cannot be served, ValueError for a wrong group version."""
    unknown = [option for option in options if option not in KindOptions.__annotations__]
    if unknown:
        known_options = ", ".join(KindOptions.__annotations__)
        raise ModelError(f"{plural}: there is no option {unknown[0]!r}; the options are {known_options}")
    known = model_of(model, options.get("kind", ""))
    given = GroupVersion.parse(options["group_version"]) if options.get("group_version") else own
    declared: Declaration[Any] = Declaration(
        model=known,
        group=given.group,
        version=given.version,
        plural=plural,
        singular=options.get("singular") or known.kind.lower(),
        namespaced=options.get("namespaced", True),
        short_names=tuple(options.get("short_names", ())),
        categories=tuple(options.get("categories", ())),
        columns=tuple(options.get("columns", ())),
        selectable=tuple(options.get("selectable", ())),
        status=options.get("status", False),
        scale=options.get("scale"),
    )
    declared.check()
    return declared


def family(declarations: Sequence[Declaration[Any]], forms: Mapping[str, LazyForm]) -> Family:
    """What the versions of a kind know of each other."""
    scales = {
        declaration.group_version: tuple(f"f:{step}" for step in steps(declaration.scale.spec))
        for declaration in declarations
        if declaration.scale is not None
    }
    return Family(declarations[0].group, dict(forms), scales)


def subresources(declaration: Declaration[Any], verbs: Sequence[str]) -> dict[str, Subresource]:
    """status and scale, as far as the verbs of the kind carry them."""
    found = {}
    own = tuple(verb for verb in ("get", "patch", "update") if verb in verbs)
    if declaration.status and own:
        found["status"] = Subresource("status", own, declaration.kind)
    if declaration.scale is not None and own:
        found["scale"] = Subresource("scale", own, "Scale", "autoscaling", "v1")
    return found
