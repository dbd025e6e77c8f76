"""One C kernel in the making: its arguments, its loops as functions over a part of the places, and
the function that deals the parts out to threads.

A loop is a function of a struct with the arguments, and of the first place and the one behind the
last. Its lines are C; what `OVER` repeats is run for whole vectors, and once for what is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import ClassVar, Final, final

from ...dataclass import dataclass
from ...ir.dims import Dim, product
from ...ir.expr import Function, type_of
from ...ir.types import DType, int32, int64
from ...kernels.calling import Argument, Layout, Number, Read, Scratch, Size, Stride, Written
from ...kernels.places import Places
from ...kernels.plans.code import KernelCode
from ...kernels.plans.terms import Access, Term, Terms, widened
from ...kernels.plans.text import DimText, Syntax, Text
from ...kernels.reading import shape_of
from ..kernel import Kept, Kernel, Route
from ..math import Target, element_name, element_of, lanes_for

_ORDER: Final = (Read, Number, Written, Scratch, Stride, Size)
"""Arguments come in this order."""

_WORDS: Final = (
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while bool true false asm typeof linux unix main OVER "
    "RELAY NULL n run given begin end at args row along piece first last lane u "
    "several whole left EACH_OF EACH_2 EACH_4 EACH_8 LET_2 LET_4 LET_8 LANES_LEFT "
    "OVER_SEVERAL OVER_LONG exp log sin cos tan "
    "tanh sinh cosh asin acos atan erf floor ceil abs pow sqrt fabs round trunc fmod gamma y0 "
    "y1 yn j0 j1 jn index free malloc div remainder memcpy memset"
)
KEYWORDS: Final = frozenset(_WORDS.split())
"""Names that mean something in C, or in the code around values."""


BY_LIBRARY: Final = "by_library"
"""The name of the number of a route."""


IS_PACKED: Final = "is_packed"
"""The name of the number that is not 0 if the operands that a kernel keeps packed are packed."""


@final
@dataclass(frozen=True, slots=True)
class _Loop:
    name: str
    count: str
    cost: int | str
    lines: tuple[str, ...]
    panels: Mapping[str, str]

    @property
    def call(self) -> str:
        """The call that deals its places out to threads."""
        given = f"run, {self.name}, &given, {self.count}, {self.cost}"
        if self.panels:
            rooms = (self.panels.get(kind, "(relay_space){0}") for kind in ("columns", "rows"))
            return f"relay_in_parts_with_panels({given}, {', '.join(rooms)});"
        return f"relay_in_parts({given});"


@final
class KernelText(KernelCode):
    """One kernel in the making: `lanes` is the number of elements in its vectors, `at_once` how
    many of these a line stands for; with `is_long` what is repeated is so long that there is one
    copy of it."""

    comment_sign: ClassVar[str] = "//"

    def __init__(
        self, function: Function, terms: Terms, places: Places, target: Target, name: str = ""
    ) -> None:
        """`name` is what its function is called, that of the kernel function if it is empty."""
        super().__init__(function, terms, KEYWORDS)
        self.target: Final = target
        self.function_name: Final = name or self.name
        self.take(self.function_name)
        self.lanes = 1
        self.at_once = 1
        self.is_long = False
        self.row: int | None = None
        """The places along the lanes, where they are known to be few: a loop goes over all."""
        self.narrow = frozenset[Term]()
        """The places that are wanted as 32-bit integers alone."""
        self.may_fail = False
        self.route: Route | None = None
        self.kept: Final[list[Kept]] = []
        self._loops: Final[list[_Loop]] = []
        self._computed: Final[list[tuple[str, str, str]]] = []
        self.dims: Final = DimText(
            places, self.operands, self.argument, self._scalar, Syntax("/", "relay_most_i64")
        )
        self._places: Final = places
        self._params: Final = function.params

    @cached_property
    def wide_dims(self) -> DimText:
        """The text of dims as vectors of places."""
        shape = f"{self.place_element}x{self.lanes}"

        def argument(argument: Argument, wish: str) -> str:
            return f"({self.place_c}){self.argument(argument, wish)}"

        def function(name: str) -> str:
            return f"relay_{name}_{shape}"

        def operand(text: Text) -> Text:
            return Text(f"(({shape}){{0}} + {text.inside(6)})")

        syntax = Syntax("/", function("most"), operand)
        return DimText(self._places, self.operands, argument, function, syntax)

    def choose_lanes(
        self, roots: Sequence[Term], stored: Sequence[DType], lane: str | None, layout: Layout
    ) -> None:
        """Choose the vectors of a kernel that computes some terms along the coordinate `lane`, and
        stores these dtypes: as many lanes as elements of the widest dtype fit in a register."""
        self.narrow = self._narrow_places(self.terms.needed(roots))
        moving = self._moving(roots, lane) - self.narrow
        found = {t.dtype for t in moving if t.dtype is not None}
        wide = [int64] if layout.is_wide else []
        self.lanes = lanes_for(self.target, [*found, *map(widened, stored), *wide])

    @staticmethod
    def _narrow_places(terms: Sequence[Term]) -> frozenset[Term]:
        """Return the places that are wanted as 32-bit integers alone."""
        others = (t for t in terms if t.op != "cast" or t.dtype != int32)
        wide = {operand for term in others for operand in term.operands}
        return frozenset(t for t in terms if t.op == "size" and t not in wide)

    def _moving(self, roots: Sequence[Term], lane: str | None) -> set[Term]:
        """Return the terms that have lanes of their own."""
        found: set[Term] = set()
        for term in sorted(self.terms.needed(roots), key=lambda t: t.number):
            own = any(lane in dim.names() for dim in self.terms.dims(term))
            if own or term.op == "result" or not found.isdisjoint(self.terms.before(term)):
                found.add(term)
        return found

    def place(self, index: str) -> str:
        """Return the place of the first lane of a vector, where the first vector is at `index`."""
        return index if self.at_once == 1 else f"({index} + {self.lanes} * u)"

    def simplified(self, place: Dim) -> Dim:
        """Return an equal place with fewer divisions."""
        return self._places.simplified(place)

    def is_inside(self, access: Access) -> bool:
        """Return whether a load is provably inside its operand, whatever the values of the kernel
        are. An operand that is computed is not looked at."""
        if isinstance(access.operand, str) or list(self.terms.found(access.offset)):
            return False
        param = self._params[access.operand]
        return self._places.is_below(access.offset, product(shape_of(type_of(param))))

    def over(self, index: str, begin: str, end: str, lines: Sequence[str]) -> list[str]:
        """Return the loop over places along the lanes, around lines."""
        bounds = f"{index}, {begin}, {end}, {self.lanes}"
        if self.is_long:
            head = f"OVER_LONG ({bounds}, {self.at_once},"
        elif self.at_once > 1:
            head = f"OVER_SEVERAL ({bounds}, {self.at_once},"
        else:
            head = f"OVER ({bounds},"
        return [head, *(f"    {line}" for line in lines), ");"]

    def vector(self, dtype: DType) -> str:
        """Return the C type of a vector of elements of a dtype in which values are computed."""
        name = element_name(dtype)
        return f"{'mask' if name == 'bool' else name}x{self.lanes}"

    def function(self, op: str, dtype: DType) -> str:
        """Return the name of a function of vectors of a dtype."""
        return f"relay_{op}_{element_name(dtype)}x{self.lanes}"

    @property
    def place_c(self) -> str:
        """The C type of one element of vectors of places."""
        return f"int{self.place_element[1:]}_t"

    @property
    def place_element(self) -> str:
        """The element type of vectors of places."""
        return "i64" if self.lanes * 8 <= self.target.register_bytes else "i32"

    def _scalar(self, name: str) -> str:
        return f"relay_{name}_i64"

    def compute(self, kind: str, name: str, value: str) -> None:
        """Add a variable of a C type, whose value is computed before the loops."""
        self._computed.append((kind, name, value))

    def loop(
        self,
        suffix: str,
        count: str,
        cost: int | str,
        lines: Sequence[str],
        panels: Mapping[str, str] | None = None,
    ) -> None:
        """Add a loop over `count` places, each of which takes about as long as `cost` additions of
        vectors; in its lines `begin` and `end` bound the places. `panels` are the rooms that each
        thread has for panels of `columns` and `rows`."""
        # Kernels of one name are numbered, so the loops of one are numbered behind a word.
        name = f"{self.function_name}_part{suffix}"
        self._loops.append(_Loop(name, count, cost, tuple(lines), panels or {}))

    def finish(self, before: str = "") -> Kernel:
        """Return the kernel with the loops that were added, after the text of functions that they
        call."""
        arguments = sorted(self.arguments, key=lambda a: _ORDER.index(type(a)))
        declared = [_declared(a, self.arguments[a]) for a in arguments]
        names = [self.arguments[a] for a in arguments]
        if self.route is not None:
            declared.append(f"int64_t {BY_LIBRARY}")
            names.append(BY_LIBRARY)
        if self.kept:
            declared.append(f"int64_t {IS_PACKED}")
            names.append(IS_PACKED)
        struct = f"struct {self.function_name}"
        head = f"void {self.function_name}({', '.join(('relay_run *run', *declared))})"
        declared += [f"{kind} {name}" for kind, name, _ in self._computed]
        names += [name for _, name, _ in self._computed]
        lines = [f"{struct} {{", "    relay_run *run;", *(f"    {d};" for d in declared), "};", ""]
        for loop in self._loops:
            lines += [
                f"static void {loop.name}(const void *given, int64_t begin, int64_t end) {{",
                f"    const {struct} args = *(const {struct} *)given;",
                *(f"    {d} = args.{n};" for d, n in zip(declared, names, strict=True)),
                *(f"    {line}" for line in loop.lines),
                "}",
                "",
            ]
        lines.append(f"KERNEL {head} {{")
        lines += [f"    const {kind} {name} = {value};" for kind, name, value in self._computed]
        lines.append(f"    const {struct} given = {{{', '.join(('run', *names))}}};")
        lines += [f"    {loop.call}" for loop in self._loops]
        lines.append("}")
        text = "\n".join((*filter(None, [before]), *(line.rstrip() for line in lines))) + "\n"
        kept = tuple(self.kept)
        return Kernel(
            self.function_name, head, text, tuple(arguments), self.may_fail, self.route, kept
        )


def _declared(argument: Argument, name: str) -> str:
    """Return the declaration of an argument."""
    match argument:
        case Read(_, dtype):
            return f"const {element_of(dtype).c} *{name}"
        case Written(_, dtype) | Scratch(_, dtype):
            return f"{element_of(dtype).c} *{name}"
        case Number(_, dtype):
            return f"{element_of(dtype).c} {name}"
        case Stride() | Size():
            return f"int64_t {name}"
