"""What updates a model decides what the model is made of, wherever it comes from."""

from __future__ import annotations

from typing import Any

from pyrelay import Dim, Float, Model, Optimizer, Tensor, relay, relay_model
from pyrelay.ir.types import RefType, TupleType, Type
from pyrelay.translate.models.optimizers import AdamRule, OptimizerUse, SGDRule
from pyrelay.translate.source.definition import ModelUse, meaning
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


def content(translation: Translation, parameter: str) -> Type:
    """Return the type of the content of a model's cell."""
    function = translation.module.functions[translation.entry]
    ty = next(p.ty for p in function.params if p.name == parameter)
    assert isinstance(ty, TupleType)
    assert isinstance(ty.fields[0], RefType)
    return ty.fields[0].value


def moments(translation: Translation, parameter: str) -> int:
    """Return how many moments the cell of a model has room for."""
    whole = content(translation, parameter)
    assert isinstance(whole, TupleType)
    memory = whole.fields[1]
    assert isinstance(memory, TupleType)
    trees = memory.fields[2]
    assert isinstance(trees, TupleType)
    return len(trees.fields)


def test_plain_descent_keeps_bare_parameters() -> None:
    found = translate(descend.__relay__)
    whole = content(found, "model")
    assert isinstance(whole, TupleType)
    assert len(whole.fields) == 2  # weight and bias
    assert found.optimizers == {}


def test_a_model_has_room_for_what_its_optimizer_remembers() -> None:
    uses = [ModelUse(meaning(net))] * 3
    found = translate(both.__relay__, optimizer_for("optimizer"), models=uses)
    rules = {name: use.rule for name, use in found.optimizers.items()}
    assert rules == {"a": AdamRule(), "b": SGDRule(momentum=0.9)}
    assert (moments(found, "a"), moments(found, "b")) == (2, 1)
    whole = content(found, "c")
    assert isinstance(whole, TupleType)
    assert not any(isinstance(f, TupleType) for f in whole.fields)


def test_a_function_is_translated_for_each_rule_that_reaches_it() -> None:
    found = translate(both.__relay__, optimizer_for("optimizer"))
    names = list(found.module.functions)
    assert [n.split("[")[0].split("_")[0] for n in names].count("look") == 3
    assert {n for n in names if n.startswith("step")} == {
        "step[optimizer=adam]",
        "step[optimizer=sgd]",
    }


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
