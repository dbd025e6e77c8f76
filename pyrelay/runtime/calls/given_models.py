"""Whether the models that a call has are those that a program wants."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from ...diagnostics.catalogue.call import WrongArgument
from ...diagnostics.catalogue.model import AllFrozen, DefinitionCalled, ModelMissing, WrongModel
from ...diagnostics.diagnostic import RunError
from ...translate.calls.passed_models import annotated_definition
from ...translate.program.signature import Parameter
from ...translate.source.definition import Definition, ModelUse
from ...translate.translator import Translation
from ..models.model import Model
from ..models.model_io import Models, ParameterSource
from ..models.records import TensorRecord
from ..values.text import describe


def check_model(function: Definition, parameter: Parameter, value: Any) -> None:
    """Stop if the value of a parameter annotated `Model[net]` is no model of `net`. Raises
    RunError."""
    if parameter.params is not None:
        _check_record(function, parameter, value)
    if parameter.model is None:
        return
    if parameter.is_list:
        _check_list(function, parameter, value)
        return
    wanted = annotated_definition(parameter.model)
    if isinstance(value, Model) and wanted in (None, value.blueprint.spec.definition):
        return
    named = "net" if wanted is None else wanted.name
    declared = "Model" if wanted is None else f"Model[{named}]"
    actual, way = describe(value), f"make one: `relay.create_model({named})`"
    if isinstance(value, Model):
        is_old = value.blueprint.name == named
        way = f"`{named}` was defined anew: make the model again" if is_old else None
        actual = f"a model of {'the old ' if is_old else ''}`{value.blueprint.name}`"
    name, place = parameter.name, parameter.span
    raise RunError(WrongArgument(function.name, name, place, declared, actual, way))


def _check_list(function: Definition, parameter: Parameter, value: Any) -> None:
    """Stop if the value of a parameter annotated `list[Model[net]]` is no list of models of `net`
    that one program serves. Raises RunError."""
    if not isinstance(value, Models):
        wanted = annotated_definition(parameter.model)
        named = "net" if wanted is None else wanted.name
        name, place, way = parameter.name, parameter.span, f"write `[relay.create_model({named})]`"
        declared, actual = f"list[Model[{named}]]", describe(value)
        raise RunError(WrongArgument(function.name, name, place, declared, actual, way))
    for model in value:
        check_model(function, replace(parameter, is_list=False), model)
        first, other = value[0], model
        if (first.blueprint.spec, first.training, first.frozen) != (
            other.blueprint.spec,
            other.training,
            other.frozen,
        ):
            declared, way = "a list of models made alike", "make all with the same arguments"
            actual = "models of different hyper-parameters, modes or frozen parameters"
            name, place = parameter.name, parameter.span
            raise RunError(WrongArgument(function.name, name, place, declared, actual, way))


def _check_record(function: Definition, parameter: Parameter, value: Any) -> None:
    """Stop if the value of a parameter annotated `Params[net]` is no record of its parameters."""
    wanted = annotated_definition(parameter.params)
    named = "net" if wanted is None else wanted.name
    if isinstance(value, TensorRecord):
        there = value.home.blueprint.spec.definition
        if wanted in (None, there):
            return
        actual, way = f"a record of the parameters of `{there.name}`", None
    else:
        actual, way = describe(value), "pass `model.params`, or what `relay.sgd` gives"
    name, place = parameter.name, parameter.span
    raise RunError(WrongArgument(function.name, name, place, f"Params[{named}]", actual, way))


def check_models(
    function: Definition,
    translation: Translation,
    given: Sequence[ModelUse],
    passed: Collection[Definition] = (),
) -> None:
    """Stop if a program wants other implicit models than it has; those of `passed` it may have as
    arguments alone. Raises RunError."""
    head, name = function.source.head, function.name
    wanted = [spec.definition for spec in translation.implicit]
    there = [use.definition for use in given]
    missing = [d for d in wanted if d not in there]
    if missing == [function]:
        raise RunError(DefinitionCalled(name, head))
    if missing and len(there) < len(wanted):
        raise RunError(ModelMissing(name, missing[0].name, head))
    extra = [d for d in there if d not in wanted and d not in passed]
    if extra:
        used = ", ".join(f"`{d.name}`" for d in wanted) or "nothing"
        is_old = extra[0].name in [d.name for d in wanted]
        raise RunError(WrongModel(name, used, extra[0].name, head, is_old))


def expect_trainable(models: Sequence[ParameterSource]) -> None:
    """Stop if no parameter of a model requires a gradient. Raises RunError."""
    for source in models:
        model = source if isinstance(source, Model) else source.home
        names = model.blueprint.param_names
        if names and len(model.frozen) == len(names):
            raise RunError(AllFrozen(model.blueprint.name))
