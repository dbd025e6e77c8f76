"""What updates a model decides the type of its memory, wherever the model comes from."""

from __future__ import annotations

from typing import Any

from pyrelay import Dim, Float, Model, Optimizer, Tensor, relay, relay_model
from pyrelay.infer import infer
from pyrelay.ir.types import UNIT, UNKNOWN, RefType, TupleType, Type
from pyrelay.translate.source.definition import ModelUse, meaning
from pyrelay.translate.source.optimizers import AdamRule, OptimizerUse, SGDRule
from pyrelay.translate.translator import Translation, translate

N = Dim("N")


@relay_model
def net(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 1)]:
    return relay.linear(x, out_features=1)


@relay
def loss(x: Tensor[Float, (N, 3)]) -> Float:
    return relay.mean(net(x))


@relay
def look(model: Model[net], x: Tensor[Float, (N, 3)]) -> Float:
    return model.bind(loss)(x)


@relay
def step(model: Model[net], optimizer: Optimizer, x: Tensor[Float, (N, 3)]) -> Float:
    relay.update_model_params(model, relay.grad(model, loss, (x,)), optimizer=optimizer)
    return look(model, x)


captured = relay.optim.sgd(lr=0.5, momentum=0.9)


@relay
def descend(model: Model[net], x: Tensor[Float, (N, 3)]) -> Float:
    relay.update_model_params(model, relay.grad(model, loss, (x,)), lr=0.1)
    return look(model, x)


@relay
def both(
    a: Model[net], b: Model[net], c: Model[net], optimizer: Optimizer, x: Tensor[Float, (N, 3)]
) -> Float:
    return step(a, optimizer, x) + step(b, captured, x) + look(c, x)


@relay
def makes(x: Tensor[Float, (N, 3)]) -> Float:
    model = relay.create_model(net)
    return step(model, captured, x)


def optimizer_for(name: str) -> dict[str, Any]:
    return {name: OptimizerUse(AdamRule(), name, 0.1)}


def memory(translation: Translation, parameter: str, function: str | None = None) -> Type:
    """Return the type of the memory of a model."""
    found = translation.module.functions[function or translation.entry]
    ty = next(p.ty for p in found.params if p.name == parameter)
    assert isinstance(ty, TupleType)
    assert isinstance(ty.fields[0], RefType)
    content = ty.fields[0].value
    assert isinstance(content, TupleType)
    return content.fields[1]


def moments(translation: Translation, parameter: str, function: str | None = None) -> int:
    """Return how many moments the memory of a model has."""
    found = memory(translation, parameter, function)
    assert isinstance(found, TupleType)
    trees = found.fields[2]
    assert isinstance(trees, TupleType)
    return len(trees.fields)


def test_plain_descent_needs_no_memory() -> None:
    found = translate(descend.__relay__)
    assert memory(found, "model") == UNIT
    assert found.optimizers == {}


def test_a_model_has_room_for_what_its_optimizer_remembers() -> None:
    uses = [ModelUse(meaning(net))] * 3
    found = translate(both.__relay__, optimizer_for("optimizer"), models=uses)
    rules = {name: use.rule for name, use in found.optimizers.items()}
    assert rules == {"a": AdamRule(), "b": SGDRule(momentum=0.9)}
    assert (moments(found, "a"), moments(found, "b")) == (2, 1)
    assert memory(found, "c") == UNIT


def test_a_function_that_updates_is_translated_for_each_rule() -> None:
    found = translate(both.__relay__, optimizer_for("optimizer"))
    steps = {n: moments(found, "model", n) for n in found.module.functions if n.startswith("step")}
    assert steps == {"step[optimizer=adam]": 2, "step[optimizer=sgd]": 1}


def test_a_function_that_updates_nothing_is_polymorphic_in_the_memory() -> None:
    found = translate(both.__relay__, optimizer_for("optimizer"))
    assert [n for n in found.module.functions if n.startswith("look")] == ["look"]
    assert memory(found, "model", "look") == UNKNOWN
    assert infer(found.module).functions["look"].type_params


def test_a_learning_rate_is_guarded_only_where_the_program_holds_it() -> None:
    passed = translate(both.__relay__, optimizer_for("optimizer"))
    made = translate(makes.__relay__)
    try:
        captured.lr = 0.25
        assert all(g.holds() for g in passed.guards)
        assert not all(g.holds() for g in made.guards)
        captured.lr = 0.5
        assert all(g.holds() for g in made.guards)
        captured.nesterov = True
        assert not all(g.holds() for g in passed.guards)
    finally:
        captured.lr, captured.nesterov = 0.5, False
