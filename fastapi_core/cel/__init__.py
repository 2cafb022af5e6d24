"""The Common Expression Language with the functions of Kubernetes.

    environment = Environment({"self": decl})
    program = compile_expression("self.replicas <= self.maxReplicas", environment, [BOOL])
    program.evaluate({"self": tree}, Budget())

Import this package where the first expression turns up, not before: nothing of it is needed without one.
"""

from __future__ import annotations

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
