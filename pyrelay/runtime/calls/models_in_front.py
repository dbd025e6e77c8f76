"""Transforms over calls of scripts, such as the gradient in the parameters of models.

`relay.grad(models, loss, args)` differentiates in the parameters of models that the loss mentions,
that it is passed, or both. The entry takes parts of each model, in the order in which the script
names them, and passes them to the loss wherever it has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeAlias, final

from ...dataclass import dataclass
from ...diagnostics.catalogue.language import Unsupported
from ...diagnostics.diagnostic import CheckError
from ...diagnostics.source import Span
from ...ir.expr import (
    Batching,
    Call,
    Differentiation,
    Expr,
    Function,
    GlobalVar,
    RefCreate,
    Rule,
    Tuple,
    Var,
)
from ...ir.module import Module
from ...ir.types import AdtType, RefType, TupleType
from ...translate.blocks.list_append import chain, empty
from ...translate.source.definition import Definition
from ...translate.translator import Translation
from ..compile.derived import derive, derive_in_models
from ..models.model import Model
from ..models.model_io import Models

Passed: TypeAlias = tuple[tuple[int, int], ...]
"""The arguments that are models to differentiate in: the index among the values, and which model of
those named."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Transformed:
    """A transform over a call: which, in which host parameters, and the form of the result.

    There is one object of each (`transformed`), so that a key with one in it hashes fast.
    """

    rule: Rule
    options: Differentiation
    passed: Passed = ()
    """The models among the arguments."""
    mapped: tuple[Batching, ...] = ()
    """How the transform is mapped, the innermost first."""

    @property
    def path(self) -> tuple[int, ...] | None:
        """The path to the gradient of one model in the result; None where there are others, or
        values beside it in the result of a program."""
        is_gradient = self.rule in (Rule.GRAD, Rule.VALUE_AND_GRAD) and not self.mapped
        if self.options.has_aux or not self.options.single or not is_gradient:
            return None
        return () if self.rule is Rule.GRAD else (1,)


@lru_cache(maxsize=256)
def transformed(
    rule: Rule,
    models: int,
    options: Differentiation,
    passed: Passed = (),
    mapped: tuple[Batching, ...] = (),
) -> Transformed:
    """Return a transform in the parameters of all the models of a call."""
    wrt = tuple(2 * i for i in range(models))
    return Transformed(rule, replace(options, wrt=wrt), passed, mapped)


def derived(module: Module, name: str, wanted: Transformed) -> tuple[Module, str]:
    """Return a module with the entry of a transform; and its name."""
    if wanted.rule is not Rule.VMAP:
        module, name = derive_in_models(module, name, wanted.rule, wanted.options)
    count = len(module.functions[name].params)
    for batching in wanted.mapped:
        axes = batching.in_axes
        own = axes if isinstance(axes, tuple) else (axes,) * (count - 1)
        # The state of the model is the same for all elements.
        inside = replace(batching, in_axes=(*own[:1], None, *own[1:]))
        module, name = derive(module, name, Rule.VMAP, inside)
    return module, name


def passed(models: Sequence[Any], values: Sequence[Any]) -> Passed:
    """Return the arguments that are among the models, or lists of some of these."""
    numbers = {id(model): number for number, model in enumerate(models)}
    found: list[tuple[int, int]] = []
    for index, value in enumerate(values):
        several = value if isinstance(value, Models) else (value,)
        if all(isinstance(m, Model) and id(m) in numbers for m in several):
            found += ((index, numbers[id(m)]) for m in several)
    return tuple(found)


def without(values: Sequence[Any], found: Passed) -> tuple[Any, ...]:
    """Return the arguments that are no models to differentiate in."""
    taken = {index for index, _ in found}
    return tuple(v for index, v in enumerate(values) if index not in taken)


def with_models_in_front(
    translation: Translation, models: Sequence[Definition], found: Passed
) -> Translation:
    """Return the translation with an entry that takes the parameters and the state of each of
    `models` in front of its other arguments. Raises CheckError."""
    implicit = [spec.definition for spec in translation.implicit]
    if not found and implicit == list(models):
        return translation
    _expect_no_optimizer(translation, found)
    base = translation.module.functions[translation.entry]
    leading, values = base.params[: 2 * len(implicit)], base.params[2 * len(implicit) :]
    numbers: dict[int, list[int]] = {}
    for index, number in found:
        numbers.setdefault(index, []).append(number)
    front: dict[int, tuple[Var, Var]] = {}
    for number, definition in enumerate(models):
        if definition in implicit:
            place = 2 * implicit.index(definition)
            front[number] = replace(leading[place]), replace(leading[place + 1])
    for index, number in found:
        if number not in front:
            front[number] = _parts_of(values[index], models[number])
    args: list[Expr] = [v for d in implicit for v in front[list(models).index(d)]]
    rest: list[Var] = []
    for index, value in enumerate(values):
        if index in numbers:
            made = [_made(*front[number]) for number in numbers[index]]
            args.append(made[0] if isinstance(value.ty, TupleType) else _listed(made, value.span))
        else:
            rest.append(replace(value))
            args.append(rest[-1])
    heads = [v for number in range(len(models)) for v in front[number]]
    name = f"{translation.entry}_in_models"
    body = Call(GlobalVar(translation.entry, span=base.span), tuple(args), span=base.span)
    made = Function((*heads, *rest), body, None, base.type_params, base.name, span=base.span)
    kept = without(translation.signature.values, found)
    parameters = tuple(p for p in translation.signature.parameters if p.static or p in kept)
    return replace(
        translation,
        module=translation.module.with_functions({name: made}),
        entry=name,
        signature=replace(translation.signature, parameters=parameters),
    )


def _made(params: Var, state: Var) -> Expr:
    """Return a model of parameters and state."""
    span = params.span
    content = Tuple((params, Tuple((), span=span)), span=span)
    return Tuple((RefCreate(content, span=span), state), span=span)


def _listed(models: Sequence[Expr], span: Span) -> Expr:
    return chain(reversed(models), empty(span), span)


def _parts_of(model: Var, definition: Definition) -> tuple[Var, Var]:
    """Return variables for the parameters and the state of a model that is passed, alone or in a
    list."""
    ty = model.ty.args[0] if isinstance(model.ty, AdtType) else model.ty
    assert isinstance(ty, TupleType)
    cell, state = ty.fields
    assert isinstance(cell, RefType)
    assert isinstance(cell.value, TupleType)
    params, _ = cell.value.fields
    name, span = definition.name, model.span
    return Var(f"{name}_params", params, span=span), Var(f"{name}_state", state, span=span)


def _expect_no_optimizer(translation: Translation, found: Passed) -> None:
    """Stop if an optimiser updates a model in which the function is differentiated."""
    values = translation.signature.values
    for index, _ in found:
        parameter = values[index]
        if parameter.name in translation.optimizers:
            name = parameter.name
            what = f"an update of `{name}` by an optimiser in a function differentiated in `{name}`"
            instead = (
                "move parameters that are values: `relay.with_params(f)` and "
                "`relay.sgd(params, grads, lr)`"
            )
            raise CheckError(Unsupported(parameter.span, what, instead))
