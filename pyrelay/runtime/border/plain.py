"""Instances that fit in every part, found by a function that is generated for their type.

Most arguments are such. The function checks an instance and returns it as compiled code takes it,
with tensors in the place of its numbers and chains in the place of its lists, in less than half a
microsecond. It gives up where a part is to be compared with sizes of the call, converted in another
way, or refused; the walk of `arguments.py` takes every value, and knows how to reach what does not
fit.

The functions of types call each other for the parts of an instance, down to a depth. What is deeper
is put off: it is taken by itself, and after it once more what it is a part of.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, assert_never, final

import torch

from ...ir.types import StrType
from ...prelude.values import Cons, Nil
from ..values.representation import making
from ..values.structure import chained
from .remembered import SETTLED, Known, Seen
from .schema import INT_RANGE, Case, Data, Elements, Items, Leaf, Maybe, Plan, Whole, has_data
from .supply import Supplies, Supply, borrowed, returned, supply_of

_DEPTH: Final = 100
"""How many instances in each other are taken by calls in each other."""

_NO_SUPPLIES: Final[Supplies] = {}

Taken: TypeAlias = dict[int, Any]
"""Instances of one plan as compiled code takes them, by the identities of those that were given.
The number of a round stands for one that was entered in it, and not finished."""
Take: TypeAlias = "Callable[[Any, Taken, Plain, int], Any]"
"""Checks an instance and returns it as compiled code takes it; None if it contains itself, or parts
that were put off. The last argument is how many calls may be in each other. Raises `UnfitError`."""


@final
class UnfitError(Exception):
    """An instance that is left to the careful walk."""


@final
class Plain:
    """A walk over an argument: the instances that it met which are to be remembered, by plan; the
    tensors and lists in it; the tensors made of its numbers; the parts that it has put off in this
    round."""

    __slots__ = ("device", "instances", "lists", "made", "put_off", "round", "supplies", "tensors")

    def __init__(self, device: torch.device) -> None:
        self.device: Final = device
        self.supplies = _NO_SUPPLIES
        # A class with type arguments takes twice as long to call.
        self.instances: Final[defaultdict[Data, Taken]] = defaultdict(dict)
        self.tensors: list[torch.Tensor] = []
        self.made: list[torch.Tensor] = []
        self.lists: list[Seen] = []
        self.put_off: Final[list[tuple[Data, Any]]] = []
        self.round = 1

    def begin(self) -> Plain:
        """Begin a walk over another argument of the same call."""
        self.instances.clear()
        self.tensors, self.made, self.lists = [], [], []
        return self

    def known(self, value: Any, plan: Data) -> Known:
        """Look at an instance, and remember it. Raises `UnfitError`."""
        return self.remember(value, self.take(value, plan), self.leaves, plan)

    def take(self, value: Any, plan: Data) -> Any:
        """Return an instance as compiled code takes it. Raises `UnfitError`."""
        take: Take = plan.take or partial(_take_first, plan)
        host = take(value, self.instances[plan], self, _DEPTH)
        return self._take_deep(value, plan) if host is None else host

    def _take_deep(self, value: Any, plan: Data) -> Any:
        """Take an instance that has been entered, with parts that were put off."""
        host = None
        pending = [(plan, value), *self.put_off]
        incomplete = {id(value)}
        while pending:
            plan, value = pending[-1]
            self.put_off.clear()
            self.round += 1
            take: Take = plan.take or partial(_take_first, plan)
            host = take(value, self.instances[plan], self, _DEPTH)
            if host is not None:
                pending.pop()
            elif id(value) in incomplete:  # after all of its parts: it is one of them
                raise UnfitError
            else:
                incomplete.add(id(value))
                pending += self.put_off
        return host

    def supply(self, dtype: torch.dtype) -> Supply:
        """Return tensors of a dtype that no number has needed yet."""
        if self.supplies is _NO_SUPPLIES:
            self.supplies = borrowed(self.device)
        return supply_of(self.supplies, dtype, self.device)

    def finish(self) -> None:
        """Write the numbers into the tensors that were made of them, if that waits."""
        if self.supplies is not _NO_SUPPLIES:
            returned(self.supplies, self.device)
            self.supplies = _NO_SUPPLIES

    def remember(self, value: Any, host: Any, leaves: Sequence[torch.Tensor], plan: Data) -> Known:
        """Remember an instance that compiled code takes as `host`; if it has no tensors, the
        instances inside as well."""
        if leaves or host is not value:
            inside = None if host is value else host
            device = self.device if leaves else None
            known = Known(inside, leaves, device, self.given, self.lists, is_kept=True)
            plan.remembered.add(value, known)
            return known
        self.instances[plan][id(value)] = value
        for inner, instances in self.instances.items():
            inner.remembered.settle(instances)
        return SETTLED

    @property
    def given(self) -> Sequence[torch.Tensor]:
        """The tensors in the argument, each once."""
        found = self.tensors
        if not found or len(set(map(id, found))) == len(found):
            return found
        return [*dict(zip(map(id, found), found, strict=True)).values()]

    @property
    def leaves(self) -> Sequence[torch.Tensor]:
        """The tensors in the argument as compiled code takes it."""
        return [*self.tensors, *self.made] if self.tensors else self.made


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


def _take_first(plan: Data, *args: Any) -> Any:
    """Generate the function that takes instances of a plan, and take the first one."""
    plan.take = _Generator(plan).function()
    return plan.take(*args)


@final
class _Generator:
    """Writes the function that takes instances of one plan:

    def take(v, done, met, depth):
        cls = type(v)
        if cls is n1:
            key = id(v)
            ...
            p0 = x0 = v.left
            x0 = take(x0, done, met, depth - 1)
            if x0 is None: lacks = True
            ...
            if lacks: return None
            made = v if x0 is p0 and x1 is p1 else n2(x0, x1)
            done[key] = made
            return made
        raise unfit
    """

    def __init__(self, plan: Data) -> None:
        self._plan: Final = plan
        self._names: Final[dict[str, Any]] = {
            "plan": plan,
            "settled": plan.remembered.settled,
            "nil": chained(),
            "lasting": _LASTING,
            "unfit": UnfitError,
        }

    def function(self) -> Take:
        """Return the function."""
        lines = ["def take(v, done, met, depth):", "    cls = type(v)"]
        for cls, case in self._plan.cases.items():
            taken = self._case(cls, case) if case.lasts and not case.own else None
            if taken is not None:
                lines += [f"    if cls is {self._named(cls)}:", *_indented(taken, 2)]
        exec("\n".join([*lines, "    raise unfit"]), self._names)
        return self._names["take"]

    def _case(self, cls: type, case: Case) -> list[str] | None:
        """Return the statements that take an instance of one class; None where only the careful
        walk can say."""
        lines: list[str] = []
        for n, (name, plan) in enumerate(zip(case.names, case.plans, strict=True)):
            part = self._part(f"x{n}", plan)
            if part is None:
                return None
            lines += [f"p{n} = x{n} = v.{name}", *part]
        same = [f"x{n} is p{n}" for n, plan in enumerate(case.plans) if _may_change(plan)]
        if not same:
            return [*lines, "return v"]
        made = [
            f"if {' and '.join(same)}: made = v",
            "else:",
            *_indented(self._made(cls, case)),
        ]
        if not any(map(has_data, case.plans)):
            return [*lines, *made, "return made"]
        return [*_ENTER, *lines, "if lacks: return None", *made, "done[key] = made", "return made"]

    def _made(self, cls: type, case: Case) -> list[str]:
        """Return the statements that make an instance of its parts."""
        values = [f"x{n}" for n in range(len(case.names))]
        return ["made = x0"] if cls is Whole else making(cls, case.names, values, self._named)

    def _part(self, x: str, plan: Plan) -> list[str] | None:
        """Return the statements that check the part `x` and convert it; None where only the careful
        walk can say."""
        if x.count("_") > _NESTED:
            return None
        match plan:
            case Data():
                return [self._taken(x, plan), f"if {x} is None: lacks = True"]
            case Maybe(inner=inner):
                inside = None if type(inner) is Maybe else self._part(x, inner)
                return inside and [f"if {x} is not None:", *_indented(inside)]
            case Leaf():
                return self._leaf(x, plan)
            case Items(fields=fields):
                return self._items(x, fields)
            case Elements(inner=inner):
                inside = self._part(f"{x}_", inner)
                return inside and [
                    f"if type({x}) is list: met.lists.append(({x}, tuple({x})))",
                    f"elif type({x}) not in lasting: raise unfit",
                    f"items, {x} = {x}, nil",
                    f"for {x}_ in reversed(items):",
                    *_indented([*inside, f"{x} = (0, {x}_, {x})"]),
                ]
            case _:
                assert_never(plan)

    def _items(self, x: str, fields: Sequence[Plan]) -> list[str] | None:
        lines = [
            f"if type({x}) is not tuple or len({x}) != {len(fields)}: raise unfit",
            f"{_listed(f'{x}_', len(fields))} = {x}",
        ]
        for n, field in enumerate(fields):
            part = self._part(f"{x}_{n}", field)
            if part is None:
                return None
            lines += part
        same = [f"{x}_{n} is {x}[{n}]" for n, field in enumerate(fields) if _may_change(field)]
        if same:
            lines.append(f"if not ({' and '.join(same)}): {x} = {_listed(f'{x}_', len(fields))}")
        return lines

    def _taken(self, x: str, plan: Data) -> str:
        """Return the statement that takes the part `x`, which is an instance."""
        if plan is self._plan:
            return f"{x} = take({x}, done, met, depth - 1)"
        if plan.take is None:
            plan.take = partial(_take_first, plan)
        other = self._named(plan)
        return f"{x} = {other}.take({x}, met.instances[{other}], met, depth - 1)"

    def _leaf(self, x: str, leaf: Leaf) -> list[str] | None:
        """Return the statements that check the leaf `x`, and note it where it is a tensor."""
        if isinstance(leaf.type, StrType):
            return [f"if type({x}) is not str: raise unfit"]
        dtype, shape = (leaf.scalar, ()) if leaf.fixed is None else leaf.fixed
        if dtype is None:
            return None
        tensor, dtype_name = self._named(torch.Tensor), self._named(dtype)
        differs = (
            f"{x}.dtype is not {dtype_name} or {x}.shape != {tuple(shape)!r}"
            f" or {x}.device != met.device"
        )
        note = f"met.tensors.append({x})"
        if dtype is torch.int64 and not shape:
            low, high = INT_RANGE.start, INT_RANGE.stop
            return [
                f"if type({x}) is int:",
                f"    if not {low} <= {x} < {high}: raise unfit",
                f"elif type({x}) is not {tensor} or {differs}: raise unfit",
                f"else: {note}",
            ]
        if dtype is torch.bool and not shape:
            return [
                f"if type({x}) is not bool:",
                f"    if type({x}) is not {tensor} or {differs}: raise unfit",
                f"    {note}",
            ]
        if leaf.most < 0.0:
            return [f"if type({x}) is not {tensor} or {differs}: raise unfit", note]
        return [
            f"if type({x}) is float and -{leaf.most!r} <= {x} <= {leaf.most!r}:",
            f"    supply = met.supplies.get({dtype_name}) or met.supply({dtype_name})",
            f"    {x} = supply.put({x})",
            f"    met.made.append({x})",
            f"elif type({x}) is not {tensor} or {differs}: raise unfit",
            f"else: {note}",
        ]

    def _named(self, value: Any) -> str:
        name = f"n{len(self._names)}"
        self._names[name] = value
        return name


def _may_change(plan: Plan) -> bool:
    """Return whether compiled code may take another object for a part."""
    match plan:
        case Leaf():
            return plan.most >= 0.0
        case Maybe(inner=inner):
            return _may_change(inner)
        case Items(fields=fields):
            return any(map(_may_change, fields))
        case Data() | Elements():
            return True
        case _:
            assert_never(plan)


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
    "if key in done:",
    "    made = done[key]",
    "    if type(made) is not int: return made",
    "    if made == met.round: return None",
    "elif settled and (r := settled.get(key)) is not None and r() is v: return v",
    "if depth < 1:",
    "    met.put_off.append((plan, v))",
    "    return None",
    "done[key] = met.round",
    "lacks = False",
)
"""Instances with instances or lists in them are noted; those that are known or were met are not
entered."""
