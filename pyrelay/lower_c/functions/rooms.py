"""Where the tensors of a C function lie: the part of its writer that makes room for them.

What data hold lies on the heap, row by row in columns where each round of a loop makes one; all
else lies in memory that is forgotten when a round ends. What is large, and made outside of loops
and branches, is left as soon as nothing needs it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, final

from ...dataclass import dataclass
from ...ir.dims import Dim
from ...ir.expr import Binding, Call, Expr, TupleGet, Var, type_of
from ...ir.types import DType, SizeType, TensorType, Type
from ...kernels.calling import Scratch
from ...kernels.function_plan import CallSite, Planned
from ..text import Kernel
from .c_types import cell_of
from .identifiers import Names
from .lifetimes import Lifetimes
from .program import CProgram
from .rounds import Column, Columns, rounds_of
from .sizes import bytes_of, dim_text, tensor_bytes
from .views import Strided, row_of


@final
@dataclass(frozen=True, slots=True)
class Around:
    """The code around the innermost loop: the expressions that are known before it, and lines to be
    written there."""

    known: frozenset[str]
    lines: list[str]


@final
@dataclass(frozen=True, slots=True)
class Hoisted:
    """Scratch of a kernel that lives longer than the rounds of a loop, by name, and the name of the
    number that says whether it is filled."""

    rooms: Mapping[Scratch, str]
    flag: str


_WORD: Final = re.compile(r"\w+")


class RoomWriter:
    """Makes room, lines and names for one C function."""

    def __init__(self, program: CProgram, planned: Planned) -> None:
        self.program: Final = program
        self._planned: Final = planned
        self._names: Final = Names()
        self._values: Final[dict[Var, str]] = {}
        self._views: Final[dict[Var, Strided]] = {}
        self._sizes: Final[dict[Dim, str]] = {}
        self._lines: list[str] = []
        self._around: Around | None = None
        self._shown: tuple[str, int] | None = None
        self.room = "relay_room"
        """The allocator of the tensors that are written now."""
        self.row: str | None = None
        """The bytes of a row of what is written now, if a loop makes rows in the room of these."""
        self._columns: Columns | None = None
        """Those of the loop that is written now, where what is written is done in each round."""
        self._results: Final[dict[Call, list[str]]] = {}
        """The names of the results of calls of kernels."""
        self._named: Final[dict[Var, list[str]]] = {}
        """The results of kernels that variables have."""
        self._lifetimes: Final = Lifetimes(
            planned.function, self._makes_anew, self._shares_nothing, program.escapes.has
        )
        self._is_swept = False
        self._depth = 0
        """How many blocks are around what is written now."""

    def line(self, text: str) -> None:
        """Add a line."""
        self._lines.append(text)

    def fresh(self, wish: str) -> str:
        """Return a name that nothing has."""
        return self._names.fresh(wish)

    def site(self, call: Call) -> int:
        """Return the number by which a call is known that fails."""
        return self.program.site(call)

    def c_type(self, ty: Type) -> str:
        """Return the name of the C type of the values of a type. Raises NotInC."""
        return self.program.types.name(ty)

    def size(self, dim: Dim) -> str:
        """Return the expression of a size, of which variables in scope show the names. Raises
        NotInC."""
        return dim_text(dim, self._sizes.get)

    def failure(self, call: Call, operands: Iterable[tuple[DType, str]]) -> str:
        """Return the statement that stops the program at a call. `operands` are the numbers among
        its operands: the dtype and the expression of each."""
        cells = [f"{{.{cell_of(dtype)} = {text}}}" for dtype, text in operands]
        given = f"(relay_cell[]){{{', '.join(cells)}}}" if cells else "0"
        return f"relay_fail(s, {self.site(call)}, {given}, {len(cells)});"

    def name_size(self, dim: Dim, text: str) -> None:
        """Let a size be known by an expression."""
        self._sizes.setdefault(dim, text)

    def _bind(self, var: Var, text: str) -> None:
        self._values[var] = text
        ty = type_of(var)
        if isinstance(ty, SizeType):
            self._sizes.setdefault(ty.dim, text)

    def room_for(self, name: str, count: str) -> str:
        """Return the expression that makes room for so many bytes: the next row of a column, where
        each round of a loop makes one for data."""
        if self.row is not None:
            return f"relay_ahead(s, {count}, {self.row})"
        if self._columns is None or self.room != "relay_heap" or not self._is_known(count):
            return f"{self.room}(s, {count})"
        column = Column(self.fresh("rows"), count)
        self._columns.columns[name] = column
        return f"relay_row(s, &{column.name}, {count})"

    def _is_known(self, text: str) -> bool:
        """Return whether what an expression mentions is known before the innermost loop."""
        assert self._around is not None
        inside = {*self._values.values(), *self._sizes.values()} - self._around.known
        return inside.isdisjoint(_WORD.findall(text))

    def hoisted(
        self, kernel: Kernel, args: Sequence[str], size: Callable[[Dim], str]
    ) -> Hoisted | None:
        """Make room before the loop around a call for operands that the kernel keeps packed, where
        none of them changes from round to round."""
        around = self._around
        if around is None or not {args[k.operand] for k in kernel.kept} <= around.known:
            return None
        numbers = {k.scratch for k in kernel.kept}
        scratch = [a for a in kernel.arguments if isinstance(a, Scratch) and a.number in numbers]
        rooms = {a: bytes_of(a.shape, a.dtype, size) for a in scratch}
        if not self._is_known(" ".join(rooms.values())):
            return None
        names = {a: self.fresh("packed") for a in scratch}
        flag = self.fresh("is_packed")
        made = (f"void *{names[a]} = relay_room(s, {room});" for a, room in rooms.items())
        around.lines.extend((*made, f"int64_t {flag} = 0;"))
        return Hoisted(names, flag)

    @contextmanager
    def _making(self, *, escapes: bool) -> Generator[None]:
        """Make tensors meanwhile on the heap, if they escape, or where a round forgets them."""
        self.room = "relay_heap" if escapes else "relay_room"
        yield
        self.room = "relay_room"

    def _makes_anew(self, value: Expr) -> bool:
        """Return whether a value is the call of a kernel that makes new tensors."""
        callee = self.program.callee(value) if isinstance(value, Call) else None
        if callee is None or not self.program.is_kernel(callee):
            return False
        return row_of(callee.function) is None

    def _shares_nothing(self, value: Expr) -> bool:
        """Return whether a value is the call of a function, and shares no memory with tensors that
        do not escape."""
        callee = self.program.callee(value) if isinstance(value, Call) else None
        if callee is None or callee.place is not None or self.program.is_kernel(callee):
            return False
        return self.program.escapes.is_result_apart(callee)

    def _sweeps(self, call: Call) -> bool:
        """Return whether a call may lend the memory of the heap, but for that of its operands: once
        in a program, where nothing else on the heap is needed any more."""
        is_once = self._is_on_the_way() and self._planned is self.program.plan.entry
        if not is_once or self._is_swept or self.room != "relay_room":
            return False
        self._is_swept = self._lifetimes.needs_no_heap_behind(call)
        return self._is_swept

    def _is_on_the_way(self) -> bool:
        """Return whether what is written now is neither in a loop nor in a branch."""
        return self._around is None and self._depth == 1

    def _own_calls(self) -> list[Call]:
        """Return the calls of the function that jump to its beginning; none if another function
        jumps there."""
        sites = self._jumping_sites()
        is_alone = all(s.caller.home is self._planned for s in sites)
        return [s.call for s in sites] if is_alone else []

    def _jumping_sites(self) -> list[CallSite]:
        """Return the calls that jump to the beginning of the function."""
        own = self._planned
        return [s for s in own.sites if self.program.jumps_to(s.caller.home, own)]

    def _columns_of(self, loop: Planned, calls: Sequence[Call]) -> Columns | None:
        """Return the columns of a loop that calls itself so; None where its rounds cannot be
        counted before."""
        rounds = rounds_of(loop.function, calls) if calls else None
        return None if rounds is None else Columns(loop, rounds)

    def marked(self) -> str:
        """Note how much memory is in use; return the name of the mark."""
        mark = self.fresh("before")
        self.line(f"const relay_mark {mark} = relay_marked(s);")
        return mark

    def _marked(self, value: Expr) -> str | None:
        """Note how much memory is in use before a call of a function that needs none of it after;
        return the name of the mark."""
        if not self.program.has_tensors or not self._shares_nothing(value):
            return None
        return self.marked()

    def _name_made(self, var: Var, value: Expr) -> None:
        """Note the results of a kernel that a variable has."""
        match value:
            case Call() if value in self._results:
                self._named[var] = self._results[value]
            case TupleGet(Var() as whole, index) if whole in self._named:
                self._named[var] = [self._named[whole][index]]
            case _:
                pass

    def _drop_ended(self, binding: Binding) -> None:
        """Leave the memory of the tensors that a binding is the last to need."""
        if not self._is_on_the_way():
            return
        for ended in self._lifetimes.ended(binding):
            if ended in self.program.read_by_rows:
                continue
            ty = type_of(ended)
            assert isinstance(ty, TensorType)
            self.line(f"relay_drop(s, {self._values[ended]}, {tensor_bytes(ty, self.size)});")

    def _is_kernel(self, call: Call) -> bool:
        callee = self.program.callee(call)
        return callee is not None and self.program.is_kernel(callee)
