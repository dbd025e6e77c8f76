"""The text of direct calls (`direct.py`): one function for the form that the calls have."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from textwrap import indent
from types import CodeType
from typing import Final, final

import torch

from ...dataclass import dataclass
from ...ir.types import DType, DTypeKind, TensorType
from ..border.places import Parameter

_CONDITIONS: Final = (
    "current() is options",
    "gettrace() is None",
    "inserted.all is steps",
    "registry.table is table",
    "not casts()",
    "not is_watched()",
    "guards_hold()",
)
"""The state that must be unchanged: the options, what is registered, the modes of torch, captured
names."""


class ArgumentKind(Enum):
    """The arguments that a parameter takes: a model, a tensor, or a number too, which may have to
    become a tensor; or data, which are looked at."""

    MODEL = "model"
    TENSOR = "tensor"
    NUMBER = "number"
    FLOAT = "float"
    DATA = "data"


class Way(Enum):
    """How a function is called: as host code, as host code of which autograd need not know, by a
    backend that runs it whole, which torch does not see, or as a node of torch's graph."""

    HOST = "host"
    BARE = "bare"
    WHOLE = "whole"
    JOINED = "joined"


def kind_of(parameter: Parameter) -> tuple[ArgumentKind, str]:
    """Return the kind of the arguments of a parameter, and the name of their dtype."""
    ty = parameter.type
    if parameter.is_model:
        return ArgumentKind.MODEL, ""
    if not isinstance(ty, TensorType):
        return ArgumentKind.DATA, ""
    assert isinstance(ty.dtype, DType)
    if ty.shape:
        return ArgumentKind.TENSOR, ty.dtype.name
    is_float = ty.dtype.kind is DTypeKind.FLOAT
    return ArgumentKind.FLOAT if is_float else ArgumentKind.NUMBER, ty.dtype.name


@final
@dataclass(frozen=True, slots=True)
class Form:
    """The form of direct calls: the kinds of their arguments, of which the first ones are as many
    implicit models; the places of the models that have state, how the function is called; whether
    it may join torch's graph, and torch may record what it calls; whether there is more to do with
    the result; whether captured names are to be looked at; whether an optimiser updates a model,
    and whether the result is made into something else for the caller."""

    kinds: tuple[tuple[ArgumentKind, str], ...]
    models: int
    stateful: tuple[int, ...]
    way: Way
    joins: bool
    may_record: bool
    is_finished: bool
    is_guarded: bool
    is_optimized: bool
    is_made: bool

    @property
    def has_models(self) -> bool:
        """Whether models are among the arguments, or implicit."""
        return any(kind is ArgumentKind.MODEL for kind, _ in self.kinds)

    @property
    def records(self) -> bool:
        """Whether torch must be kept from recording."""
        return self.may_record and self.way not in (Way.WHOLE, Way.JOINED)


@lru_cache(maxsize=256)
def code_of(form: Form) -> CodeType:
    """Return the code of the functions `key` and `call`."""
    return compile("\n".join(_Writer(form).lines()), "<a direct call>", "exec")


@final
class _Writer:
    def __init__(self, form: Form) -> None:
        self._form: Final = form
        self._every: Final = [f"v{n}" for n in range(len(form.kinds))]
        self._implicit: Final = self._every[: form.models]
        self._names: Final = self._every[form.models :]
        self._given: Final = list(zip(self._every, form.kinds, strict=True))
        self._models: Final = [n for n, (kind, _) in self._given if kind is ArgumentKind.MODEL]
        self._data: Final = [n for n, (kind, _) in self._given if kind is ArgumentKind.DATA]
        self._stateful: Final = [self._every[place] for place in form.stateful]
        self._general: Final = f"general({'models, ' if self._implicit else ''}args, kwargs)"

    def lines(self) -> list[str]:
        """Return the lines of the functions."""
        form, names, values = self._form, self._names, _tuple(self._names)
        key = [_part(n, *kind) for n, kind in self._given if n not in self._data]
        if form.way is Way.JOINED:
            key += [f"{n}.requires_grad" for n in self._tensors]
        looks = [f"k_{n} = look_{n}({n})" for n in self._data]
        looks += [f"k_{n}, t_{n} = {n}.seen()" for n in self._models]
        conditions = _CONDITIONS if form.is_guarded else _CONDITIONS[:-1]
        return [
            f"def key({', '.join(self._every)}):",
            *(f"    {line}" for line in looks if " look_" not in line),
            f"    return {_tuple(key)}",
            f"def call({'models, ' if self._implicit else ''}args, kwargs):",
            f"    if not ({' and '.join(conditions)}):",
            f"        return {self._general}",
            "    try:",
            *([f"        {_tuple(self._implicit)} = models"] if self._implicit else []),
            f"        if kwargs or len(args) != {len(names)}:",
            f"            {values} = arrange(*args, **kwargs)",
            *(["        else:", f"            {values} = args"] if names else []),
            *(f"        {line}" for line in looks),
            *_indented(_indented(self._looked_up(_tuple(key)))),
            "    except (AttributeError, TypeError, ValueError, ArithmeticError, RuntimeError):",
            f"        return {self._general}",
            *_indented([*self._left(), "uses.hits += 1", *self._lent(), *self._called()]),
        ]

    @property
    def _tensors(self) -> list[str]:
        return [n for n, (kind, _) in self._given if kind is ArgumentKind.TENSOR]

    def _looked_up(self, key: str) -> list[str]:
        """Return the lines that find whether calls of the kind are known."""
        form = self._form
        if form.way is Way.JOINED:
            return [f"function = known.get({key})", "is_known = function is not None"]
        is_known = " and ".join([*(f"k_{n} is not None" for n in self._data), f"{key} in known"])
        scalars = (
            line
            for n, (kind, dtype) in self._given
            if kind is ArgumentKind.FLOAT and form.way is not Way.WHOLE
            for line in (
                f"if {n}.__class__ in numbers:",
                f"    {n} = scalar({n}, dtype=torch.{dtype}, device=device)",
            )
        )
        return [f"is_known = {is_known}", *scalars]

    def _left(self) -> list[str]:
        """Return the lines that leave calls of new kinds to the general path, and those that join
        torch's graph, or do not, to the function that is made for them."""
        form, lines = self._form, [f"if not is_known: return {self._general}"]
        asked = [self._grad(n, kind) for n, (kind, _) in self._given]
        grads = " or ".join(a for a in asked if a is not None)
        now = "records" if form.records else "is_recording()"
        if form.records:
            lines.append("records = is_recording()")
        other = self._general.replace("general", "otherwise")
        if form.way is Way.JOINED:
            lines.append(f"if not ({now} and ({grads})): return {other}")
        elif form.joins and grads:
            lines.append(f"if {now} and ({grads}): return {other}")
        return lines

    def _grad(self, name: str, kind: ArgumentKind) -> str | None:
        """Return the text that asks whether an argument may join torch's graph; None if it never
        does: the parameters of explicit models are in references."""
        match kind:
            case ArgumentKind.MODEL:
                return f"k_{name}.is_trainable" if name in self._implicit else None
            case ArgumentKind.TENSOR:
                return f"{name}.requires_grad"
            case ArgumentKind.DATA:
                return f"k_{name}.requires_grad"
            case ArgumentKind.NUMBER | ArgumentKind.FLOAT:
                return f"getattr({name}, 'requires_grad', False)"

    def _lent(self) -> list[str]:
        """Return the lines that make the values of host code."""
        lines = [f"if k_{n}.host is not None: {n} = k_{n}.host" for n in self._data]
        if self._form.is_optimized:
            given = f"{_tuple(self._implicit)}, {_tuple(self._names)}"
            return [*lines, f"host, done = borrowed({given})"]
        for n in self._models:
            lines.append(f"h_{n} = tree_{n}(t_{n})")
            if n in self._stateful:
                lines.append(f"c_{n} = [Cell(t) for t in t_{n}[count_{n}:]]")
                lines.append(f"s_{n} = states_{n}(c_{n})")
            if n not in self._implicit:
                lines += [f"l_{n} = h_{n}, ()", f"h_{n} = Cell(l_{n})"]
        if self._models and self._form.is_finished:
            lines.append(f"host = {_tuple(self._host)}")
        return lines

    @property
    def _host(self) -> list[str]:
        """The values of host code."""
        if self._form.is_optimized:
            return ["*host"]
        found: list[str] = []
        for n in self._every:
            if n not in self._models:
                found.append(n)
            elif n in self._implicit:
                found += [f"h_{n}", self._state(n)]
            else:
                found.append(f"(h_{n}, {self._state(n)})")
        return found

    def _state(self, name: str) -> str:
        return f"s_{name}" if name in self._stateful else f"no_state_{name}"

    def _returned(self) -> list[str]:
        """Return the lines that store updated parameters and state, which host code leaves in
        cells, in their models; to run them a second time changes nothing."""
        if self._form.is_optimized:
            return ["done()"]
        explicit = [n for n in self._models if n not in self._implicit]
        lent = [n for n in self._models if n in explicit or n in self._stateful]
        if not lent:
            return []
        cells = {n: f"c_{n}" if n in self._stateful else "()" for n in lent}
        taken = {n: f"h_{n}, l_{n}" if n in explicit else "None, None" for n in lent}
        back = f"given_back({_tuple([f'({n}, {cells[n]}, {taken[n]})' for n in lent])})"
        if self._stateful:
            return [back]
        return [f"if {' or '.join(f'h_{n}.value is not l_{n}' for n in lent)}: {back}"]

    def _finished(self) -> str:
        """Return the text of the arguments with which a result is finished: the host values that
        are no data, and the tensors of each that is."""
        form, names = self._form, self._names
        own = [*enumerate(zip(names, form.kinds[form.models :], strict=True), 2 * form.models)]
        kept = [(place, name) for place, (name, _) in own if name not in self._data]
        if not form.has_models:
            host = _tuple([name for _, name in kept])
        elif not self._data:
            host = "host"
        else:
            places = (*range(2 * form.models), *(place for place, _ in kept))
            host = _tuple([f"host[{place}]" for place in places])
        return ", ".join([host, *(f"k_{name}" for name in self._data)])

    def _called(self) -> list[str]:
        """Return the lines that call the function, and return its result."""
        form = self._form
        function = "whole.latest" if form.way is Way.WHOLE else "function"
        called = [f"result = {function}({', '.join(self._host)})"]
        back = self._returned()
        if back:
            called = ["try:", *_indented(called), "finally:", *_indented(back)]
        if form.way is Way.BARE:
            called = ["with unwatched():", *_indented(called)]
        off = ["if records:", "    record(False)"] if form.records else []
        on = ["finally:", "    if records:", "        record(True)"] if form.records else []
        # An interrupt may have come before the first time was over.
        again = ["except KeyboardInterrupt:", *_indented(back), "    raise"] if back else []
        result = f"finish(result, {self._finished()})" if form.is_finished else "result"
        result = f"made({result}, models)" if form.is_made else result
        return [
            "try:",
            *_indented([*off, *called, f"return {result}"]),
            *again,
            "except Exception as error:",
            f"    if not are_dense({_tuple(self._names)}):",
            f"        return {self._general}",
            "    if isinstance(error, RunError):",
            "        raise",
            "    raise located(error) from None",
            *on,
        ]


def _indented(lines: Sequence[str]) -> list[str]:
    return indent("\n".join(lines), "    ").splitlines()


def _tuple(names: Sequence[str]) -> str:
    return f"({''.join(f'{n}, ' for n in names)})"


def _part(name: str, kind: ArgumentKind, dtype: str) -> str:
    """Return the text of what selects a call of an argument. An integer that its dtype does not
    have raises AttributeError there, as what is no tensor does."""
    if kind is ArgumentKind.MODEL:
        return f"k_{name}"
    tensor = f"{name}.dtype, {name}.shape, {name}.device"
    if kind is ArgumentKind.TENSOR:
        return tensor
    is_number = f"{name}.__class__ in numbers"
    if kind is ArgumentKind.NUMBER and dtype != "bool":
        info = torch.iinfo(getattr(torch, dtype))
        is_number = f"{is_number} and {info.min} <= {name} <= {info.max}"
    return f"{name}.__class__ if {is_number} else ({tensor})"
