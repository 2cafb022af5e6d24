"""Header side of the compiled modules; refuses to start half built.

A missing module is an import error that names the fix, never a silent slow start.
"""

from importlib.util import find_spec

MODULES = (
    "defaulting",
    "fieldset",
    "http1",
    "jsonscan",
    "objects",
    "protoread",
    "protowire",
    "protowrite",
    "reqinfo",
    "router",
    "selector",
    "structwalk",
    "typed",
)

_missing = [name for name in MODULES if find_spec(f"{__name__}.{name}") is None]
if _missing:
    raise ImportError(
        f"fastapi_core: compiled modules are missing: {', '.join(_missing)}; "
        "run 'make build' (or 'python setup.py build_ext --inplace') in the source tree, or reinstall the wheel"
    )
