"""The parameters of a relay function: how the arguments of a call become those of a program."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast, final

from ...diagnostics.catalogue.call import WrongArgument, WrongCall
from ...diagnostics.diagnostic import Problem, RunError
from ...ir.expr import Batching, Rule
from ...ir.transforms import Axes
from ...ir.types import FnType, TensorType, TupleType, Type
from ...prelude.values import List
from ...translate.data.data import DataTypes
from ...translate.program.derived import derived_signature, without
from ...translate.program.signature import Parameter, Signature, read_signature
from ...translate.source.definition import (
    POLICIES,
    Definition,
    DefinitionKind,
    DerivedFunction,
    InPlace,
    LeftOut,
    PassedFunction,
    PassedTuple,
    bottom,
    function_of,
)
from ...translate.source.definition import signature_of as called_as
from ...translate.source.optimizers import OptimizerUse
from ...translate.source.scope import MISSING, Scope
from ..models.model import Model
from ..models.model_io import Arguments, Models
from ..models.optim import Optimizer
from ..values.text import describe
from .fixing import Fixing
from .made import made_by

if TYPE_CHECKING:
    import torch


Arrange: TypeAlias = Callable[..., tuple[Any, ...]]
"""From the arguments of a call to the values of all parameters, in order. It raises TypeError for
arguments that do not fit."""


@final
class Parameters:
    """The parameters of one definition, or of what a transform makes of it."""

    def __init__(
        self, function: Definition | DerivedFunction, fixing: Fixing | None = None
    ) -> None:
        self._function: Final = function
        self._fixing: Final = fixing
        self._definition: Final = bottom(function)

    @cached_property
    def declared(self) -> Signature:
        """The parameters as they are annotated."""
        whole = derived_signature(self._function, signature_of(self._definition))
        return whole if self._fixing is None else self._fixing.left(whole)

    @cached_property
    def statics(self) -> Mapping[str, bool]:
        """The names of the static parameters, and whether each is an optimiser."""
        return {p.name: p.static is OptimizerUse for p in self.declared.statics}

    def bind(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, is_transform: bool = False
    ) -> Arguments:
        """Return the arguments of a call as the values and static arguments of a program, which is
        that of the function or a transform of it. Raises RunError where they are not what the
        function takes."""
        found = self._bound(args, kwargs, is_transform)
        if self._fixing is not None:
            statics = (*found.statics, *self._fixing.statics.items())
            found = found._replace(statics=statics)
        if self._lists:
            values = [_models(v) if i in self._lists else v for i, v in enumerate(found.values)]
            found = found._replace(values=tuple(values))
        return self._specialised(found, is_transform) if self._places else found

    def _bound(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], is_transform: bool
    ) -> Arguments:
        if self.arrange is not None:
            try:
                return Arguments(self.arrange(*args, **kwargs))
            except TypeError:  # what is wrong, or an implicit value, is found below
                pass
        implicit = {n: v for n, v in kwargs.items() if n not in self._signature.parameters}
        own = {n: v for n, v in kwargs.items() if n not in implicit}
        try:
            bound = self._signature.bind(*args, **own)
        except TypeError as error:
            head = self._definition.source.head
            name, instead = self._definition.name, None
            if not args and not kwargs and self._definition.kind is DefinitionKind.MODEL:
                instead = f"what makes a model takes the definition: `relay.create_model({name})`"
            elif is_transform and not args:
                instead = "the arguments are a tuple: `relay.grad(model, loss, (x, y))`"
            elif args and hasattr(args[0], "blueprint"):
                instead = f"the model is no argument of `{name}`: write `model.bind({name})(...)`"
            raise RunError(WrongCall(name, head, str(error), instead)) from None
        left_out = self._with_defaults - bound.arguments.keys()
        bound.apply_defaults()
        names = self.statics
        values = tuple(
            LeftOut() if n in left_out else v for n, v in bound.arguments.items() if n not in names
        )
        values += self._tensors
        if self._definition.kind is DefinitionKind.MODEL:
            return Arguments(values, implicit=implicit)
        given = {n: bound.arguments[n] for n in names}
        optimizers = {n: self._optimizer(n, given[n]) for n, kind in names.items() if kind}
        given |= {n: OptimizerUse(o.rule, n, o.lr) for n, o in optimizers.items()}
        return Arguments(values, tuple(given.items()), optimizers, implicit=implicit)

    def apart(self, given: Any) -> tuple[Any, ...]:
        """Return the arguments that stand in one value: a tuple, or a list, as the batches of a
        DataLoader are. For a single parameter that is no tensor a list is its argument."""
        if isinstance(given, tuple):
            return given
        values = self.declared.values
        is_whole = len(values) == 1 and not isinstance(values[0].ty, TensorType)
        return (given,) if is_whole or not isinstance(given, list) else tuple(given)

    def taken(self, known: Container[str]) -> Sequence[Parameter]:
        """Return the parameters whose values a program takes in which those in `known` are."""
        function, base = self._function, signature_of(self._definition)
        if self._fixing is not None or isinstance(function, Definition):
            return [p for p in self.declared.values if p.name not in known]
        left = replace(base, parameters=tuple(p for p in base.parameters if p.name not in known))
        return derived_signature(without(function, base, known), left).values

    def _specialised(self, args: Arguments, is_transform: bool) -> Arguments:
        """Let the relay functions among the arguments be part of the program, not passed to it; of
        a transform also those that a call has made, and the defaults of what is left out."""
        known: dict[str, InPlace] = {}
        implicit = dict(args.implicit)
        values = self._filled(args.values)
        paths: set[tuple[int, ...]] = set()
        for path, parameter in self._places.items():
            name, value = parameter.name, _at(values, path)
            function = function_of(value)
            made = made_by(value) if is_transform else None
            if isinstance(value, LeftOut):
                known[name] = value
            elif isinstance(parameter.ty, TupleType):
                if is_transform and self._is_constant(parameter):
                    packed = _packed(value, parameter.ty, name, implicit)
                    known |= {} if packed is None else {name: packed}
            elif not isinstance(parameter.ty, FnType):
                continue
            elif function is not None:
                known[name] = function
            elif made is not None:
                known[name] = made.function
                implicit.update((f"{name}.{n}", v) for n, v in made.values.items())
            if name in known:
                paths.add(path)
        statics = (*args.statics, *known.items())
        return args._replace(
            values=_without_paths(values, paths), statics=statics, implicit=implicit
        )

    def _filled(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return values in which the tuple of arguments, in forward mode, has all of them."""
        if not self._depth or not values or not isinstance(values[0], tuple | list):
            return values
        return (self._completed(tuple(cast("Sequence[Any]", values[0])), self._depth), *values[1:])

    def _completed(self, primals: tuple[Any, ...], depth: int) -> tuple[Any, ...]:
        if depth > 1:
            inside = primals[0] if primals else None
            if not isinstance(inside, tuple | list):
                return primals
            found = self._completed(tuple(cast("Sequence[Any]", inside)), depth - 1)
            return (found, *primals[1:])
        missing = self._own[len(primals) :]
        if any(p.default is MISSING for p in missing):
            return primals
        return (*primals, *(p.default if p.name in self._moved else LeftOut() for p in missing))

    @cached_property
    def _layers(self) -> Sequence[DerivedFunction]:
        """The transforms that the function is made by, the last one first."""
        found: list[DerivedFunction] = []
        function = self._function
        while isinstance(function, DerivedFunction):
            found.append(function)
            function = function.base
        return found

    @cached_property
    def _depth(self) -> int:
        """How many tuples of arguments are around those of the function that is transformed."""
        return sum(layer.rule.takes_tangents for layer in self._layers)

    @cached_property
    def batches(self) -> Mapping[str, Sequence[Axes]]:
        """The axes of the parameters that are values side by side, outermost first."""
        own, found = self._own, dict[str, list[Axes]]()
        for layer in self._layers if not self._depth else ():
            if isinstance(layer.options, Batching) and layer.options.fits(len(own)):
                for parameter, axes in zip(own, layer.options.axes(len(own)), strict=True):
                    found.setdefault(parameter.name, []).append(axes)
        return found

    @cached_property
    def _moved(self) -> frozenset[str]:
        """The parameters that transforms name."""
        return frozenset(n for layer in self._layers for n in layer.wrt or ())

    @cached_property
    def _own(self) -> Sequence[Parameter]:
        """The parameters of the values, of the function that is transformed in forward mode."""
        return signature_of(self._definition).explicit if self._depth else self.declared.values

    @cached_property
    def _places(self) -> Mapping[tuple[int, ...], Parameter]:
        """The parameters that may be part of the program, by where their values are."""
        around = (0,) * self._depth
        optional = self._with_defaults
        return {
            (*around, i): p
            for i, p in enumerate(self._own)
            if has_functions(p.ty) or p.name in optional
        }

    def _is_constant(self, parameter: Parameter) -> bool:
        """Return whether no transform differentiates or maps over a parameter."""
        own = self._own
        for layer in self._layers:
            options = layer.options
            if isinstance(options, Batching):
                if self._depth or not options.fits(len(own)):
                    return False
                axes = dict(zip((p.name for p in own), options.axes(len(own)), strict=True))
                if axes[parameter.name] is not None:
                    return False
            elif layer.rule not in POLICIES and parameter.name in (layer.wrt or (parameter.name,)):
                return False
        return True

    @cached_property
    def _with_defaults(self) -> frozenset[str]:
        """The parameters that are part of the program where a call leaves them out: what has a
        default is the same for all elements of a batch, and does not move in forward mode."""
        if not self._depth and all(layer.rule is not Rule.VMAP for layer in self._layers):
            return frozenset()
        return frozenset(p.name for p in self._own if p.default is not MISSING)

    @cached_property
    def _lists(self) -> frozenset[int]:
        """The parameters that are lists of models, by index among the values."""
        return frozenset(i for i, p in enumerate(self.declared.values) if p.is_list)

    def _optimizer(self, name: str, value: Any) -> Optimizer:
        if isinstance(value, Optimizer):
            return value
        declared = self.declared.parameters[self._names.index(name)].span
        way = "make one: `relay.optim.adam(lr=1e-3)`; those of torch update models in scripts"
        is_torchs = type(value).__module__.startswith("torch.optim")
        actual = f"torch's {type(value).__name__}" if is_torchs else describe(value)
        wanted = "an optimiser of relay.optim"
        raise RunError(WrongArgument(self._definition.name, name, declared, wanted, actual, way))

    @cached_property
    def _signature(self) -> inspect.Signature:
        """The parameters that a call passes: an instance of a model has its static ones already."""
        whole = called_as(self._function)
        if self._fixing is not None:
            left = (p for n, p in whole.parameters.items() if not self._fixing.has(n))
            return whole.replace(parameters=[*left])
        if self._definition.kind is not DefinitionKind.MODEL:
            return whole
        kept = [p for n, p in whole.parameters.items() if n not in self.statics]
        return whole.replace(parameters=kept)

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(self._signature.parameters)

    @cached_property
    def arrange(self) -> Arrange | None:
        """The function that arranges the arguments of a call, if all of them are values, which may
        be passed by position and by name alike; else None."""
        parameters = tuple(self._signature.parameters.values())
        is_plain = all(p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for p in parameters)
        if self.statics or not is_plain or (self._with_defaults and not self._depth):
            return None
        defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
        listed = ", ".join(f"{n}=defaults[{n!r}]" if n in defaults else n for n in self._names)
        values = "".join(f"{name}, " for name in (*self._names, *_given(self._tensors)))
        given = dict(zip(_given(self._tensors), self._tensors, strict=True))
        return eval(f"lambda {listed}: ({values})", {"defaults": defaults, **given})

    @property
    def _tensors(self) -> tuple[torch.Tensor, ...]:
        """The fixed tensors that a program takes with the values of each call."""
        return () if self._fixing is None else self._fixing.tensors


def has_functions(ty: Type) -> bool:
    """Return whether a type is that of a function, or a tuple with one."""
    return isinstance(ty, FnType) or (
        isinstance(ty, TupleType) and any(map(has_functions, ty.fields))
    )


def _packed(value: Any, ty: TupleType, name: str, values: dict[str, Any]) -> PassedTuple | None:
    """Return a tuple with functions as part of the program, which takes the values in it by names;
    None if a function in it is no relay function."""
    if not isinstance(value, tuple | list) or len(cast("Sequence[Any]", value)) != len(ty.fields):
        return None
    fields: list[PassedFunction | PassedTuple | None] = []
    parts = zip(cast("Sequence[Any]", value), ty.fields, strict=True)
    for place, (part, field) in enumerate(parts):
        inside, found = f"{name}.{place}", None
        if isinstance(field, FnType):
            made = made_by(part)
            found = function_of(part) if made is None else made.function
            values |= {} if made is None else {f"{inside}.{n}": v for n, v in made.values.items()}
        elif isinstance(field, TupleType) and has_functions(field):
            found = _packed(part, field, inside, values)
        else:
            values[inside] = part
        if found is None and has_functions(field):
            return None
        fields.append(found)
    return PassedTuple(tuple(fields))


def _at(values: Any, path: Sequence[int]) -> Any:
    """Return the value at a place; None where there is none."""
    for index in path:
        if not isinstance(values, tuple | list) or index >= len(cast("Sequence[Any]", values)):
            return None
        values = cast("Sequence[Any]", values)[index]
    return values


def _without_paths(values: Sequence[Any], paths: Collection[tuple[int, ...]]) -> tuple[Any, ...]:
    """Return values without those at the places, which a field of a field may be."""
    kept: list[Any] = []
    for index, value in enumerate(values):
        inside = {path[1:] for path in paths if path[0] == index}
        if () not in inside:
            kept.append(_without_paths(value, inside) if inside else value)
    return tuple(kept)


def _given(tensors: Sequence[torch.Tensor]) -> list[str]:
    """Return names, which no parameter has, for fixed tensors."""
    return [f"fixed__{i}" for i in range(len(tensors))]


def _models(value: Any) -> Any:
    """Return a list of models as such; anything else, which is refused later, as it is."""
    is_list = isinstance(value, list | tuple | List)
    found = tuple(cast("Sequence[Any]", value)) if is_list else ()
    return Models(found) if is_list and all(isinstance(m, Model) for m in found) else value


def signature_of(definition: Definition) -> Signature:
    """Return the parameters and result of a function as they are annotated. What is wrong with
    them, translation reports."""
    scope = Scope(definition.function, definition.around)
    return read_signature(definition, scope, _ignore, DataTypes(_ignore))


def _ignore(_: Problem) -> None:
    """A mistake that translation reports."""
