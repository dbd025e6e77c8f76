"""Instances that fit in every part, found by a function that is generated for their type.

Most arguments are such, and the function takes half a microsecond for an instance. It gives up
where a part is to be compared with sizes of the call, converted by more than making a tensor of a
number, or refused; the walk of `arguments.py` takes every value, and knows how to reach what does
not fit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, TypeAlias, final

import numpy as np
import torch

from ...garbage import uncollected
from ...ir.types import StrType
from .cycles import is_cyclic
from .remembered import SETTLED, Given, Known, Leaves, Seen
from .schema import INT_RANGE, Case, Data, Leaf, Maybe, Plan, transform

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
    order in which it met them; the tensors and lists in them, and numbers that become tensors; and
    whether an instance stands in two places."""

    instances: defaultdict[Data, dict[int, Any]] = field(default_factory=lambda: defaultdict(dict))
    runs: list[tuple[Data, list[Any]]] = field(default_factory=list[tuple[Data, list[Any]]])
    tensors: list[Given] = field(default_factory=list[Given])
    lists: list[Seen] = field(default_factory=list[Seen])
    floats: Floats = field(default_factory=lambda: defaultdict(list))
    shared: bool = False

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

    def converted(self, value: Any, plan: Data, device: torch.device) -> Known:
        """Remember an instance with tensors in the place of the numbers that are to become some."""
        if not self.floats:
            return self.remember(value, value, plan, [tensor for tensor, _, _ in self.tensors])
        made = {leaf: tensors_of(numbers, leaf, device) for leaf, numbers in self.floats.items()}
        host = self._shared(value, plan, made) if self.shared else self._rebuilt(value, made)
        leaves = [tensor for tensor, _, _ in self.tensors]
        for tensors in made.values():
            leaves += tensors
        return self.remember(value, host, plan, leaves)

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
            leaf: dict(zip(map(id, numbers), made[leaf], strict=True))
            for leaf, numbers in self.floats.items()
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
        if met is None or (met.shared and is_cyclic(value, plan)):
            return None
        return met.converted(value, plan, device)


def plain_data(value: Any, plan: Data, device: torch.device) -> Plain | None:
    """Return what is in an instance that fits in every part and lasts; None where the careful walk
    must say."""
    found = Plain()
    pending: Pending = defaultdict(list)
    pending[plan].append(value)
    while pending:
        here, instances = pending.popitem()
        met = found.instances[here]
        before = len(met)
        if not _check_of(here)(instances, pending, found, device):
            return None
        found.runs.append((here, [*islice(met.values(), before, None)]))
    return found


def _check_of(plan: Data) -> Check:
    check = plan.check
    if check is None:
        generator = _Generator(plan)
        check = plan.check = generator.check()
        plan.rebuild = generator.rebuild()
    return check


@final
class _Generator:
    """Writes the check of one plan."""

    def __init__(self, plan: Data) -> None:
        self._plan: Final = plan
        self._names: Final[dict[str, Any]] = {"type": type, "id": id, "plan": plan}
        self._others: Final[dict[Data, str]] = {}

    def check(self) -> Check:
        """Return the function."""
        body: list[str] = []
        for cls, case in self._plan.cases.items():
            body += self._case(self._named(cls), case)
        others = {self._named(plan): push for plan, push in self._others.items()}
        lines = [
            "def check(pending, others, found, device):",
            "    known = plan.remembered.settled.get",
            "    met = found.instances[plan]",
            "    given, floats = found.tensors.append, found.floats",
            "    pop, push = pending.pop, pending.append",
            *(f"    {push} = others[{plan}].append" for plan, push in others.items()),
            "    while pending:",
            "        v = pop()",
            "        cls = type(v)",
            *(f"        {line}" for line in body),
            "        return False",
            "    return True",
        ]
        exec("\n".join(lines), self._names)
        return self._names["check"]

    def rebuild(self) -> Rebuild:
        """Return the function that makes instances with tensors in the place of numbers."""
        body: list[str] = []
        leaves: dict[Leaf, str] = {}
        for cls, case in self._plan.cases.items():
            body.append(f"        if cls is {self._named(cls)}:")
            body += (f"            {line}" for line in self._remade(case, leaves))
        lines = [
            "def rebuild(instances, made, last):",
            "    get = made.get",
            *(f"    pop_{leaf} = last.get({leaf})" for leaf in leaves.values()),
            "    for v in instances:",
            "        cls = type(v)",
            *body,
        ]
        exec("\n".join(lines), self._names)
        return self._names["rebuild"]

    def _remade(self, case: Case, leaves: dict[Leaf, str]) -> list[str]:
        """Return the statements that make an instance of one class; the numbers were noted from
        the first field on."""
        parts = [*enumerate(zip(case.names, case.plans, strict=True))]
        lines = [f"p{n} = v.{name}" for n, (name, _) in parts]
        new: list[str] = []
        for n, (_, plan) in reversed(parts):
            new.append(f"p{n}" if type(plan) is Leaf else f"get(id(p{n}), p{n})")
            if type(plan) is Leaf and _may_be_tensor(plan):
                name = leaves[plan] = leaves.get(plan) or self._named(plan)
                lines.append(f"if type(p{n}) is float: p{n} = pop_{name}()")
        lines.append(f"made[id(v)] = {self._named(case.make)}({', '.join(reversed(new))})")
        return [*lines, "continue"]

    def _case(self, cls: str, case: Case) -> list[str]:
        """Return the statements for the instances of one class."""
        if not case.lasts:
            return []
        fields = zip(case.names, case.plans, strict=True)
        parts = [self._part(f"v.{name}", plan) for name, plan in fields]
        if None in parts:
            return []
        lines = [line for part in parts if part for line in part]
        if any(isinstance(plan, Data | Maybe) or _may_be_tensor(plan) for plan in case.plans):
            lines = [*_ENTER, *lines]
        return [f"if cls is {cls}:", *(f"    {line}" for line in [*lines, "continue"])]

    def _part(self, value: str, plan: Plan) -> list[str] | None:
        """Return the statements for one field; None where only the careful walk can say."""
        match plan:
            case Data():
                return [f"{self._push(plan)}({value})"]
            case Maybe(inner=Data() as inner):
                return [f"x = {value}", f"if x is not None: {self._push(inner)}(x)"]
            case Leaf():
                wrong = self._wrong(plan)
                return None if wrong is None else [f"x = {value}", *wrong]
            case _:
                return None

    def _wrong(self, leaf: Leaf) -> list[str] | None:
        """Return the statements that check the leaf `x`, and note it where it is a tensor."""
        if isinstance(leaf.type, StrType):
            return ["if type(x) is not str: return False"]
        dtype, shape = (leaf.scalar, ()) if leaf.fixed is None else leaf.fixed
        if dtype is None:
            return None
        tensor, dtype_name = self._named(torch.Tensor), self._named(dtype)
        differs = (
            f"x.dtype is not {dtype_name} or x.shape != {tuple(shape)!r} or x.device != device"
        )
        note = f"given((x, {dtype_name}, {tuple(shape)!r}))"
        if dtype is torch.int64 and not shape:
            low, high = INT_RANGE.start, INT_RANGE.stop
            return [
                "if type(x) is int:",
                f"    if not {low} <= x < {high}: return False",
                f"elif type(x) is not {tensor} or {differs}: return False",
                f"else: {note}",
            ]
        if dtype is torch.bool and not shape:
            return [
                "if type(x) is not bool:",
                f"    if type(x) is not {tensor} or {differs}: return False",
                f"    {note}",
            ]
        if leaf.most < 0.0:
            return [f"if type(x) is not {tensor} or {differs}: return False", note]
        return [
            f"if type(x) is {tensor}:",
            f"    if {differs}: return False",
            f"    {note}",
            f"elif type(x) is float and -{leaf.most!r} <= x <= {leaf.most!r}:",
            f"    floats[{self._named(leaf)}].append(x)",
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


def _may_be_tensor(plan: Plan) -> bool:
    """Return whether a number of Python at a leaf becomes a tensor."""
    return isinstance(plan, Leaf) and plan.most >= 0.0


_ENTER: Final = (
    "key = id(v)",
    "r = known(key)",
    "if r is not None and r() is v: continue",
    "if key in met:",
    "    found.shared = True",
    "    continue",
    "met[key] = v",
)
"""Instances with data or floats in them are noted; those that are known or were met are not
entered."""
