"""Instances that fit in every part, found by a function that is generated for their type.

Most arguments are such, and the function takes half a microsecond for an instance. It gives up
where a part is to be compared with sizes of the call, converted by more than making a tensor of a
number, or refused; the walk of `arguments.py` takes every value, and knows how to reach what does
not fit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from typing import Any, Final, TypeAlias, assert_never, final

import numpy as np
import torch

from ...ir.types import StrType
from ...prelude.values import Cons, Nil
from ..values.structure import chained
from .cycles import is_cyclic
from .leaf_map import map_leaves
from .remembered import SETTLED, Given, Known, Leaves, Seen
from .schema import INT_RANGE, Data, Elements, Items, Leaf, Maybe, Plan

_torch: Any = torch
_VIEWS: Final = _torch._C.DispatchKeySet(_torch._C.DispatchKey.ADInplaceOrView)  # noqa: SLF001  it has no public name


def _untracked() -> AbstractContextManager[object]:
    """Make tensors of which torch does not note that they are views, in a `with` block: a quarter
    of the time of many small ones."""
    return _torch._C._ExcludeDispatchKeyGuard(_VIEWS)  # noqa: SLF001  it has no public name


Pending: TypeAlias = "defaultdict[Data, list[Any]]"
"""The instances that are still to be checked, by plan."""
Floats: TypeAlias = "defaultdict[Leaf, list[float]]"
"""Numbers of Python, in order, that stand in the place of tensors of floats."""
Check: TypeAlias = "Callable[[list[Any], list[Any], Pending, Plain, torch.device], bool]"
"""Checks pending instances of one plan and notes them, in order, and their parts; returns whether
all fit."""
Made: TypeAlias = "defaultdict[Data, list[Any]]"
"""The instances that were rebuilt and belong into others, by plan."""
Rebuild: TypeAlias = Callable[
    [Iterable[Any], Made, AbstractSet[int], Mapping[Leaf, Callable[[], torch.Tensor]]], None
]
"""Rebuilds instances of one plan with tensors in the place of their numbers, in the other order
than that in which they were checked: an instance that was put on the pending ones is now taken from
those that were made, and one that was taken is put there. Those of a set of identities stay as they
are. The tensors are taken from the last one."""


@final
class Plain:
    """The instances that a walk met which are to be remembered, by plan and identity; the order in
    which it met all of them, and which are known; the tensors and lists in them, and numbers that
    become tensors; whether an instance stands in two places, and whether lists are in them."""

    __slots__ = ("floats", "has_lists", "instances", "known", "lists", "runs", "shared", "tensors")

    def __init__(self) -> None:
        self.instances: Final = defaultdict[Data, dict[int, Any]](dict)
        self.runs: Final[list[tuple[Data, Sequence[Any]]]] = []
        self.known: Final[set[int]] = set()
        self.tensors: Final[list[Given]] = []
        self.lists: Final[list[Seen]] = []
        self.floats: Final[Floats] = defaultdict(list)
        self.shared = False
        self.has_lists = False

    def remember(self, value: Any, host: Any, leaves: Sequence[torch.Tensor], plan: Data) -> Known:
        """Remember an instance; if it has no tensors, the instances inside as well."""
        if not leaves and host is value:
            for inner, instances in self.instances.items():
                inner.remembered.settle(instances)
            plan.remembered.add(value, SETTLED)
            return SETTLED
        given, dtypes, shapes = zip(*self.tensors, strict=True) if self.tensors else _NOTHING
        known = Known(
            None if host is value else host,
            given,
            [*dtypes],
            [*shapes],
            tuple(self.lists),
            Leaves.of(tuple(leaves)),
            leaves[0].device if leaves else None,
        )
        plan.remembered.add(value, known)
        return known

    def converted(
        self, value: Any, plan: Data, made: Mapping[Leaf, Sequence[torch.Tensor]]
    ) -> tuple[Any, Sequence[torch.Tensor]]:
        """Return an instance with tensors in the place of the numbers that are to become some, and
        lists as compiled code has them; and its tensors."""
        if not made and not self.has_lists:
            return value, [tensor for tensor, _, _ in self.tensors]
        host = self._shared(value, plan, made) if self.shared else self._rebuilt(made)
        leaves = [tensor for tensor, _, _ in self.tensors]
        for tensors in made.values():
            leaves += tensors
        return host, leaves

    def _rebuilt(self, made: Mapping[Leaf, Sequence[torch.Tensor]]) -> Any:
        """Return the instance that was walked over with tensors in the place of its numbers."""
        rebuilt: Made = defaultdict(list)
        last = {leaf: list(tensors).pop for leaf, tensors in made.items()}
        for plan, instances in reversed(self.runs):
            plan.rebuild(reversed(instances), rebuilt, self.known, last)
        return rebuilt[self.runs[0][0]].pop()

    def _shared(self, value: Any, plan: Data, made: Mapping[Leaf, Sequence[torch.Tensor]]) -> Any:
        """Return an instance in which others stand in several places in the same way."""
        by_id = {
            leaf: dict(zip(map(id, self.floats[leaf]), tensors, strict=True))
            for leaf, tensors in made.items()
        }
        none: Mapping[int, torch.Tensor] = {}
        return map_leaves(value, plan, lambda v, p: by_id.get(p, none).get(id(v), v), is_given=True)


def tensors_of(
    numbers: Sequence[float], leaf: Leaf, device: torch.device
) -> Sequence[torch.Tensor]:
    """Return the tensors that numbers become at a leaf: many at once take a fraction of the time of
    one after the other."""
    if len(numbers) == 1:
        return (torch.scalar_tensor(numbers[0], dtype=leaf.scalar, device=device),)
    array = torch.from_numpy(np.array(numbers))  # torch.tensor takes three times as long
    row = array.to(device, leaf.scalar)
    with _untracked():
        return row.unbind()


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


def plain_data(value: Any, plan: Data, device: torch.device) -> Plain | None:
    """Return the contents of an instance that fits in every part and lasts; None where the careful
    walk must say."""
    found = Plain()
    pending: Pending = defaultdict(list)
    pending[plan].append(value)
    while pending:
        here, instances = pending.popitem()
        if not instances:  # the check of another plan opened the list for what it might meet
            continue
        order: list[Any] = []
        found.runs.append((here, order))
        if not _check_of(here)(instances, order, pending, found, device):
            return None
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
            "settled": plan.remembered.settled,
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
            made = f"{self._named(case.make)}({_listed('x', len(values))})"
            lines = [*values, *(line for part in reversed(remade) for line in part)]
            rebuild = [*lines, f"put({made})"] if any(remade) else ["put(v)"]
            rebuilds += [begin, *_indented([*rebuild, "continue"], 3)]
        self._define_check(checks)
        self._define_rebuild(rebuilds)
        return self._names["check"], self._names["rebuild"]

    def _define_check(self, cases: Sequence[str]) -> None:
        lines = [
            "def check(pending, order, others, found, device):",
            "    met = found.instances[plan]",
            "    note = order.append",
            "    given, seen = found.tensors.append, found.lists.append",
            "    pop, push = pending.pop, pending.append",
            *(f"    {push} = others[{self._named(p)}].append" for p, push in self._others.items()),
            *(f"    note_{leaf} = found.floats[{leaf}].append" for leaf in self._floats.values()),
            "    while pending:",
            "        v = pop()",
            "        note(v)",
            "        cls = type(v)",
            *cases,
            "        return False",
            "    return True",
        ]
        exec("\n".join(lines), self._names)

    def _define_rebuild(self, cases: Sequence[str]) -> None:
        others = self._others.items()
        lines = [
            "def rebuild(instances, made, known, last):",
            "    put, take = made[plan].append, made[plan].pop",
            *(f"    {_taking(push)} = made[{self._named(p)}].pop" for p, push in others),
            *(f"    pop_{leaf} = last.get({leaf})" for leaf in self._floats.values()),
            "    for v in instances:",
            "        if known and id(v) in known:",
            "            put(v)",
            "            continue",
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
                return [f"{x} = {_taking(self._push(plan))}()"]
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


def _taking(push: str) -> str:
    """Return the name of the function that takes what another put on the pending instances."""
    return push.replace("push", "take")


def _indented(lines: Iterable[str], levels: int = 1) -> Iterator[str]:
    return (f"{'    ' * levels}{line}" for line in lines)


def _listed(name: str, count: int) -> str:
    """Return numbered variables with commas after them: a tuple, targets or arguments."""
    return "".join(f"{name}{n}, " for n in range(count))


_NOTHING: Final[tuple[tuple[Any, ...], ...]] = ((), (), ())

_LASTING: Final = frozenset({tuple, Cons, Nil})
"""The classes of lists that stay as they are made."""

_NESTED: Final = 8
"""How many lists and tuples in each other are checked by generated code: Python allows 20 blocks
in each other."""

_ENTER: Final = (
    "key = id(v)",
    "if key in met:",
    "    found.shared = True",
    "    continue",
    "if settled and (r := settled.get(key)) is not None and r() is v:",
    "    found.known.add(key)",
    "    continue",
    "met[key] = v",
)
"""Instances with data, floats or lists in them are noted; those that are known or were met are not
entered."""
