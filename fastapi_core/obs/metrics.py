"""Counters, gauges and histograms with the reference's text exposition; cheap enough for every request.

A family is declared once (`obs/catalog.py`). The hot path keeps the *child* of its label values and calls it:
`requests.labels("GET", ...).inc()` once, the bound child afterwards. Numbers that somebody else already keeps
(storage, cacher, process) are fetched only when scraped, by functions given to `Registry.collector`.
Everything runs on the event loop: there are no locks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

#: The reference's exposition content type.
CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8; escaping=underscores"


class Counter:
    """A number that only grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1.0) -> None:
        self.value += amount

    def set(self, value: float) -> None:
        """Take over a total that another component counts; for collectors only."""
        self.value = value


class Gauge(Counter):
    """A number that goes up and down."""

    __slots__ = ()

    def dec(self) -> None:
        self.value -= 1.0


class Histogram:
    """Observations counted in buckets; `bounds` are inclusive upper limits, ascending."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times

    @property
    def count(self) -> int:
        return sum(self.counts)


Child = TypeVar("Child", Counter, Gauge, Histogram)


class Family(Generic[Child]):
    """One metric name with its label names and a child for each combination of label values."""

    __slots__ = ("_make", "children", "help", "kind", "label_names", "name", "stability")

    def __init__(
        self, name: str, kind: str, stability: str, help: str, label_names: tuple[str, ...], make: Callable[[], Child]
    ) -> None:
        self.name = name
        self.kind = kind
        self.stability = stability
        self.help = help
        self.label_names = label_names
        self.children: dict[tuple[str, ...], Child] = {}
        self._make: Callable[[], Child] = make
        if not label_names:
            self.children[()] = make()

    def labels(self, *values: str) -> Child:
        """The child of these label values, in the order of `label_names`; keep it where it is used often."""
        child = self.children.get(values)
        if child is None:
            if len(values) != len(self.label_names):
                raise ValueError(f"{self.name} has labels {self.label_names}, got {values}")
            child = self.children[values] = self._make()
        return child

    def clear(self) -> None:
        """Forget every child, for collectors that set all of them anew."""
        self.children.clear()
        if not self.label_names:
            self.children[()] = self._make()

    def expose(self) -> Iterator[str]:
        """Exposition lines; nothing when there are no children."""
        if not self.children:
            return
        prefix = f"[{self.stability}] " if self.stability else ""
        yield f"# HELP {self.name} {prefix}{_escape_help(self.help)}"
        yield f"# TYPE {self.name} {self.kind}"
        order = sorted(range(len(self.label_names)), key=self.label_names.__getitem__)
        for values in sorted(self.children, key=lambda v: [v[i] for i in order]):
            labels = ",".join(f'{self.label_names[i]}="{_escape_label(values[i])}"' for i in order)
            child = self.children[values]
            if isinstance(child, Histogram):
                yield from _expose_histogram(self.name, labels, child)
            else:
                tail = f"{{{labels}}}" if labels else ""
                yield f"{self.name}{tail} {number(child.value)}"


def _expose_histogram(name: str, labels: str, child: Histogram) -> Iterator[str]:
    join = labels + "," if labels else ""
    seen = 0
    for bound, count in zip((*child.bounds, float("inf")), child.counts, strict=True):
        seen += count
        yield f'{name}_bucket{{{join}le="{number(bound)}"}} {seen}'
    tail = f"{{{labels}}}" if labels else ""
    yield f"{name}_sum{tail} {number(child.total)}"
    yield f"{name}_count{tail} {seen}"


class Registry:
    """All families of one server."""

    def __init__(self) -> None:
        self.families: dict[str, Family[Counter] | Family[Gauge] | Family[Histogram]] = {}
        self._collectors: list[Callable[[], None]] = []
        self.hidden: frozenset[str] = frozenset()
        """Names of families that are not exposed."""

    def counter(self, name: str, help: str, labels: Sequence[str] = (), *, stability: str = "ALPHA") -> Family[Counter]:
        return self._add(Family(name, "counter", stability, help, tuple(labels), Counter))

    def gauge(self, name: str, help: str, labels: Sequence[str] = (), *, stability: str = "ALPHA") -> Family[Gauge]:
        return self._add(Family(name, "gauge", stability, help, tuple(labels), Gauge))

    def histogram(
        self, name: str, help: str, labels: Sequence[str] = (), *, buckets: Sequence[float], stability: str = "ALPHA"
    ) -> Family[Histogram]:
        bounds = tuple(buckets)
        return self._add(Family(name, "histogram", stability, help, tuple(labels), lambda: Histogram(bounds)))

    def _add(self, family: Family[Child]) -> Family[Child]:
        if family.name in self.families:
            raise ValueError(f"metric {family.name} is declared twice")
        self.families[family.name] = family
        return family

    def collector(self, collect: Callable[[], None]) -> None:
        """Call `collect` before every exposition; it sets the children it is responsible for."""
        self._collectors.append(collect)

    def expose(self) -> bytes:
        """The whole registry in text format 0.0.4, families and children sorted."""
        for collect in self._collectors:
            collect()
        lines = [line for name in sorted(self.families.keys() - self.hidden) for line in self.families[name].expose()]
        return ("\n".join(lines) + "\n").encode() if lines else b""

    def reset(self) -> None:
        """Zero everything (`DELETE /metrics`). Children stay bound: who keeps one goes on counting in it."""
        for family in self.families.values():
            for child in family.children.values():
                if isinstance(child, Histogram):
                    child.counts = [0] * len(child.counts)
                    child.total = 0.0
                elif not isinstance(child, Gauge):
                    child.value = 0.0


def number(value: float) -> str:
    """A sample value as Go prints it (`%g` with the shortest digits)."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    if abs(value) < 1e6 and value == int(value):
        return str(int(value))
    from decimal import Decimal

    sign, digits, exponent = Decimal(repr(float(value))).normalize().as_tuple()
    point = len(digits) + int(exponent) - 1
    text = "".join(map(str, digits))
    if point < -4 or point >= 6:
        body = text[0] + ("." + text[1:] if len(text) > 1 else "") + f"e{'-' if point < 0 else '+'}{abs(point):02d}"
    elif point < 0:
        body = "0." + "0" * (-point - 1) + text
    else:
        whole = text[: point + 1].ljust(point + 1, "0")
        body = whole + ("." + text[point + 1 :] if len(text) > point + 1 else "")
    return "-" + body if sign else body


def _escape_help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _escape_label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
