"""A function of a program, and all that it calls, as one C text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, final

from ...analysis.components import components
from ...analysis.ranges import in_range
from ...dataclass import dataclass
from ...ir.dims import Dim, DimVar
from ...ir.expr import Call, Var, type_of
from ...ir.module import Module
from ...ir.traverse import post_order
from ...ir.types import TensorType, Type, show
from ...kernels.backend import KernelFunction
from ...kernels.function_plan import FunctionPlan, Planned
from ...kernels.fusion.segments import CALLS
from ...kernels.groups import Group
from ...kernels.outlined import outlined_of
from ...passes.closures import NotFirstOrder, first_order
from ...passes.simplify.dce import remove_dead
from ...passes.simplify.fold import fold
from ...passes.simplify.inline import inline_calls
from ..candidates import graph_of, is_plain
from ..text import USE_LIBRARY, Kernel, Parts, Route
from .c_types import CTypes, NotInC, cell_of, leaves_of, number_dtype
from .escapes import Escapes
from .expressions import dim_params, result_of
from .identifiers import Names
from .kernel_calls import Kernels, dim_text, is_tensor, tensor_bytes
from .routing import ROUTING
from .support import SUPPORT, helpers_of
from .views import Lying
from .writer import BodyWriter

MOST_NODES: Final = 20_000
"""Functions that are larger together take a compiler too long."""


@final
@dataclass(frozen=True, slots=True)
class CText:
    """A function in C, and the name by which it is called with cells: sizes, arguments (of tensors
    the address), the addresses of the tensors that are results, and room for the numbers that are.

    `own` is its text without what all texts begin with. `sites` are the calls that may fail, by
    their numbers, from 1.
    """

    name: str
    own: str
    packed: str
    """The functions that unpack the arguments and pack the results."""
    sites: tuple[Call, ...]
    sizes: tuple[Dim, ...]
    """The sizes that are passed before the arguments."""
    params: tuple[Type, ...]
    result: Type
    is_deep: bool
    """Whether calls of it may wait for each other."""
    kernels: Parts | None = None
    """The kernels that it calls."""
    routed: tuple[tuple[KernelFunction, Route], ...] = ()
    """Those that may multiply matrices by a library."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that make its library, the first of which has the function."""
        own = "\n".join((self.own, self.packed))
        rest = (SUPPORT, *([ROUTING, USE_LIBRARY] if self.routed else []), helpers_of(own), own)
        if self.kernels is None:
            return ("\n".join(rest),)
        prefix = f"{self.kernels.prefix}\n#define RELAY_KERNELS\n"
        return "\n".join((prefix, *rest)), *self.kernels.beside


def c_text(module: Module, entry: str) -> CText:
    """Return a global function, and all that it calls, in C; regions stand in their places, since
    all is launched as one. Raises NotInC."""
    outlined = outlined_of(module)
    calls = (name for name in module.functions if name.startswith(CALLS))
    module = inline_calls(module, [n for n in (*outlined.regions, *calls) if n != entry])
    module = remove_dead(fold(module), entry)
    plan = FunctionPlan(module, entry)
    if not all(map(_is_first_order, plan.functions())):
        try:
            plan = FunctionPlan(first_order(module, entry), entry)
        except NotFirstOrder as why:
            raise NotInC(str(why)) from None
    return _Program(plan, outlined.groups).text()


def _is_first_order(planned: Planned) -> bool:
    """Return whether a function is for values of one type, calls known functions alone, and stands
    in place if it is local."""
    is_monomorphic = all(isinstance(p, DimVar) for p in planned.function.type_params)
    has_place = planned.owner is None or planned.place is not None
    return is_monomorphic and has_place and not planned.calls_unknown


@final
class _Program:
    """One text in the making: what its functions share (`writer.Unit`)."""

    def __init__(self, plan: FunctionPlan, kernels: Mapping[str, Group]) -> None:
        self._plan: Final = plan
        self._in_range: Final = in_range(plan.module)
        self._sites: Final[dict[Call, int]] = {}
        self._names: Final[dict[Planned, str]] = {}
        self._taken: Final = Names()
        self.types: Final = CTypes(plan.module.adts)
        self._escapes: Final = Escapes(self._plan)
        self._kernels: Final = Kernels(kernels)
        units = [p for p in self._plan.functions() if p.place is None and not self.is_kernel(p)]
        self._check(units)
        nodes = (n for p in units for n in post_order(p.function) if isinstance(n, Var))
        self.has_tensors: Final = any(is_tensor(type_of(n)) for n in nodes)
        for planned in units:
            self._names[planned] = f"f_{self._taken.fresh(planned.name)}"
        groups = components(graph_of(self._plan))
        self._groups: Final = {p: n for n, group in enumerate(groups) for p in group}
        self._deep: Final = self._find_deep()

    def _check(self, units: list[Planned]) -> None:
        for planned in units:
            if planned.owner is not None:
                why = "is a value" if planned.escapes else "is no loop"
                raise NotInC(f"its local function `{planned.name}` {why}")
            if planned.calls_unknown:
                raise NotInC("it calls a function that is a value")
            dim_params(planned.function)
        nodes = sum(1 for p in units for _ in post_order(p.function.body))
        if nodes > MOST_NODES:
            raise NotInC("it is so long that a compiler would take too long")

    def _find_deep(self) -> frozenset[Planned]:
        """Return the functions whose calls may wait for others of the same group."""
        deep: set[int] = set()
        for planned, group in self._groups.items():
            for site in planned.sites:
                caller = self._plan.unit_of(site.caller)
                if self._groups[caller] == group and not self._is_tail(planned, caller):
                    deep.add(group)
        return frozenset(p for p, group in self._groups.items() if group in deep)

    def _is_tail(self, planned: Planned, caller: Planned) -> bool:
        """Return whether all calls of a function by another are in tail position."""
        sites = [s for s in planned.sites if self._plan.unit_of(s.caller) is caller]
        ways: list[bool] = []
        for site in sites:
            inner, is_tail = site.caller, site.is_tail
            while inner.place is not None:
                inner, is_tail = inner.place.caller, is_tail and inner.place.is_tail
            ways.append(is_tail)
        return all(ways)

    # `writer.Unit`.

    def site(self, call: Call) -> int:
        """Return the number by which a call is known that fails."""
        return self._sites.setdefault(call, len(self._sites) + 1)

    def callee(self, call: Call) -> Planned | None:
        """Return the function that a call names, if it names one."""
        return self._plan.callee(call)

    def may_overflow(self, call: Call) -> bool:
        """Return whether the integer that a call gives may leave 64 bits."""
        return call not in self._in_range

    def c_name(self, planned: Planned) -> str:
        """Return the name of the C function that a function becomes."""
        return self._names[planned]

    def escapes(self, place: Var | Planned) -> bool:
        """Return whether a variable escapes into data, or the result of a function."""
        return self._escapes.has(place)

    def is_result_apart(self, planned: Planned) -> bool:
        """Return whether no tensor in the result of a function lies in memory that is forgotten."""
        return self._escapes.is_result_apart(planned)

    def is_entry(self, planned: Planned) -> bool:
        """Return whether a function is the one that Python calls."""
        return planned is self._plan.entry

    def is_kernel(self, planned: Planned) -> bool:
        """Return whether a function is a kernel of tensors."""
        return planned.owner is None and self._kernels.is_kernel(planned.name)

    def kernels(self, planned: Planned, lying: Sequence[Lying | None] = ()) -> tuple[Kernel, ...]:
        """Return the C functions of a kernel of tensors. `lying` are its operands where they do not
        lie row by row; empty if all do. Raises NotInC."""
        return self._kernels.of(planned.name, lying)

    def number_of(self, kernel: Kernel) -> int:
        """Return the number of a kernel among those that have several routes."""
        return self._kernels.number_of(kernel)

    def kernels_of_call(self, call: Call) -> tuple[Kernel, ...]:
        """Return the C functions of a call of an operator on tensors. Raises NotInC."""
        return self._kernels.of_call(call)

    def is_deep(self, planned: Planned) -> bool:
        """Return whether calls of a function may wait for others of it."""
        return planned in self._deep

    def jumps_to(self, source: Planned, target: Planned) -> bool:
        """Return whether a tail call of one function by another is a jump: they call each other."""
        return self._groups[source] == self._groups[target]

    # The text.

    def text(self) -> CText:
        """Return the text."""
        entry = self._plan.entry
        writers = {p: BodyWriter(self, p) for p in self._names}
        heads = [f"{w.head()};" for w in writers.values()]
        bodies = [writer.write() for writer in writers.values()]
        function = entry.function
        return CText(
            f"relay_{self._names[entry].removeprefix('f_')}",
            "\n".join((*self.types.declarations, *heads, "", *bodies)),
            self._entry(entry),
            tuple(self._sites),
            tuple(map(Dim.atom, dim_params(function))),
            tuple(type_of(p) for p in function.params),
            result_of(function),
            bool(self._deep),
            self._parts(),
            self._kernels.routed,
        )

    def _parts(self) -> Parts | None:
        found = self._kernels.parts()
        if found is not None and self._deep:
            raise NotInC("it recurses, and computes with tensors")
        return found

    def _entry(self, entry: Planned) -> str:
        """Return the functions that unpack the arguments and pack the results."""
        function, name = entry.function, self._names[entry]
        for ty in (*map(type_of, function.params), result_of(function)):
            if not is_plain(ty):
                raise NotInC(f"it takes or returns a value of type {show(ty)}")
        lines: list[str] = []
        sizes = dim_params(function)
        args = ["s", *(["s->first_waiting"] if self.is_deep(entry) else [])]
        args += [f"s->cells[{place}].i" for place in range(len(sizes))]
        known = {Dim.atom(p): f"s->cells[{place}].i" for place, p in enumerate(sizes)}
        place = len(sizes)
        for index, param in enumerate(function.params):
            ty = type_of(param)
            c_type = self.types.name(ty)
            if c_type == "void":
                continue
            lines.append(f"{c_type} a{index};")
            for path, leaf in leaves_of(ty):
                member = cell_of(number_dtype(leaf))
                value = f"({self.types.name(leaf)})s->cells[{place}].{member}"
                lines.append(f"a{index}{path} = {value};")
                place += 1
            args.append(f"a{index}")
        call = f"{name}({', '.join(args)})"
        c_type = self.types.name(result_of(function))
        lines.append(f"{call};" if c_type == "void" else f"{c_type} r = {call};")
        tensors = [t for _, t in leaves_of(result_of(function)) if number_dtype(t) is None]
        room, at = place, place + len(tensors)
        for path, leaf in leaves_of(result_of(function)):
            if isinstance(leaf, TensorType) and leaf.shape:
                count = tensor_bytes(leaf, lambda dim: dim_text(dim, known.get))
                lines.append(f"memcpy((void *)s->cells[{room}].i, r{path}, {count});")
                room += 1
            else:
                lines.append(f"s->cells[{at}].{cell_of(number_dtype(leaf))} = r{path};")
                at += 1
        public = f"relay_{name.removeprefix('f_')}"
        return "\n".join(
            (
                f"static void {public}_body(relay_state *s) {{",
                *(f"    {line}" for line in lines),
                "}",
                "",
                f"int64_t {public}(relay_call *call) {{",
                f"    return relay_enter(call, {public}_body);",
                "}",
                "",
            )
        )
