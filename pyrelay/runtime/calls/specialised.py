"""Functions with some of their arguments fixed: `relay.specialise(f, n=3)`.

A tensor that is not copied into the program stays an argument of it, one that the function passes
at each call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from ...diagnostics.catalogue.call import WrongCall
from ...diagnostics.catalogue.specialise import NameOfOption, NoSuchParameter, NotFixed
from ...diagnostics.diagnostic import CheckError, Report, RunError
from ...diagnostics.source import Span
from ...ir.expr import Constant, Differentiation, Rule, Var, type_of
from ...ir.module import Module
from ...ir.transforms import Options
from ...ir.types import ITERABLE, RefType, Type, subtypes
from ...prelude.values import List
from ...translate.program.derived import derived_signature
from ...translate.program.guards import UNGUARDED, Check
from ...translate.program.signature import Parameter as Declared
from ...translate.source.definition import (
    Definition,
    DefinitionKind,
    DerivedFunction,
    bottom,
    function_of,
)
from ...translate.source.residual import Residual
from ...translate.source.unions import is_data_class
from ...translate.types.number_places import Numbers
from ..border.places import Parameter
from ..compile.derived import derive
from ..compile.inspected import Inspected
from ..compile.program import Program
from ..entries.entry import Entry
from ..values.constant import constant_of
from ..values.representation import Instances, UserData
from ..values.structure import parts
from .direct import Around, Call, Directs, Uses
from .parameters import signature_of
from .programs import translated
from .specialised_of_models import SpecialisedOfModels
from .specialising import residual_at, residual_program

if TYPE_CHECKING:
    import torch


@final
class Specialised(Inspected):
    """A relay function without the parameters that are fixed."""

    def __init__(
        self,
        name: str,
        module: Module,
        entry: str,
        data: UserData,
        tensors: tuple[torch.Tensor, ...],
        numbers: Numbers = None,
        *,
        joins: bool = True,
    ) -> None:
        """`tensors` are the arguments for the last parameters of the entry; `numbers` says where
        numbers are Python's own in the result; `joins` that calls join torch's graph."""
        self.__name__: str = name
        self._given: Final = module
        self._entry_name: Final = entry
        self.data: Final = data
        self._tensors: Final = tensors
        self._numbers: Final = numbers
        self._joins: Final = joins
        self._transforms: Final[dict[tuple[Rule, Options, tuple[str, ...]], Specialised]] = {}
        self._uses: Final = Uses()
        self._latest: Call = self._general
        """Runs the function: by a direct call, where there is one."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compile at the first call, and run. Raises CheckError and RunError."""
        return self._latest(args, kwargs)

    def _general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the function; calls like this one are direct from now on, if they can be."""
        values = self._values(args, kwargs)
        result = self._entry(values)
        around = Around(self._arrange, UNGUARDED, self._uses, self._general)
        self._latest = self._directs.call_like(values, around) or self._latest
        return result

    @cached_property
    def _directs(self) -> Directs:
        return Directs(self._entry)

    def _arrange(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        return self._values(args, kwargs)

    def interpret(self, *args: Any, **kwargs: Any) -> Any:
        """Run in the reference evaluator instead of compiled code."""
        return self._entry.interpret(self._values(args, kwargs))

    def __repr__(self) -> str:
        return f"<relay function {self.__name__}>"

    def __str__(self) -> str:
        return self.show("typed")

    def check(self) -> Report:
        """Check the function and everything it reaches. Raises CheckError."""
        _ = self.program.derived
        return Report(self.program.warnings)

    @property
    def source_text(self) -> str:
        """The text of the function and everything it reaches."""
        return str(self._given)

    @cached_property
    def __relay__(self) -> Residual:
        """The function as programs see it that mention it."""
        fixed = tuple(None if t.requires_grad else constant_of(t) for t in self._tensors)
        return residual_of(self.__name__, self._given, self._entry_name, self.data, fixed)

    @cached_property
    def program(self) -> Program:
        """The program of the function."""
        return Program(self._given, self._entry_name, self.data)

    @cached_property
    def _entry(self) -> Entry:
        program = self.program
        parameters = tuple(Parameter(p.name, type_of(p), p.span) for p in program.function.params)
        return Entry(self.__name__, program, parameters, self._numbers, joins=self._joins)

    @property
    def _params(self) -> tuple[Var, ...]:
        """The parameters that a call passes."""
        params = self._given.functions[self._entry_name].params
        return params[: len(params) - len(self._tensors)]

    @cached_property
    def __signature__(self) -> inspect.Signature:
        return signature_by_names(self._params)

    def _values(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        try:
            bound = self.__signature__.bind(*args, **kwargs)
        except TypeError as error:
            head = self._given.functions[self._entry_name].span
            raise RunError(WrongCall(self.__name__, head, str(error))) from None
        return (*bound.args, *self._tensors)

    def with_fixed(self, static: Mapping[str, Any], *, fast_math: bool | None) -> Specialised:
        """Return the function with further arguments fixed. Raises CheckError and RunError."""
        return with_fixed(self.__name__, self.program, static, self._tensors, fast_math=fast_math)

    def transformed(
        self, rule: Rule, options: Options, wrt: tuple[str, ...] | None = None
    ) -> Specialised:
        """Return a transform of the function, such as its gradient in the parameters `wrt`, the
        same object each time. Raises CheckError for a name that is no parameter."""
        params = self._params
        names = [p.name for p in params]
        for name in wrt or ():
            if name not in names:
                head = self._given.functions[self._entry_name].span
                raise CheckError(NoSuchParameter(head, self.__name__, name, tuple(names)))
        if wrt is not None:
            options = replace(options, wrt=tuple(map(names.index, wrt)))
        return self._made((rule, options, ()))

    def under_policy(self, rule: Rule, policy: tuple[str, ...]) -> Specialised:
        """Return the function under `checkpoint` or `autocast`, the same object each time."""
        return self._made((rule, Differentiation(), policy))

    def _made(self, how: tuple[Rule, Options, tuple[str, ...]]) -> Specialised:
        if how not in self._transforms:
            fixed = len(self._tensors)
            module, entry = derive(self._given, self._entry_name, *how, fixed=fixed)
            joins = how[0] is not Rule.VJP
            self._transforms[how] = Specialised(
                entry, module, entry, self.data, self._tensors, joins=joins
            )
        return self._transforms[how]


Made: TypeAlias = tuple[Callable[[], bool], Specialised | SpecialisedOfModels]
"""A function with some arguments fixed, and the check that the names which it captured are what
they were."""

Known: TypeAlias = dict[tuple[Any, ...], Made]
"""The specialised forms of one function, by the arguments that are fixed."""

_MOST_KNOWN: Final = 64
_MOST_PARTS: Final = 10_000


def specialise(
    function: Definition | DerivedFunction,
    static: Mapping[str, Any],
    known: Known,
    *,
    fast_math: bool | None,
) -> Specialised | SpecialisedOfModels:
    """Return a function with some arguments fixed, partially evaluated: the same object each time
    that numbers, texts, functions and data of these are fixed. Raises CheckError and RunError."""
    key = _key(static)
    if key is None:
        return _specialise(function, static, fast_math)[1]
    key = (fast_math, *key)
    found = known.get(key)
    if found is None or not found[0]():
        if len(known) >= _MOST_KNOWN:
            del known[next(iter(known))]
        found = known[key] = _specialise(function, static, fast_math)
    return found[1]


def with_fixed(
    name: str,
    program: Program,
    static: Mapping[str, Any],
    tensors: tuple[torch.Tensor, ...] = (),
    *,
    fast_math: bool | None,
) -> Specialised:
    """Return the function of a program with some arguments fixed, partially evaluated. `tensors`
    are the arguments for its last parameters. Raises CheckError and RunError."""
    params = program.function.params
    places = {p.name: place for place, p in enumerate(params[: len(params) - len(tensors)])}
    _expect_names(name, program.function.span, tuple(places), static, fast_math)
    for parameter in params:
        if parameter.name in static and _changes(type_of(parameter)):
            raise CheckError(NotFixed(parameter.span, name, parameter.name, _CONTENT))
    values = {places[n]: value for n, value in static.items()}
    values |= dict(enumerate(tensors, len(places)))
    parameters = [Parameter(p.name, type_of(p), p.span) for p in params]
    left = residual_at(name, program, parameters, values, fast_math=bool(fast_math))
    module, entry, data, kept = left
    return Specialised(name, module, entry, data, tuple(kept.values()))


def residual_of(
    name: str,
    module: Module,
    entry: str,
    data: UserData,
    fixed: tuple[Constant | None, ...] = (),
) -> Residual:
    """Return a function with a program of its own as programs see it that mention it."""
    known = data.representations.items()
    forms = {n: r for n, r in known if isinstance(r, Instances) and n in module.adts}
    classes = {n: r.classes for n, r in forms.items() if not r.of_text}
    made = {n: tuple(zip(r.classes, r.names, strict=True)) for n, r in forms.items() if r.of_text}
    return Residual(name, module, entry, classes, fixed, made)


def signature_by_names(params: Sequence[Var]) -> inspect.Signature:
    """Return the signature of a call that passes parameters, by name if all names are Python's."""
    names = [p.name if p.name.isidentifier() else f"p{i}" for i, p in enumerate(params)]
    has_names = all(p.name.isidentifier() for p in params)
    kinds = inspect.Parameter
    kind = kinds.POSITIONAL_OR_KEYWORD if has_names else kinds.POSITIONAL_ONLY
    return inspect.Signature([inspect.Parameter(name, kind) for name in names])


def _key(static: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Return the parts of values; None where one has a part that can change, as tensors can, or
    very many parts."""
    found: list[Any] = [*static]
    pending: list[Any] = list(static.values())[::-1]
    while pending:
        value = pending.pop()
        inside = parts(value)
        if len(found) > _MOST_PARTS:
            return None
        if inside or isinstance(value, tuple | list | List) or is_data_class(type(value)):
            found += (type(value), len(inside))
            pending += reversed(inside)
        elif type(value) is float:  # 0.0 is -0.0, and not-a-number no number
            found += (float, value.hex())
        elif value is None or type(value) in (bool, int, str):
            found += (type(value), value)
        elif (passed := function_of(value)) is not None:
            found.append(passed)
        else:
            return None
    return tuple(found)


def _specialise(
    function: Definition | DerivedFunction, static: Mapping[str, Any], fast_math: bool | None
) -> Made:
    definition = bottom(function)
    if definition.kind is DefinitionKind.MODEL:
        why = "is a model; specialise a function that calls it"
        raise CheckError(NotFixed(definition.source.head, function.name, "", why))
    declared = derived_signature(function, signature_of(definition))
    names = [p.name for p in declared.parameters]
    _expect_names(function.name, definition.source.head, names, static, fast_math)
    for parameter in declared.parameters:
        if parameter.name in static:
            _expect_fixable(function.name, parameter)
    known = {p.name for p in declared.statics}
    parts = {n: function_of(v) for n, v in static.items()}
    inside: dict[str, Any] = {n: f for n, f in parts.items() if f is not None}
    inside |= {n: v for n, v in static.items() if n in known}
    values = {n: v for n, v in static.items() if n not in inside}
    is_fast = bool(fast_math)
    if any(p.of is not None for p in declared.parameters):
        return UNGUARDED, SpecialisedOfModels(function, inside, values, fast_math=is_fast)
    translation = translated(function, inside, [], [])
    if translation.implicit:
        return UNGUARDED, SpecialisedOfModels(function, inside, values, fast_math=is_fast)
    left = residual_program(function.name, translation, values, fast_math=is_fast)
    module, entry, data, tensors = left
    numbers = translation.numbers.result
    made = Specialised(function.name, module, entry, data, tuple(tensors.values()), numbers)
    return Check(translation.guards), made


def _expect_names(
    function: str,
    head: Span,
    names: Sequence[str],
    static: Mapping[str, Any],
    fast_math: bool | None,
) -> None:
    """Stop at a name that no parameter has, and at an option that could be a parameter. Raises
    CheckError."""
    for name in static:
        if name not in names:
            raise CheckError(NoSuchParameter(head, function, name, tuple(names)))
    if fast_math is not None and "fast_math" in names:
        raise CheckError(NameOfOption(head, function, "fast_math"))


def _expect_fixable(function: str, parameter: Declared) -> None:
    """Stop at a parameter that cannot be fixed. Raises CheckError."""
    if parameter.of is not None:
        why = "is a model, whose parameters change with each update"
        raise CheckError(NotFixed(parameter.span, function, parameter.name, why))
    if parameter.static is None and _changes(parameter.ty):
        raise CheckError(NotFixed(parameter.span, function, parameter.name, _CONTENT))


_CONTENT: Final = "is a reference or a stream, whose content changes from call to call"


def _changes(ty: Type) -> bool:
    return any(isinstance(part, RefType) or part == ITERABLE for part in subtypes(ty))
