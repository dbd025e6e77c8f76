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
    "overriding() is override",
    "gettrace() is None",
    "inserted.all is steps",
    "registry.table is table",
    "forward_ad._current_level < 0",
)
"""The state that must be unchanged: the options, what is registered, the modes of torch."""

_UNFIT: Final = "ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError"
"""What arguments of other kinds raise where they are looked at."""

_UNTOUCHED: Final = "(untouched(probe) or not (casts() or is_watched()))"
"""That torch does nothing with calls, which a comparison of tensors says too."""

FIELDS: Final = "check, joins, run, settled, tries, "
"""The first parts of what is known of calls that are alike: the comparison with their tensors,
whether one of these requires a gradient, the function that does such a call, that for tensors like
those compared with, and how often this one is still to be looked for. Behind them are, argument by
argument, the tree and the mode of a model, and the class of a number."""

CHECK, SETTLED, TRIES = (FIELDS.split(", ").index(n) for n in ("check", "settled", "tries"))


class ArgumentKind(Enum):
    """The arguments that a parameter takes: a model, a tensor, or a number too, which may have to
    become a tensor; an instance of a class with nothing but tensors in it; or other data, which are
    looked at."""

    MODEL = "model"
    TENSOR = "tensor"
    NUMBER = "number"
    FLOAT = "float"
    RECORD = "record"
    DATA = "data"


_COMPARED: Final = (ArgumentKind.MODEL, ArgumentKind.TENSOR, ArgumentKind.RECORD)
_DATA: Final = (ArgumentKind.DATA, ArgumentKind.RECORD)


class Way(Enum):
    """How a function is called: as host code, as host code of which autograd need not know, by a
    backend that runs it whole, which torch does not see, or as a node of torch's graph."""

    HOST = "host"
    BARE = "bare"
    WHOLE = "whole"
    JOINED = "joined"


def kind_of(parameter: Parameter, tensors: int | None) -> tuple[ArgumentKind, str]:
    """Return the kind of the arguments of a parameter, and the name of their dtype; of records how
    many `tensors` they have."""
    ty = parameter.type
    if parameter.is_model:
        return ArgumentKind.MODEL, ""
    if not isinstance(ty, TensorType):
        return (ArgumentKind.DATA, "") if tensors is None else (ArgumentKind.RECORD, f"{tensors}")
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
    def is_compared(self) -> bool:
        """Whether there are tensors to compare with those of the call before."""
        return any(kind in _COMPARED for kind, _ in self.kinds)

    @property
    def may_settle(self) -> bool:
        """Whether a function for tensors like those of the call before may look at none of them:
        where all is decided by tensors that are compared."""
        others = (ArgumentKind.NUMBER, ArgumentKind.DATA)
        if self.way is Way.WHOLE or self.is_optimized or not self.is_compared:
            return False
        return not any(kind in others for kind, _ in self.kinds)

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
        self._data: Final = [n for n, (kind, _) in self._given if kind in _DATA]
        self._stateful: Final = [self._every[place] for place in form.stateful]
        self._general: Final = f"general({'models, ' if self._implicit else ''}args, kwargs)"

    def lines(self) -> list[str]:
        """Return the lines of the functions."""
        form, names, values = self._form, self._names, _tuple(self._names)
        conditions = [*_CONDITIONS, *(() if form.is_compared else (_UNTOUCHED,))]
        key = [_part(n, *k) for n, k in self._given if k[0] is not ArgumentKind.DATA]
        if form.is_guarded:
            conditions.append("(same() or guards_hold())")
        return [
            f"def key({', '.join(self._every)}):",
            *(f"    k_{n}, t_{n} = {n}.seen()" for n in self._models),
            f"    return {_tuple(key)}",
            f"def call({'models, ' if self._implicit else ''}args, kwargs):",
            *(["    global latest"] if form.is_compared else []),
            "    try:",
            f"        if not ({' and '.join(conditions)}):",
            f"            return {self._general}",
            *([f"        {_tuple(self._implicit)} = models"] if self._implicit else []),
            f"        if kwargs or len(args) != {len(names)}:",
            f"            {values} = arrange(*args, **kwargs)",
            *(["        else:", f"            {values} = args"] if names else []),
            *_indented(_indented([*self._looked_up(), *self._looked_at()])),
            f"    except ({_UNFIT}):",
            f"        return {self._general}",
            *_indented([*self._left(), "uses.hits += 1", *self._lent(), *self._called()]),
        ]

    def _looked_up(self) -> list[str]:
        """Return the lines that find what is known of calls like this one."""
        key = f"key({', '.join(self._every)})"
        other = [f"if like is None: return {self._general}", f"{self._fields} = like"]
        if not self._form.is_compared:
            return [f"like = known.get({key})", *other]
        records = [n for n, (kind, _) in self._given if kind is ArgumentKind.RECORD]
        own = {n: f"*t_{n}" for n in self._models} | {n: f"*k_{n}.given" for n in records}
        tensors = [own.get(n, n) for n, (kind, _) in self._given if kind in _COMPARED]
        same = [same for n, kind in self._given for same in _same(n, *kind)]
        same.append(f"check({', '.join(tensors)})")
        return [
            *(f"d_{n} = {n}.__dict__" for n in self._models),
            *(f"t_{n} = d_{n}['blueprint'].read(d_{n}['tables'])" for n in self._models),
            *(f"k_{n} = before_{n}({n}) or look_{n}({n})" for n in records),
            "like = latest",
            f"{self._fields} = like",
            f"if not ({' and '.join(same)}):",
            *(f"    k_{n} = look_{n}({n})" for n in records),
            f"    like = other(like, {key}, ({', '.join([*tensors, ''])}))",
            *_indented(other),
            "    latest = like",
            "    settled = None",
        ]

    @property
    def _fields(self) -> str:
        """The names of what is known of calls."""
        own = {ArgumentKind.MODEL: "b_{0}, m_{0}, ", ArgumentKind.NUMBER: "c_{0}, "}
        own[ArgumentKind.FLOAT] = own[ArgumentKind.NUMBER]
        return FIELDS + "".join(own.get(kind, "").format(n) for n, (kind, _) in self._given)

    def _looked_at(self) -> list[str]:
        """Return the lines that look at data, and make tensors of numbers."""
        lines: list[str] = []
        for n, (kind, dtype) in self._given:
            if kind is ArgumentKind.DATA:
                lines += [f"k_{n} = look_{n}({n})", f"if k_{n} is None: return {self._general}"]
            if kind is ArgumentKind.FLOAT and self._form.way is not Way.WHOLE:
                lines.append(f"if {n}.__class__ in numbers:")
                lines.append(f"    {n} = scalar({n}, dtype=torch.{dtype}, device=device)")
        return lines

    def _left(self) -> list[str]:
        """Return the lines that leave calls that join torch's graph, or do not, to the function
        that is made for them."""
        form, lines = self._form, list[str]()
        joins = " or ".join(["joins", *(f"k_{n}.requires_grad" for n in self._data)])
        other = self._general.replace("general", "otherwise")
        if form.way is Way.JOINED:
            lines.append(f"if not (joins and is_recording()): return {other}")
        elif form.joins:
            lines.append(f"if ({joins}) and is_recording(): return {other}")
        if form.records:
            may_record = "settled is None and " if form.may_settle else ""
            lines.append(f"records = {may_record}is_recording()")
        return lines

    def _lent(self) -> list[str]:
        """Return the lines that make the values of host code."""
        lines = [f"if k_{n}.host is not None: {n} = k_{n}.host" for n in self._data]
        if self._form.is_optimized:
            given = f"{_tuple(self._implicit)}, {_tuple(self._names)}"
            return [*lines, f"host, done = borrowed({given})", *self._kept()]
        for n in self._models:
            lines.append(f"h_{n} = tree_{n}(t_{n})")
            if n in self._stateful:
                lines.append(f"c_{n} = [Cell(t) for t in t_{n}[count_{n}:]]")
                lines.append(f"s_{n} = states_{n}(c_{n})")
            if n not in self._implicit:
                lines += [f"l_{n} = h_{n}, ()", f"h_{n} = Cell(l_{n})"]
        return [*lines, *self._kept()]

    def _kept(self) -> list[str]:
        """Return the line that keeps what is in the cells of models before the call, where results
        may be parameters."""
        if not self._models or not self._form.is_finished:
            return []
        has_cells = len(self._implicit) < len(self._models) or self._stateful
        kept = _tuple(self._host)
        return [f"kept = lent({kept})" if has_cells else f"kept = {kept}"]

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
        are no data, what is in the cells of models after the call, and the tensors of data."""
        form, names = self._form, self._names
        own = [*enumerate(zip(names, form.kinds[form.models :], strict=True), 2 * form.models)]
        kept = [(place, name) for place, (name, _) in own if name not in self._data]
        cells = [(place, name) for place, name in kept if name in self._models]
        after = [f"host[{place}]" if form.is_optimized else f"h_{name}" for place, name in cells]
        if not form.has_models:
            host = _tuple([name for _, name in kept])
        else:
            places = (*range(2 * form.models), *(place for place, _ in kept))
            before = [f"kept[{place}]" for place in places] if self._data else ["*kept"]
            host = _tuple([*before, *([f"*lent({_tuple(after)})"] if after else [])])
        return ", ".join([host, *(f"k_{name}" for name in self._data)])

    def _called(self) -> list[str]:
        """Return the lines that call the function, and return its result."""
        form = self._form
        function = "whole.latest" if form.way is Way.WHOLE else "run"
        called = [f"result = {function}({', '.join(self._host)})"]
        if form.way is Way.BARE:
            called = ["with unwatched():", *_indented(called)]
        if form.may_settle:
            called = [
                "if settled is not None:",
                f"    result = settled({', '.join(self._host)})",
                "else:",
                f"    if tries: settle(like, {_tuple(self._host)})",
                *_indented(called),
            ]
        if form.is_finished:  # before the parameters change that it may be
            called.append(f"result = finish(result, {self._finished()})")
        back = self._returned()
        if back:
            called = ["try:", *_indented(called), "finally:", *_indented(back)]
        off = ["if records:", "    record(False)"] if form.records else []
        on = ["finally:", "    if records:", "        record(True)"] if form.records else []
        # An interrupt may have come before the first time was over.
        again = ["except KeyboardInterrupt:", *_indented(back), "    raise"] if back else []
        result = "made(result, models)" if form.is_made else "result"
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
    if kind is ArgumentKind.RECORD:
        return f"look_{name}({name}).requires_grad"
    tensor = f"{name}.dtype, {name}.shape, {name}.device, {name}.requires_grad"
    if kind is ArgumentKind.TENSOR:
        return tensor
    return f"{name}.__class__ if {_is_number(name, kind, dtype)} else ({tensor})"


def _is_number(name: str, kind: ArgumentKind, dtype: str) -> str:
    is_number = f"{name}.__class__ in numbers"
    if kind is ArgumentKind.FLOAT or dtype == "bool":
        return is_number
    info = torch.iinfo(getattr(torch, dtype))
    return f"{is_number} and {info.min} <= {name} <= {info.max}"


def _same(name: str, kind: ArgumentKind, dtype: str) -> list[str]:
    """Return the conditions under which an argument that is no tensor is as in the call before."""
    match kind:
        case ArgumentKind.MODEL:
            return [f"d_{name}['blueprint'] is b_{name}", f"d_{name}['training'] is m_{name}"]
        case ArgumentKind.RECORD:
            return [f"len(k_{name}.given) == {dtype}"]
        case ArgumentKind.NUMBER | ArgumentKind.FLOAT:
            return [f"{name}.__class__ is c_{name}", _is_number(name, kind, dtype)]
        case ArgumentKind.TENSOR | ArgumentKind.DATA:
            return []
