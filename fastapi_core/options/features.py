"""Flags of features: what of the API and of the debugging tools is served."""

from __future__ import annotations

import re

from fastapi_core.options import gates
from fastapi_core.options.flags import BOOL, MAP, STRING, STRINGS, flag
from fastapi_core.records import dataclass

#: The minor version before ours: the only one whose hidden metrics may be shown.
_PREVIOUS_MINOR = "1.35"


@dataclass(slots=True)
class Features:
    """What of the API and of the debugging tools is served."""

    feature_gates: tuple[tuple[str, str], ...] = flag(
        "feature-gates", MAP, (), "Feature gates as name=true or name=false, separated by commas."
    )
    runtime_config: tuple[tuple[str, str], ...] = flag(
        "runtime-config",
        MAP,
        (),
        "API versions and resources to serve or not: api/all, api/ga, api/beta, api/alpha, GROUP/VERSION or "
        "GROUP/VERSION/RESOURCE, each with =true or =false.",
    )
    allow_privileged: bool = flag("allow-privileged", BOOL, False, "Let pods ask for privileged containers.")
    profiling: bool = flag("profiling", BOOL, True, "Serve /debug/pprof and /debug/flags to those who may read them.")
    contention_profiling: bool = flag(
        "contention-profiling", BOOL, False, "Note what holds the event loop up, for /debug/pprof/block."
    )
    enable_logs_handler: bool = flag("enable-logs-handler", BOOL, False, "Serve the files of /var/log under /logs.")
    show_hidden_metrics_for_version: str = flag(
        "show-hidden-metrics-for-version", STRING, "", f"Show metrics hidden since {_PREVIOUS_MINOR}; there are none."
    )
    disabled_metrics: tuple[str, ...] = flag("disabled-metrics", STRINGS, (), "Metrics that are not exposed.")


def check(group: Features) -> list[str]:
    """Everything that is wrong, each line with the flag and the fix."""
    wrong = []
    try:
        gates.parse(group.feature_gates)
    except gates.GateError as error:
        wrong.append(f"--feature-gates: {error}")
    if group.runtime_config:
        from fastapi_core.options import enablement

        try:
            enablement.Enablement(group.runtime_config)
        except ValueError as error:
            wrong.append(f"--runtime-config: {error}")
    if group.show_hidden_metrics_for_version not in ("", _PREVIOUS_MINOR):
        wrong.append(
            f"--show-hidden-metrics-for-version must be omitted or have the value '{_PREVIOUS_MINOR}'. "
            "Only the previous minor version is allowed"
        )
    for name in group.disabled_metrics:
        if not re.fullmatch(r"[a-zA-Z_:][a-zA-Z0-9_:]*", name):
            wrong.append(f"--disabled-metrics: {name!r} is not the name of a metric")
    return wrong
