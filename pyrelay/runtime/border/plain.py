"""Instances that fit in every part, found by a function that is generated for their type.

Most arguments are such, and the function takes half a microsecond for an instance. It gives up
where a part is to be compared with sizes of the call, converted by more than making a tensor of a
number, or refused; the walk of `arguments.py` takes every value, and knows how to reach what does
not fit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, final

import torch

from ...ir.types import StrType
from .remembered import SETTLED, Given, Known
from .schema import INT_RANGE, Case, Data, Leaf, Maybe, Plan

Pending: TypeAlias = "defaultdict[Data, list[Any]]"
"""The instances that are still to be checked, by plan."""
Floats: TypeAlias = "defaultdict[Leaf, dict[int, float]]"
"""Numbers of Python, by identity, that stand in the place of tensors of floats."""
Check: TypeAlias = "Callable[[list[Any], Pending, Plain, torch.device], bool]"
"""Checks pending instances of one plan and notes their parts; returns whether all fit."""
Rebuild: TypeAlias = Callable[[Sequence[Any], Mapping[int, torch.Tensor]], dict[int, Any]]
"""From instances of one plan, those inside others first, and tensors by the identity of the numbers
that they stand for, to instances with the tensors, by the identity of those without."""


@final
@dataclass(slots=True, eq=False)
class Plain:
    """The instances that a walk met which are to be remembered, by plan and identity; the tensors
    in them, and numbers that become tensors; and whether an instance stands in two places."""

    instances: defaultdict[Data, dict[int, Any]] = field(default_factory=lambda: defaultdict(dict))
    tensors: list[Given] = field(default_factory=list[Given])
    floats: Floats = field(default_factory=lambda: defaultdict(dict))
    shared: bool = False

    def remember(self, value: Any, host: Any, plan: Data, leaves: Sequence[torch.Tensor]) -> None:
        """Remember an instance; if it has no tensors, the instances inside as well."""
        if not leaves and host is value:
            for inner, instances in self.instances.items():
                inner.remembered.settle(instances)
            plan.remembered.add(value, SETTLED)
            return
        changed = None if host is value else host
        device = leaves[0].device if leaves else None
        plan.remembered.add(value, Known(changed, tuple(self.tensors), tuple(leaves), device))

    def rebuilt(self, value: Any, plan: Data, tensors: Mapping[int, torch.Tensor]) -> Any:
        """Return an instance with tensors in the place of its numbers; None where the parts of its
        type have types of their own, or stand in several places."""
        if self.shared or list(self.instances) != [plan] or plan.rebuild is None:
            return None
        inside_first = [*reversed(self.instances[plan].values())]
        return plan.rebuild(inside_first, tensors)[id(value)]


def plain_data(value: Any, plan: Data, device: torch.device) -> Plain | None:
    """Return what is in an instance that fits in every part and lasts; None where the careful walk
    must say."""
    found = Plain()
    pending: Pending = defaultdict(list)
    pending[plan].append(value)
    while pending:
        here, instances = pending.popitem()
        if not _check_of(here)(instances, pending, found, device):
            return None
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

    def rebuild(self) -> Rebuild | None:
        """Return the function that makes instances with tensors in the place of numbers; None
        where an instance has parts of other types than its own and leaves."""
        lines = ["def rebuild(instances, tensors):", "    made = {}", "    get = made.get"]
        lines += ["    at = tensors.get", "    for v in instances:", "        cls = type(v)"]
        for cls, case in self._plan.cases.items():
            parts = [*zip(case.names, case.plans, strict=True)]
            if any(type(plan) is not Leaf and plan is not self._plan for _, plan in parts):
                return None
            reads = [f"p{n} = v.{name}" for n, (name, _) in enumerate(parts)]
            new = [
                f"{'at' if type(plan) is Leaf else 'get'}(id(p{n}), p{n})"
                for n, (_, plan) in enumerate(parts)
            ]
            made = f"made[id(v)] = {self._named(case.make)}({', '.join(new)})"
            lines.append(f"        if cls is {self._named(cls)}:")
            lines += (f"            {line}" for line in (*reads, made, "continue"))
        exec("\n".join([*lines, "    return made"]), self._names)
        return self._names["rebuild"]

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
            f"    floats[{self._named(leaf)}][id(x)] = x",
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
