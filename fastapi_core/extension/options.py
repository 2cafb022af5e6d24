"""The flags of an extension server: those of kube-apiserver that make sense here, and the delegated ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from fastapi_core.extension.delegated import options as delegated
from fastapi_core.options import audit, etcd, serving
from fastapi_core.options.flags import STRING, OptionsError, flag, flags_of, parse
from fastapi_core.options.groups import Generic, Logging
from fastapi_core.options.options import check_generic, described
from fastapi_core.records import dataclass


@dataclass(slots=True)
class Storage:
    """What is kept and where."""

    data_dir: str = flag(
        "data-dir",
        STRING,
        "",
        "Directory of objects (without --etcd-servers) and generated certificates; empty: all in memory.",
    )


GROUPS: dict[str, type] = {
    "serving": serving.Serving,
    "delegated": delegated.DelegatedOptions,
    "generic": Generic,
    "storage": Storage,
    "etcd": etcd.Etcd,
    "audit": audit.Audit,
    "logging": Logging,
}


@dataclass(slots=True)
class Options:
    """Every setting of an extension server; made by `Options.parse`, or filled by hand in tests."""

    serving: serving.Serving = field(default_factory=serving.Serving)
    delegated: delegated.DelegatedOptions = field(default_factory=delegated.DelegatedOptions)
    generic: Generic = field(default_factory=Generic)
    storage: Storage = field(default_factory=Storage)
    etcd: etcd.Etcd = field(default_factory=etcd.Etcd)
    audit: audit.Audit = field(default_factory=audit.Audit)
    logging: Logging = field(default_factory=Logging)

    @classmethod
    def parse(cls, arguments: Iterable[str]) -> Options:
        """Read and check a command line. Raises OptionsError with all errors."""
        table = flags_of(GROUPS)
        parsed = parse(arguments, table, {})
        options = cls()
        for name, value in parsed.values.items():
            setattr(getattr(options, table[name].group), table[name].attribute, value)
        wrong = [*parsed.errors, *options.validate()]
        if wrong:
            raise OptionsError(wrong)
        return options

    def validate(self) -> list[str]:
        """Everything that is wrong, each line with the flag and the fix."""
        return [
            *serving.check(self.serving),
            *delegated.check(self.delegated),
            *check_generic(self.generic),
            *etcd.check(self.etcd),
            *audit.check(self.audit),
        ]


def usage() -> str:
    """Help text, made from the flags."""
    return described(GROUPS)
