"""What an expression may cost at most, from the limits that a schema sets; known before it ever runs.

The numbers decide which rules a custom resource may have, so they follow the reference's to the unit: bounds of sizes
are carried through the tree where the reference carries them and are unknown where it does not know them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fastapi_core.cel.costs import LIST_COST, MAP_COST, MESSAGE_COST
from fastapi_core.cel.decls import Decl
from fastapi_core.cel.estimate_rules import CallEstimate, rule_of
from fastapi_core.cel.ranges import NOTHING, ONE, TOP, UNKNOWN, Range, exactly
from fastapi_core.cel.syntax import Call, Comprehension, Ident, ListNode, Literal, MapNode, Message, Node, Select
from fastapi_core.cel.types import LIST, MAP, PARAM, STRUCT, Type, is_optional


class Entries(NamedTuple):
    """Sizes of the keys and values in a container."""

    kind: str
    key: Range
    value: Range

    def union(self, other: Entries | None) -> Entries | None:
        if other is None:
            return None
        return Entries(self.kind, self.key.union(other.key), self.value.union(other.value))


class Path(NamedTuple):
    """The steps from a variable to a value, `self.list[*].name`.

    The reference appends steps in place while there is room for them, so paths that begin alike may overwrite each
    other's last step; estimates depend on it. `cells` is shared by such paths, `length` of them count.
    """

    cells: list[str]
    length: int

    def extended(self, step: str) -> Path:
        cells, length = self
        if length == len(cells):
            cells = cells + [""] * length
        cells[length] = step
        return Path(cells, length + 1)


def _extended(path: Path | None, step: str) -> Path:
    """What cannot be traced starts anew, with the step in place of a variable."""
    return Path([step], 1) if path is None else path.extended(step)


class Local(NamedTuple):
    """A variable of a comprehension: where it can be traced to, and sizes known."""

    path: Path | None
    size: Range | None
    entries: Entries | None


_SCALARS: Final = frozenset(("bool", "double", "duration", "int", "timestamp", "uint"))


def _is_scalar(kind: Type) -> bool:
    if is_optional(kind):
        return _is_scalar(kind.params[0])
    return kind.kind in _SCALARS


def estimate(node: Node, root: Decl | None = None, variable: str = "") -> Range:
    """Least and most that an evaluation of a checked tree costs. `root` declares `variable`; without a name whatever a
    path begins with, which is how the reference reads rules of schemas."""
    return Estimator(root, variable).cost(node)


def _type(node: Node) -> Type:
    assert node.type is not None
    return node.type


class Estimator:
    """Works through one tree."""

    def __init__(self, root: Decl | None, variable: str) -> None:
        self._root = root
        self._variable = variable
        self._paths: dict[int, Path | None] = {}
        self._sizes: dict[int, Range] = {}
        self._derived: dict[int, Range | None] = {}
        """Sizes of operands, as they were found when the operand was reckoned."""
        self._entries: dict[int, Entries] = {}
        self._locals: dict[str, list[Local]] = {}

    # Sizes.

    def _local(self, name: str) -> Local | None:
        stack = self._locals.get(name)
        return stack[-1] if stack else None

    def path(self, node: Node) -> Path | None:
        if isinstance(node, Ident):
            local = self._local(node.name)
            if local is not None:
                return local.path
        return self._paths.get(id(node))

    def declared(self, path: Path | None) -> Decl | None:
        """The declaration a path leads to."""
        decl = self._root
        if path is None or (self._variable and path.cells[0] != self._variable):
            return None
        for step in path.cells[1 : path.length]:
            if decl is None:
                return None
            if step in ("@items", "@values"):
                decl = decl.elem
            elif step == "@keys":
                decl = decl.key
            else:
                field = decl.field(step)
                decl = None if field is None else field.decl
        return decl

    def size(self, node: Node) -> Range | None:
        if id(node) in self._derived:
            return self._derived[id(node)]
        known = self._sizes.get(id(node))
        if known is not None:
            return known
        own = _own_size(node)
        if own is not None:
            return own
        decl = self.declared(self.path(node))
        if decl is not None:
            found = _declared(decl)
            self._sizes[id(node)] = found
            return found
        if _is_scalar(_type(node)):
            return ONE
        if isinstance(node, Ident):
            local = self._local(node.name)
            if local is not None:
                return local.size
        return None

    def size_or_unknown(self, node: Node) -> Range:
        return self.size(node) or UNKNOWN

    def entries(self, node: Node) -> Entries | None:
        known = self._entries.get(id(node))
        if known is None and isinstance(node, Ident):
            local = self._local(node.name)
            return None if local is None else local.entries
        return known

    def _set_size(self, node: Node, size: Range | None) -> None:
        if size is not None:
            self._sizes[id(node)] = size

    def _set_entries(self, node: Node, entries: Entries | None) -> None:
        if entries is not None:
            self._entries[id(node)] = entries

    def element(self, node: Node) -> tuple[Type, Range] | None:
        """(type, size) of the elements of a list."""
        params = _type(node).params
        if not params:
            return None
        path = self.path(node)
        decl = None if path is None else self.declared(Path([*path.cells[: path.length], "@items"], path.length + 1))
        return params[0], UNKNOWN if decl is None else _declared(decl)

    # Costs.

    def cost(self, node: Node) -> Range:
        match node:
            case Ident():
                return self._ident(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListNode():
                return self._list(node)
            case MapNode():
                return self._map(node)
            case Message():
                total = exactly(MESSAGE_COST)
                for entry in node.entries:
                    total = total.plus(self.cost(entry.value))
                return total
            case Comprehension():
                return self._bind(node) if node.kind == "bind" else self._comprehension(node)
        return NOTHING

    def _ident(self, node: Ident) -> Range:
        local = self._local(node.name)
        self._paths[id(node)] = Path([node.name], 1) if local is None else local.path
        return ONE

    def _select(self, node: Select) -> Range:
        if node.resolved is not None:
            self._paths[id(node)] = Path([node.resolved.name], 1)
            return ONE
        if node.test:
            return self.cost(node.operand)
        if node.optional:
            # Parsed as a call with the name as its second argument.
            return self.cost(node.operand).plus(ONE)
        total = self.cost(node.operand)
        if _type(node.operand).kind in (MAP, STRUCT, PARAM):
            total = total.plus(ONE)
        self._paths[id(node)] = _extended(self.path(node.operand), node.field)
        return total

    def _list(self, node: ListNode) -> Range:
        total = NOTHING
        size = Range(TOP, 0) if node.elements else NOTHING
        for element in node.elements:
            total = total.plus(self.cost(element))
            size = size.union(self.size_or_unknown(element))
        self._set_entries(node, Entries(LIST, ONE, size))
        return total.plus(exactly(LIST_COST))

    def _map(self, node: MapNode) -> Range:
        total = NOTHING
        keys = values = Range(TOP, 0) if node.entries else NOTHING
        for entry in node.entries:
            assert entry.key is not None
            total = total.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            keys = keys.union(self.size_or_unknown(entry.key))
            values = values.union(self.size_or_unknown(entry.value))
        self._set_entries(node, Entries(MAP, keys, values))
        return total.plus(exactly(MAP_COST))

    def _push(self, name: str, local: Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _pop(self, name: str) -> None:
        self._locals[name].pop()

    def _comprehension(self, node: Comprehension) -> Range:
        total = self.cost(node.range).plus(self.cost(node.init))
        self._push(node.accumulator, Local(None, self.size(node.init), self.entries(node.init)))
        self._push_variables(node)
        per_round = self.cost(node.condition).plus(self.cost(node.step))
        self._pop(node.variable)
        if node.second:
            self._pop(node.second)
        total = total.plus(self.cost(node.result))
        self._pop(node.accumulator)
        rounds = self.size_or_unknown(node.range)
        if isinstance(node.init, Literal):
            self._set_size(node, self.size(node.init))
        else:
            self._set_size(node, rounds)
            self._set_entries(node, self.entries(node.step))
        return total.plus(rounds.times(per_round))

    def _push_variables(self, node: Comprehension) -> None:
        entries = self.entries(node.range)
        path = self.path(node.range)
        kind = entries.kind if entries is not None else _type(node.range).kind
        keys, values = entries and entries.key, entries and entries.value
        inside, outside = ("@items", "@indices") if kind == LIST else ("@values", "@keys")
        if node.second:
            self._push(node.variable, Local(_extended(path, outside), keys, None))
            self._push(node.second, Local(_extended(path, inside), values, None))
        elif kind == LIST:
            self._push(node.variable, Local(_extended(path, inside), values, None))
        else:
            self._push(node.variable, Local(_extended(path, outside), keys, None))

    def _bind(self, node: Comprehension) -> Range:
        total = self.cost(node.range).plus(self.cost(node.init))
        self._push(node.accumulator, Local(self.path(node.init), self.size(node.init), self.entries(node.init)))
        total = total.plus(self.cost(node.result))
        self._pop(node.accumulator)
        self._set_size(node, self.size(node.result))
        self._set_entries(node, self.entries(node.result))
        return total

    # Calls.

    def _call(self, node: Call) -> Range:
        if node.function == "dyn" and node.target is None:
            cost = self.cost(node.args[0])
            self._set_size(node, self.size(node.args[0]))
            self._set_entries(node, self.entries(node.args[0]))
            return cost.plus(ONE)
        costs = [self._operand(arg) for arg in node.args]
        if not node.overloads:
            return NOTHING
        total = NOTHING if node.target is None else self._operand(node.target)
        price = Range(TOP, 0)
        size: Range | None = None
        for overload in node.overloads:
            found = self._overload(node, overload.id, costs)
            price = price.union(found.cost)
            if found.size is not None:
                size = found.size if size is None else size.union(found.size)
            if overload.id in ("index_list", "index_map"):
                size = self._indexed(node, "@items" if overload.id == "index_list" else "@values")
            if size is None:
                size = self.size(node)
        self._set_size(node, size)
        return total.plus(price)

    def _operand(self, node: Node) -> Range:
        cost = self.cost(node)
        self._derived[id(node)] = self.size(node)
        return cost

    def _indexed(self, node: Call, step: str) -> Range | None:
        container = node.args[0]
        entries = self.entries(container)
        self._paths[id(node)] = _extended(self.path(container), step)
        return None if entries is None else entries.value

    def _overload(self, node: Call, identifier: str, costs: list[Range]) -> CallEstimate:
        given = NOTHING
        for cost in costs:
            given = given.plus(cost)
        rule = rule_of(node.function, identifier)
        if rule is not None:
            found = rule(self, node)
            if found is not None:
                return CallEstimate(found.cost.plus(given), found.size)
        if identifier in ("logical_or", "logical_and"):
            return CallEstimate(Range(costs[0].low, costs[0].plus(costs[1]).high))
        if identifier == "conditional":
            return self._conditional(node, costs)
        return CallEstimate(ONE.plus(given))

    def _conditional(self, node: Call, costs: list[Range]) -> CallEstimate:
        first, second = node.args[1], node.args[2]
        size = self.size_or_unknown(first).union(self.size_or_unknown(second))
        entries = self.entries(first)
        self._set_entries(node, None if entries is None else entries.union(self.entries(second)))
        return CallEstimate(costs[0].plus(costs[1].union(costs[2])), size)

    def add_sizes(self, node: Call) -> Range:
        left, right = node.args
        entries = self.entries(left)
        self._set_entries(node, None if entries is None else entries.union(self.entries(right)))
        return self.size_or_unknown(left).plus(self.size_or_unknown(right))


def _own_size(node: Node) -> Range | None:
    if isinstance(node, Literal):
        return exactly(len(node.value) if isinstance(node.value, str | bytes) else 1)
    if isinstance(node, ListNode):
        return exactly(len(node.elements))
    if isinstance(node, MapNode):
        return exactly(len(node.entries))
    return None


def _declared(decl: Decl) -> Range:
    return Range(0, decl.max_elements if decl.max_elements >= 0 else TOP)
