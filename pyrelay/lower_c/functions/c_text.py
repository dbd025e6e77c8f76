"""A function of a program, and all that it calls, as one C text; or the reason against it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import final

from ...dataclass import dataclass
from ...ir.dims import Dim, DimVar
from ...ir.expr import Call, type_of
from ...ir.module import Module
from ...ir.types import TensorType, Type, show
from ...kernels.backend import KernelFunction, ProgramFunction
from ...kernels.function_plan import FunctionPlan, Planned
from ...kernels.fusion.segments import CALLS
from ...kernels.outlined import outlined_of
from ...passes.closures import NotFirstOrder, first_order
from ...passes.simplify.dce import remove_dead
from ...passes.simplify.fold import fold
from ...passes.simplify.inline import inline_calls
from ..candidates import is_plain, is_worth_it
from ..text import USE_LIBRARY, Parts, Route
from .c_types import NotInC, cell_of, leaves_of, number_dtype, result_of
from .program import CProgram
from .routing import ROUTING
from .sizes import dim_params, dim_text, tensor_bytes
from .support import SUPPORT, helpers_of
from .writer import BodyWriter


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
    program = CProgram(plan, outlined.groups)
    writers = [BodyWriter(program, planned) for planned in program.names]
    heads = [f"{w.head()};" for w in writers]
    bodies = [writer.write() for writer in writers]
    kernels = program.kernels.parts()
    if kernels is not None and program.deep:
        raise NotInC("it recurses, and computes with tensors")
    function = plan.entry.function
    return CText(
        f"relay_{program.names[plan.entry].removeprefix('f_')}",
        "\n".join((*program.types.declarations, *heads, "", *bodies)),
        _entry(program),
        program.sites,
        tuple(map(Dim.atom, dim_params(function))),
        tuple(type_of(p) for p in function.params),
        result_of(function),
        bool(program.deep),
        kernels,
        program.kernels.routed,
    )


def _is_first_order(planned: Planned) -> bool:
    """Return whether a function is for values of one type, calls known functions alone, and stands
    in place if it is local."""
    is_monomorphic = all(isinstance(p, DimVar) for p in planned.function.type_params)
    has_place = planned.owner is None or planned.place is not None
    return is_monomorphic and has_place and not planned.calls_unknown


def _entry(program: CProgram) -> str:
    """Return the functions that unpack the arguments and pack the results."""
    entry = program.plan.entry
    function, name = entry.function, program.names[entry]
    for ty in (*map(type_of, function.params), result_of(function)):
        if not is_plain(ty):
            raise NotInC(f"it takes or returns a value of type {show(ty)}")
    lines: list[str] = []
    sizes = dim_params(function)
    args = ["s", *(["s->first_waiting"] if entry in program.deep else [])]
    args += [f"s->cells[{place}].i" for place in range(len(sizes))]
    known = {Dim.atom(p): f"s->cells[{place}].i" for place, p in enumerate(sizes)}
    place = len(sizes)
    for index, param in enumerate(function.params):
        ty = type_of(param)
        c_type = program.types.name(ty)
        if c_type == "void":
            continue
        lines.append(f"{c_type} a{index};")
        for path, leaf in leaves_of(ty):
            member = cell_of(number_dtype(leaf))
            value = f"({program.types.name(leaf)})s->cells[{place}].{member}"
            lines.append(f"a{index}{path} = {value};")
            place += 1
        args.append(f"a{index}")
    call = f"{name}({', '.join(args)})"
    c_type = program.types.name(result_of(function))
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


def function_findings(functions: Iterable[ProgramFunction]) -> Iterator[tuple[str, str | None]]:
    """Yield the names of functions that loop or recurse, and why C does not run one; None if it
    does. Those that C has within others are left out."""
    found = [(function, _finding(function)) for function in functions]
    within: set[str] = set()
    for function, why in found:
        if why is None:
            within.update(FunctionPlan(function.module, function.name).by_global)
    for function, why in found:
        if why is None or (why and function.name not in within):
            yield function.name, why


def _finding(function: ProgramFunction) -> str | None:
    """Return why a function is left to the host, empty if it neither loops nor recurses; None if C
    runs it."""
    if not is_worth_it(function.module, function.name):
        return ""
    try:
        c_text(function.module, function.name)
    except NotInC as why:
        return str(why)
    return None


def function_text(function: ProgramFunction) -> str:
    """Return the C of a function, and of what it calls; empty if the host runs it."""
    if _finding(function) is not None:
        return ""
    return c_text(function.module, function.name).own
