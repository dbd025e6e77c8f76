"""Instances that fit in every part, found by a function that is generated for their type.

Most arguments are such, and the function takes half a microsecond for an instance. It gives up
where a part is to be compared with sizes of the call, converted by more than making a tensor of a
number, or refused; the walk of `arguments.py` takes every value, and knows how to reach what does
not fit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, TypeAlias, assert_never, final

import numpy as np
import torch

from ...garbage import uncollected
from ...ir.types import StrType
from ...prelude.values import Cons, Nil
from ..values.structure import chained
from .cycles import is_cyclic
from .remembered import SETTLED, Given, Known, Leaves, Seen
from .schema import INT_RANGE, Data, Elements, Items, Leaf, Maybe, Plan, Whole, transform

Pending: TypeAlias = "defaultdict[Data, list[Any]]"
"""The instances that are still to be checked, by plan."""
Floats: TypeAlias = "defaultdict[Leaf, list[float]]"
"""Numbers of Python, in order, that stand in the place of tensors of floats."""
Check: TypeAlias = "Callable[[list[Any], Pending, Plain, torch.device], bool]"
"""Checks pending instances of one plan and notes their parts; returns whether all fit."""
Rebuild: TypeAlias = Callable[
    [Iterable[Any], dict[int, Any], Mapping[Leaf, Callable[[], torch.Tensor]]], None
]
"""Makes instances of one plan, met in the other order, with tensors in the place of the numbers in
them, and notes them by the identity of those without. The tensors are taken from the last one."""


@final
@dataclass(slots=True, eq=False)
class Plain:
    """The instances that a walk met which are to be remembered, by plan and identity, and the
    order in which it met them; the tensors and lists in them, and numbers that become tensors;
    whether an instance stands in two places, and whether lists are in them."""

    instances: defaultdict[Data, dict[int, Any]] = field(default_factory=lambda: defaultdict(dict))
    runs: list[tuple[Data, list[Any]]] = field(default_factory=list[tuple[Data, list[Any]]])
    tensors: list[Given] = field(default_factory=list[Given])
    lists: list[Seen] = field(default_factory=list[Seen])
    floats: Floats = field(default_factory=lambda: defaultdict(list))
    shared: bool = False
    has_lists: bool = False

    def remember(self, value: Any, host: Any, plan: Data, leaves: Sequence[torch.Tensor]) -> Known:
        """Remember an instance; if it has no tensors, the instances inside as well."""
        if not leaves and host is value:
            for inner, instances in self.instances.items():
                inner.remembered.settle(instances)
            plan.remembered.add(value, SETTLED)
            return SETTLED
        given = [*zip(*self.tensors, strict=True)] or ((), (), ())
        known = Known(
            None if host is value else host,
            given[0],
            [*given[1]],
            [*given[2]],
            tuple(self.lists),
            Leaves.of(tuple(leaves)),
            leaves[0].device if leaves else None,
        )
        plan.remembered.add(value, known)
        return known

    def converted(
        self, value: Any, plan: Data, device: torch.device
    ) -> tuple[Any, Sequence[torch.Tensor]]:
        """Return an instance with tensors in the place of the numbers that are to become some, and
        lists as compiled code has them; and its tensors."""
        numbers = {leaf: values for leaf, values in self.floats.items() if values}
        if not numbers and not self.has_lists:
            return value, [tensor for tensor, _, _ in self.tensors]
        made = {leaf: tensors_of(values, leaf, device) for leaf, values in numbers.items()}
        host = self._shared(value, plan, made) if self.shared else self._rebuilt(value, made)
        leaves = [tensor for tensor, _, _ in self.tensors]
        for tensors in made.values():
            leaves += tensors
        return host, leaves

    def _rebuilt(self, value: Any, made: Mapping[Leaf, Sequence[torch.Tensor]]) -> Any:
        """Return an instance with tensors in the place of its numbers."""
        found: dict[int, Any] = {}
        last = {leaf: list(tensors).pop for leaf, tensors in made.items()}
        for plan, instances in reversed(self.runs):  # what is inside of others comes first
            plan.rebuild(reversed(instances), found, last)
        return found[id(value)]

    def _shared(self, value: Any, plan: Data, made: Mapping[Leaf, Sequence[torch.Tensor]]) -> Any:
        """Return an instance in which others stand in several places in the same way."""
        by_id = {
            leaf: dict(zip(map(id, self.floats[leaf]), tensors, strict=True))
            for leaf, tensors in made.items()
        }
        none: Mapping[int, torch.Tensor] = {}
        return transform(value, plan, lambda v, p: by_id.get(p, none).get(id(v), v), is_given=True)


def tensors_of(
    numbers: Sequence[float], leaf: Leaf, device: torch.device
) -> Sequence[torch.Tensor]:
    """Return the tensors that numbers become at a leaf: many at once take a fraction of the time of
    one after the other."""
    if len(numbers) == 1:
        return (torch.scalar_tensor(numbers[0], dtype=leaf.scalar, device=device),)
    array = torch.from_numpy(np.array(numbers))  # torch.tensor takes three times as long
    return array.to(device, leaf.scalar).unbind()


def are_numbers(values: Sequence[Any], leaf: Leaf) -> type | None:
    """Return the class of the elements of a list where all are integers, or all floats, that
    certainly fit; None for other lists."""
    classes = set(map(type, values))
    if classes == {int}:
        fits = leaf.scalar is torch.int64
        return int if fits and min(values) in INT_RANGE and max(values) in INT_RANGE else None
    if classes != {float} or not -leaf.most <= min(values) <= max(values) <= leaf.most:
        return None
    return float


def known_instance(value: Any, plan: Data, device: torch.device) -> Known | None:
    """Return what is known of an argument that is data, which is looked at if it is not remembered
    as it is; None where the careful walk must say."""
    known = plan.remembered.get(value)
    if known is not None and known.fits(device):
        return known
    with uncollected():
        met = plain_data(value, plan, device)
        if met is None:
            return None
        host, leaves = met.converted(value, plan, device)
        return met.remember(value, host, plan, leaves)


def whole_list(
    value: Any, plan: Data, device: torch.device
) -> tuple[Any, Sequence[torch.Tensor]] | None:
    """Return a list as compiled code takes it and its tensors, by `Schema.whole`; None where the
    careful walk must say."""
    whole = Whole(value)
    with uncollected():
        met = plain_data(whole, plan, device)
        return None if met is None else met.converted(whole, plan, device)


def plain_data(value: Any, plan: Data, device: torch.device) -> Plain | None:
    """Return what is in an instance that fits in every part and lasts; None where the careful walk
    must say."""
    found = Plain()
    pending: Pending = defaultdict(list)
    pending[plan].append(value)
    while pending:
        here, instances = pending.popitem()
        if not instances:  # the check of another plan opened the list for what it might meet
            continue
        met = found.instances[here]
        before = len(met)
        if not _check_of(here)(instances, pending, found, device):
            return None
        found.runs.append((here, [*islice(met.values(), before, None)]))
    return None if found.shared and is_cyclic(value, plan) else found


def _check_of(plan: Data) -> Check:
    if plan.check is None:
        plan.check, plan.rebuild = _Generator(plan).functions()
    return plan.check


@final
class _Generator:
    """Writes the check of one plan, and the function that rebuilds its instances."""

    def __init__(self, plan: Data) -> None:
        self._plan: Final = plan
        self._names: Final[dict[str, Any]] = {
            "type": type,
            "id": id,
            "plan": plan,
            "nil": chained(),
            "lasting": _LASTING,
        }
        self._others: Final[dict[Data, str]] = {}
        self._floats: Final[dict[Leaf, str]] = {}

    def functions(self) -> tuple[Check, Rebuild]:
        """Return both functions."""
        checks: list[str] = []
        rebuilds: list[str] = []
        for cls, case in self._plan.cases.items():
            parts = [self._part(f"x{n}", plan) for n, plan in enumerate(case.plans)]
            if not case.lasts or None in parts:
                continue
            begin = f"        if cls is {self._named(cls)}:"
            remade = [self._remade(f"x{n}", plan) for n, plan in enumerate(case.plans)]
            values = [f"x{n} = v.{name}" for n, name in enumerate(case.names)]
            check = [*(_ENTER if any(remade) else ())]
            for value, part in zip(values, parts, strict=True):
                check += [value, *(part or ())]
            checks += [begin, *_indented([*check, "continue"], 3)]
            rebuild = [line for lines in reversed(remade) for line in lines]
            made = f"made[id(v)] = {self._named(case.make)}({_listed('x', len(values))})"
            rebuilds += [begin, *_indented([*values, *rebuild, made, "continue"], 3)]
        self._define_check(checks)
        self._define_rebuild(rebuilds)
        return self._names["check"], self._names["rebuild"]

    def _define_check(self, cases: Sequence[str]) -> None:
        lines = [
            "def check(pending, others, found, device):",
            "    known = plan.remembered.settled.get",
            "    met = found.instances[plan]",
            "    given, seen = found.tensors.append, found.lists.append",
            "    pop, push = pending.pop, pending.append",
            *(f"    {push} = others[{self._named(p)}].append" for p, push in self._others.items()),
            *(f"    note_{leaf} = found.floats[{leaf}].append" for leaf in self._floats.values()),
            "    while pending:",
            "        v = pop()",
            "        cls = type(v)",
            *cases,
            "        return False",
            "    return True",
        ]
        exec("\n".join(lines), self._names)

    def _define_rebuild(self, cases: Sequence[str]) -> None:
        lines = [
            "def rebuild(instances, made, last):",
            "    get = made.get",
            *(f"    pop_{leaf} = last.get({leaf})" for leaf in self._floats.values()),
            "    for v in instances:",
            "        cls = type(v)",
            *cases,
        ]
        exec("\n".join(lines), self._names)

    def _remade(self, x: str, plan: Plan) -> list[str]:
        """Return the statements that rebuild the part `x`; none where it stays as it is. Numbers
        were noted from the first one on."""
        match plan:
            case Leaf():
                name = self._floats.get(plan)
                return [] if name is None else [f"if type({x}) is float: {x} = pop_{name}()"]
            case Data():
                return [f"{x} = get(id({x}), {x})"]
            case Maybe(inner=inner):
                inside = self._remade(x, inner)
                return inside and [f"if {x} is not None:", *_indented(inside)]
            case Items(fields=fields):
                lines = [self._remade(f"{x}_{n}", field) for n, field in enumerate(fields)]
                inside = [line for part in reversed(lines) for line in part]
                names = _listed(f"{x}_", len(fields))
                return inside and [f"{names} = {x}", *inside, f"{x} = {names}"]
            case Elements(inner=inner):
                inside = [*self._remade(f"{x}_", inner), f"{x} = (0, {x}_, {x})"]
                return [
                    f"items, {x} = {x}, nil",
                    f"for {x}_ in reversed(items):",
                    *_indented(inside),
                ]
            case _:
                assert_never(plan)

    def _part(self, x: str, plan: Plan) -> list[str] | None:
        """Return the statements that check the part `x`; None where only the careful walk can
        say."""
        if x.count("_") > _NESTED:
            return None
        match plan:
            case Data():
                return [f"{self._push(plan)}({x})"]
            case Maybe(inner=inner):
                inside = None if type(inner) is Maybe else self._part(x, inner)
                return inside and [f"if {x} is not None:", *_indented(inside)]
            case Leaf():
                return self._leaf(x, plan)
            case Items(fields=fields):
                parts = [self._part(f"{x}_{n}", field) for n, field in enumerate(fields)]
                if None in parts:
                    return None
                return [
                    f"if type({x}) is not tuple or len({x}) != {len(fields)}: return False",
                    f"{_listed(f'{x}_', len(fields))} = {x}",
                    *(line for part in parts for line in part or ()),
                ]
            case Elements(inner=inner):
                inside = self._part(f"{x}_", inner)
                return inside and [
                    f"if type({x}) is list: seen(({x}, tuple({x})))",
                    f"elif type({x}) not in lasting: return False",
                    "found.has_lists = True",
                    f"for {x}_ in {x}:",
                    *_indented(inside),
                ]
            case _:
                assert_never(plan)

    def _leaf(self, x: str, leaf: Leaf) -> list[str] | None:
        """Return the statements that check the leaf `x`, and note it where it is a tensor."""
        if isinstance(leaf.type, StrType):
            return [f"if type({x}) is not str: return False"]
        dtype, shape = (leaf.scalar, ()) if leaf.fixed is None else leaf.fixed
        if dtype is None:
            return None
        tensor, dtype_name = self._named(torch.Tensor), self._named(dtype)
        differs = (
            f"{x}.dtype is not {dtype_name} or {x}.shape != {tuple(shape)!r}"
            f" or {x}.device != device"
        )
        note = f"given(({x}, {dtype_name}, {tuple(shape)!r}))"
        if dtype is torch.int64 and not shape:
            low, high = INT_RANGE.start, INT_RANGE.stop
            return [
                f"if type({x}) is int:",
                f"    if not {low} <= {x} < {high}: return False",
                f"elif type({x}) is not {tensor} or {differs}: return False",
                f"else: {note}",
            ]
        if dtype is torch.bool and not shape:
            return [
                f"if type({x}) is not bool:",
                f"    if type({x}) is not {tensor} or {differs}: return False",
                f"    {note}",
            ]
        if leaf.most < 0.0:
            return [f"if type({x}) is not {tensor} or {differs}: return False", note]
        name = self._floats[leaf] = self._floats.get(leaf) or self._named(leaf)
        return [
            f"if type({x}) is {tensor}:",
            f"    if {differs}: return False",
            f"    {note}",
            f"elif type({x}) is float and -{leaf.most!r} <= {x} <= {leaf.most!r}: note_{name}({x})",
            "else: return False",
        ]

    def _push(self, plan: Data) -> str:
        if plan is self._plan:
            return "push"
        return self._others.setdefault(plan, f"push_{len(self._others)}")

    def _named(self, value: Any) -> str:
        name = f"n{len(self._names)}"
        self._names[name] = value
        return name


def _indented(lines: Iterable[str], levels: int = 1) -> Iterator[str]:
    return (f"{'    ' * levels}{line}" for line in lines)


def _listed(name: str, count: int) -> str:
    """Return numbered variables with commas after them: a tuple, targets or arguments."""
    return "".join(f"{name}{n}, " for n in range(count))


_LASTING: Final = frozenset({tuple, Cons, Nil})
"""The classes of lists that stay as they are made."""

_NESTED: Final = 8
"""How many lists and tuples in each other are checked by generated code: Python allows 20 blocks
in each other."""

_ENTER: Final = (
    "key = id(v)",
    "r = known(key)",
    "if r is not None and r() is v: continue",
    "if key in met:",
    "    found.shared = True",
    "    continue",
    "met[key] = v",
)
"""Instances with data, floats or lists in them are noted; those that are known or were met are not
entered."""
