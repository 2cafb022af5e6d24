"""The Common Expression Language with the functions of Kubernetes.

    environment = Environment({"self": decl})
    program = compile_expression("self.replicas <= self.maxReplicas", environment, [BOOL])
    program.evaluate({"self": tree}, Budget())

Its parts are imported where they are first asked for: a pattern of a schema needs `cel.regex`, but nothing else of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi_core.cel.environment import Environment
    from fastapi_core.cel.errors import CompileError, CostError, EvalError, OutputTypeError
    from fastapi_core.cel.program import Budget, Program, compile_expression

__all__ = [
    "Budget",
    "CompileError",
    "CostError",
    "Environment",
    "EvalError",
    "OutputTypeError",
    "Program",
    "compile_expression",
]
_HOMES = {"Environment": "environment", **dict.fromkeys(("Budget", "Program", "compile_expression"), "program")}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(name)
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'errors')}"), name)
