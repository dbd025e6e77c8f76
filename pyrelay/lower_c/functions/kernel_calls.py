"""The lines of a C function that call a kernel: room for its results and scratch, and the call.

Where a kernel has several routes, the call is repeated until they have been compared (`routing`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, final

from ...ir.dims import ZERO, Dim
from ...ir.types import TensorType, Type
from ...kernels.calling import Argument, Number, Read, Scratch, Size, Stride, Written
from ..math import element_of
from ..text import Kernel, Route
from .c_types import NotInC, declared
from .rooms import Hoisted, RoomWriter
from .sizes import bytes_of, tensor_bytes


def no_stride(argument: Stride) -> str:
    """Refuse the stride of an operand that lies row by row."""
    raise AssertionError(argument)


@final
class KernelCallWriter:
    """One call of a kernel in a C function."""

    def __init__(
        self,
        writer: RoomWriter,
        operands: Sequence[str],
        size: Callable[[Dim], str],
        stride: Callable[[Stride], str] = no_stride,
    ) -> None:
        """`operands` are their expressions, `size` returns that of a dim of the kernel, `stride`
        that of a stride of an operand."""
        self._writer: Final = writer
        self._line: Final = writer.line
        self._operands: Final = operands
        self._size: Final = size
        self._stride: Final = stride
        self._results: Final[list[str]] = []
        """The addresses of the results."""
        self._mark: str | None = None
        """The name of the mark of the memory in use before scratch was made."""

    def write(self, made: Sequence[Kernel], results: Sequence[Type], wish: str) -> list[str]:
        """Write the call of the C functions of the kernel, which has results of these types; return
        their names. Raises NotInC."""
        names = [self._result(ty, wish) for ty in results]
        for kernel in made:
            self._function(kernel)
        if self._mark is not None:
            self._line(f"relay_forget(s, {self._mark});")
        return names

    def _result(self, ty: Type, wish: str) -> str:
        """Write the declaration of a result; return its name."""
        name = self._writer.fresh(wish)
        c_type = self._writer.c_type(ty)
        if not isinstance(ty, TensorType) or not ty.shape:
            self._line(f"{c_type} {name};")
            self._results.append(f"&{name}")
            return name
        room = self._writer.room_for(name, tensor_bytes(ty, self._size))
        self._line(f"{declared(c_type, name)} = {room};")
        self._results.append(name)
        return name

    def _function(self, kernel: Kernel) -> None:
        """Write the call of one C function, after what it needs."""
        kept = self._writer.hoisted(kernel, self._operands, self._size) if kernel.kept else None
        trial = None if kernel.route is None else self._trial(kernel, kernel.route, kept)
        texts = [self._argument(a, kept, trial) for a in kernel.arguments]
        for argument, text in zip(kernel.arguments, texts, strict=True):
            if isinstance(argument, Written | Scratch) and argument.starts_zero:
                size = bytes_of(argument.shape, argument.dtype, self._size)
                self._line(f"memset({text}, 0, {size});")
        for line in _call_lines(kernel, texts, kept, trial):
            self._line(line)
        if kernel.may_fail:
            self._line("if (RELAY_RARELY(s->run.failed)) relay_fail(s, RELAY_AGAIN, 0, 0);")

    def _trial(self, kernel: Kernel, route: Route, kept: Hoisted | None) -> str:
        """Write what decides which route a call takes, or begins to compare them; return its
        name."""
        trial = self._writer.fresh("trial")
        number = self._writer.program.kernels.number_of(kernel)
        sizes = [self._size(d) for d in (*route.shape, sum(route.summed, start=ZERO))]
        begun = ", ".join(("s", str(number), str(int(kept is not None)), *sizes))
        self._line(f"relay_trial {trial} = relay_try({begun});")
        return trial

    def _argument(self, argument: Argument, kept: Hoisted | None, trial: str | None) -> str:
        """Return the expression of an argument of a kernel."""
        match argument:
            case Read(operand, dtype):
                return f"(const {element_of(dtype).c} *){self._operands[operand]}"
            case Written(result, dtype, overwrites=None):
                return f"({element_of(dtype).c} *){self._results[result]}"
            case Scratch(dtype=dtype):
                return f"({element_of(dtype).c} *){self._scratch(argument, kept, trial)}"
            case Number(operand, _):
                return self._operands[operand]
            case Size(dim):
                return self._size(dim)
            case Stride():
                return self._stride(argument)
            case Written():
                raise NotInC("it changes tensors in place")

    def _scratch(self, argument: Scratch, kept: Hoisted | None, trial: str | None) -> str:
        """Return the name of the room for scratch: what is kept from call to call has some, else it
        is made for the call, and only for the route that needs it."""
        if kept is not None and argument in kept.rooms:
            return kept.rooms[argument]
        if self._mark is None:
            self._mark = self._writer.marked()
        name = self._writer.fresh("scratch")
        room = bytes_of(argument.shape, argument.dtype, self._size)
        if argument.way is not None:
            room = f"{trial}.is_measured || {trial}.way == {argument.way} ? {room} : 0"
        self._line(f"void *{name} = relay_room(s, {room});")
        return name


def _call_lines(
    kernel: Kernel, texts: Sequence[str], kept: Hoisted | None, trial: str | None
) -> list[str]:
    """Return the lines of the call itself, which is repeated where its routes are compared."""
    flag = [] if not kernel.kept else ["0" if kept is None else kept.flag]
    if trial is None:
        packed = [] if kept is None else [f"{kept.flag} = 1;"]
        return [f"{kernel.name}({', '.join(('&s->run', *texts, *flag))});", *packed]
    return [
        f"while (relay_goes_on(s, &{trial})) {{",
        f"    {kernel.name}({', '.join(('&s->run', *texts, f'{trial}.way', *flag))});",
        *([] if kept is None else [f"    {kept.flag} |= !{trial}.way;"]),
        "}",
    ]
