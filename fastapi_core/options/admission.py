"""Flags of admission: which gates objects pass."""

from __future__ import annotations

from fastapi_core.admission.catalog import OFF, ORDER, enabled
from fastapi_core.options.flags import INT, STRING, STRINGS, flag
from fastapi_core.records import dataclass


@dataclass(slots=True)
class Admission:
    """Which gates objects pass."""

    enable_admission_plugins: tuple[str, ...] = flag(
        "enable-admission-plugins", STRINGS, (), "Plugins to run beside those that run by default; the order is fixed."
    )
    disable_admission_plugins: tuple[str, ...] = flag(
        "disable-admission-plugins", STRINGS, (), "Plugins not to run though they run by default."
    )
    admission_control_config_file: str = flag(
        "admission-control-config-file",
        STRING,
        "",
        "File with the configuration of plugins, an AdmissionConfiguration.",
    )
    admission_control: tuple[str, ...] = flag(
        "admission-control", STRINGS, (), "Deprecated: the plugins to run and no others, in their fixed order."
    )
    default_not_ready_toleration_seconds: int = flag(
        "default-not-ready-toleration-seconds", INT, 300, "Seconds pods stay on a node that is not ready."
    )
    default_unreachable_toleration_seconds: int = flag(
        "default-unreachable-toleration-seconds", INT, 300, "Seconds pods stay on a node that is unreachable."
    )

    @property
    def plugins(self) -> tuple[str, ...]:
        """Names of the plugins that run, in order."""
        if self.admission_control:
            return tuple(name for name in ORDER if name in self.admission_control)
        return enabled(self.enable_admission_plugins, self.disable_admission_plugins)


def check(group: Admission) -> list[str]:
    """Everything that is wrong, each line with the flag and the fix."""
    wrong: list[str] = []
    for name, names in (
        ("admission-control", group.admission_control),
        ("enable-admission-plugins", group.enable_admission_plugins),
        ("disable-admission-plugins", group.disable_admission_plugins),
    ):
        for unknown in (plugin for plugin in names if plugin not in ORDER):
            from difflib import get_close_matches

            near = get_close_matches(unknown, ORDER, n=1, cutoff=0.6)
            fix = f"did you mean {near[0]}?" if near else f"known are {', '.join(ORDER)}"
            wrong.append(f'--{name}: plugin "{unknown}" is unknown, {fix}')
    both = sorted(set(group.enable_admission_plugins) & set(group.disable_admission_plugins))
    if both:
        wrong.append(f"--enable-admission-plugins: {', '.join(both)} in --disable-admission-plugins too, leave one out")
    if group.admission_control and (group.enable_admission_plugins or group.disable_admission_plugins):
        wrong.append("--admission-control: cannot go with --enable-admission-plugins and --disable-admission-plugins")
    return wrong or _check_configuration(group)


def _check_configuration(group: Admission) -> list[str]:
    """The configuration file, and what plugins need to be told there."""
    path, plugins = group.admission_control_config_file, group.plugins
    if not path and not set(plugins) & OFF:
        return []
    from fastapi_core.admission import configuration, settings

    try:
        sources = configuration.read(path) if path else {}
    except OSError as error:
        return [f"--admission-control-config-file: {path!r} cannot be read ({error.strerror}), check the path"]
    except configuration.ConfigurationError as error:
        return [f"--admission-control-config-file: {error}"]
    return [f"--admission-control-config-file: {problem}" for problem in settings.problems(sources, plugins)]
