"""Expressions about requests: what they see, how they fail, and match conditions of policies and webhooks.

Imported by whoever has the first expression. An answer of the authorizer that has to be waited for comes out as
`WaitingError` from any evaluation: `settled` waits for it and starts over, so evaluating must change nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from fastapi_core import cel
from fastapi_core.admission.chain import Attributes
from fastapi_core.admission.matching import kind_of
from fastapi_core.admission.policies.versions import PendingError
from fastapi_core.authz import base
from fastapi_core.authz.base import Authorizer, Decision
from fastapi_core.cel import Budget, CostError, Environment, EvalError, Program
from fastapi_core.cel.admission import base_environment
from fastapi_core.cel.costs import MATCH_CONDITIONS_BUDGET
from fastapi_core.cel.lazy import LazyFields
from fastapi_core.cel.library.authorizer import Answer, AuthorizerValue, Check, WaitingError
from fastapi_core.cel.types import BOOL, Type
from fastapi_core.errors import go_quote
from fastapi_core.registry.definition import ResourceDefinition, Tree
from fastapi_core.request.aside import CLOCK, patiently
from fastapi_core.request.context import User

T = TypeVar("T")

#: What is in the store may use everything that this version knows.
STORED: Final = (1, 36)
OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"


class FailedError(Exception):
    """An expression has no value; the text says why, as the reference does."""


class ExhaustedError(FailedError):
    """The budget is used up: nothing more of this task is evaluated."""

    def __init__(self) -> None:
        super().__init__(OUT_OF_BUDGET)


class Expression:
    """A compiled expression, or the reason why there is none."""

    __slots__ = ("error", "program", "text")

    def __init__(self, text: str, environment: Environment, returns: Sequence[Type] = ()) -> None:
        self.text = text
        self.error = ""
        self.program: Program | None = None
        try:
            self.program = cel.compile_expression(text, environment, returns)
        except cel.CompileError as error:
            self.error = error.told
        except cel.OutputTypeError as error:
            self.error = str(error)

    def evaluate(self, activation: Mapping[str, Any], budget: Budget) -> Any:
        """The value; FailedError."""
        program = self.program
        if program is None:
            raise FailedError(f"compilation error: {self.error}")
        try:
            value = program.evaluate(activation, budget)
        except (EvalError, CostError) as error:
            if budget.remaining < 0:
                raise ExhaustedError from None
            raise FailedError(f"expression '{self.text}' resulted in error: {error}") from None
        if budget.remaining < 0:
            raise ExhaustedError
        return value


class Input:
    """What the expressions about one request see, in one version of its object; made piece by piece as it is asked for."""

    __slots__ = ("_authorizer", "_pieces", "attributes", "namespace", "object", "old", "target")

    def __init__(
        self,
        attributes: Attributes,
        target: ResourceDefinition,
        authorizer: RequestAuthorizer,
        *,
        trees: tuple[Tree | None, Tree | None] | None = None,
        namespace: Tree | None = None,
    ) -> None:
        """`target` is the resource whose version `trees` (object, old object) are in."""
        self.attributes = attributes
        self.target = target
        self.object, self.old = trees or (attributes.object, attributes.old)
        self.namespace = namespace
        self._authorizer = authorizer
        self._pieces: dict[str, Any] = {}

    def activation(self, params: Tree | None = None) -> Activation:
        """The variables of one evaluation."""
        return Activation(self, {"object": self.object, "oldObject": self.old, "params": params})

    def conditions(self, params: Tree | None = None) -> Activation:
        """The variables of match conditions: they see no namespace, and the resource as it was asked for."""
        activation = self.activation(params)
        activation["namespaceObject"] = None
        if self.target is not self.attributes.definition:
            activation["request"] = request_tree(self.attributes, self.attributes.definition, self.target)
        return activation

    def piece(self, name: str) -> Any:
        found = self._pieces.get(name)
        if found is None:
            found = self._pieces[name] = self._make(name)
        return found

    def _make(self, name: str) -> Any:
        attributes = self.attributes
        if name == "request":
            return request_tree(attributes, self.target, self.target)
        if name == "namespaceObject":
            return self.namespace
        value = AuthorizerValue(partial(self._authorizer.answer, attributes.context.user))
        if name == "authorizer":
            return value
        if name == "authorizer.requestResource":
            definition = attributes.definition
            return value.request_resource(
                definition.group, definition.plural, attributes.subresource, attributes.namespace, attributes.name
            )
        raise KeyError(name)


class Activation(dict[str, Any]):
    """Variables by name; what is expensive is asked of the input when an expression uses it."""

    __slots__ = ("_input",)

    def __init__(self, source: Input, values: dict[str, Any]) -> None:
        super().__init__(values)
        self._input = source

    def __missing__(self, name: str) -> Any:
        return self._input.piece(name)


def request_tree(attributes: Attributes, resource: ResourceDefinition, version: ResourceDefinition) -> Tree:
    """The variable `request`: an AdmissionRequest without objects. `version` is the one the object is shown in."""
    definition, subresource = attributes.definition, attributes.subresource
    own = kind_of(definition, subresource)._asdict()
    user = attributes.context.user
    who = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {name: list(values) for name, values in user.extra.items()},
    }
    tree: Tree = {
        "kind": own if version is definition else kind_of(version, subresource)._asdict(),
        "resource": {"group": resource.group, "version": resource.version, "resource": resource.plural},
        "requestKind": own,
        "requestResource": {
            "group": definition.group,
            "version": definition.version,
            "resource": definition.plural,
        },
        "operation": attributes.operation,
        "userInfo": {name: value for name, value in who.items() if value},
        "dryRun": attributes.dry_run,
    }
    if subresource:
        tree["subResource"] = tree["requestSubResource"] = subresource
    if attributes.name:
        tree["name"] = attributes.name
    if attributes.namespace:
        tree["namespace"] = attributes.namespace
    if attributes.options is not None:
        tree["options"] = attributes.options.tree(attributes.operation)
    return tree


# The authorizer


class RequestAuthorizer:
    """Answers what expressions ask during one request, the same question once."""

    __slots__ = ("_answers", "_authorizer")

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._answers: dict[Check, Answer] = {}

    def answer(self, user: User, check: Check) -> Answer:
        """WaitingError when the authorizer does not answer at once."""
        known = self._answers.get(check)
        if known is not None:
            return known
        if CLOCK.beside:
            raise WaitingError(check, self._ask(user, check))
        verdict = self._authorizer.authorize(_asked(user, check))
        if isinstance(verdict, Awaitable):
            raise WaitingError(check, verdict)
        found = self._answers[check] = _answer(verdict)
        return found

    async def _ask(self, user: User, check: Check) -> base.Verdict:
        """For an evaluation beside the loop, on which authorizers live."""
        verdict = self._authorizer.authorize(_asked(user, check))
        return await verdict if isinstance(verdict, Awaitable) else verdict

    async def wait(self, error: WaitingError) -> None:
        """Remember the answer an evaluation waits for."""
        self._answers[error.check] = _answer(await error.answer)


def _asked(user: User, check: Check) -> base.Attributes:
    if check.service_account is not None:
        namespace, name = check.service_account
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        user = User(f"system:serviceaccount:{namespace}:{name}", groups=groups)
    if check.path:
        return base.Attributes(user, check.verb, "", "", "", "", "", "", check.path, False, "", "")
    return base.Attributes(
        user, check.verb, check.group, "*", check.namespace, check.resource, check.subresource, check.name, "", True,
        check.label_selector, check.field_selector,
    )  # fmt: skip


def _answer(verdict: base.Verdict) -> Answer:
    return Answer(verdict.decision is Decision.ALLOW, verdict.reason, verdict.error)


def settled(authorizer: RequestAuthorizer, attempt: Callable[[], T]) -> T | Awaitable[T]:
    """What `attempt` returns, at once unless an answer has to be waited for, or it takes too long for the loop; then it is
    called again from the start."""
    try:
        found = patiently(attempt)
    except (WaitingError, PendingError) as error:
        return _later(authorizer, attempt, error)
    return _beside(authorizer, attempt, found) if isinstance(found, Awaitable) else found


async def _beside(authorizer: RequestAuthorizer, attempt: Callable[[], T], found: Awaitable[T]) -> T:
    try:
        return await found
    except (WaitingError, PendingError) as error:
        return await _later(authorizer, attempt, error)


async def _later(authorizer: RequestAuthorizer, attempt: Callable[[], T], error: WaitingError | PendingError) -> T:
    while True:
        if isinstance(error, WaitingError):
            await authorizer.wait(error)
        else:
            await error.answer
        try:
            found = patiently(attempt)
            return await found if isinstance(found, Awaitable) else found
        except (WaitingError, PendingError) as following:
            error = following


# Variables and conditions


class Variables:
    """The variables of a policy: each is evaluated when an expression first uses it, and fails like a value."""

    __slots__ = ("_expressions", "types")

    def __init__(self, types: Mapping[str, Type], expressions: Mapping[str, Expression]) -> None:
        self.types = types
        self._expressions = expressions

    def put(self, activation: Activation, budget: Budget) -> None:
        """Make them visible, at the expense of this budget."""
        found = self._expressions
        activation["variables"] = (
            LazyFields({name: partial(_variable, name, found[name], activation, budget) for name in found})
            if found
            else found
        )


def _variable(name: str, expression: Expression, activation: Activation, budget: Budget) -> Any:
    if expression.program is None:
        raise EvalError(f"composited variable {go_quote(name)} fails to compile: {expression.error}")
    try:
        return expression.program.evaluate(activation, budget)
    except (EvalError, CostError) as error:
        raise EvalError(f"composited variable {go_quote(name)} fails to evaluate: {error}") from None


class MatchConditions:
    """The conditions a request must meet before a webhook or policy looks at it."""

    __slots__ = ("_items", "_variables")

    def __init__(
        self, trees: Sequence[Tree], environment: Environment | None = None, variables: Variables | None = None
    ) -> None:
        """`environment` defaults to that of webhooks."""
        known = environment or base_environment(params=False, authorizer=True, version=STORED)
        self._items = [(tree["name"], Expression(tree["expression"], known, (BOOL,))) for tree in trees]
        self._variables = variables

    def unmet(self, activation: Activation) -> str | None:
        """The name of a condition that does not hold, None when all do. FailedError: one or more fail and none is
        known not to hold."""
        budget = Budget(MATCH_CONDITIONS_BUDGET)
        if self._variables is not None:
            self._variables.put(activation, budget)
        errors: list[str] = []
        for name, expression in self._items:
            try:
                value = expression.evaluate(activation, budget)
            except ExhaustedError:
                raise
            except FailedError as error:
                errors.append(str(error))
                continue
            if value is False:
                found: str = name
                return found
        if errors:
            distinct = list(dict.fromkeys(errors))
            raise FailedError(distinct[0] if len(distinct) == 1 else "[" + ", ".join(distinct) + "]")
        return None
