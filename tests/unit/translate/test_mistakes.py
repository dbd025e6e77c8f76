# ruff: noqa: B007, F821, RET503, RET504  programs with mistakes on purpose
"""Each mistake is found before anything runs, with its code and the place in the user's text."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from pyrelay import Dim, Float, Int, Model, Tensor, relay, relay_model
from pyrelay.diagnostics.diagnostic import CheckError
from pyrelay.translate.source.definition import Definition, DefinitionKind
from pyrelay.translate.translator import translate

N = Dim("N")
WEIGHTS = torch.ones(3)
TABLE = np.ones(3)
SETTINGS = [1, 2]


class Mutable:
    rate = 1

    def __init__(self) -> None:
        self.rate = 0.5


CONFIG = Mutable()


@relay_model
def net(x: Tensor[Float, (N, 4)], *, width: int = 3) -> Tensor[Float, (N, 2)]:
    return relay.linear(relay.linear(x, out_features=width), out_features=2)


@relay
def loss(x: Tensor[Float, (N, 4)]) -> Float:
    return relay.mean(net(x))


@relay
def first_rows(x: Tensor[Float, (N, 4)]):
    return x[:2]


@relay
def plain(x: Tensor[Float, (N, 4)], *, scale: float = 1.0) -> Float:
    return relay.mean(x) * scale


def helper(x: Any) -> Any:
    return x


def unnamed(x: Float, y) -> Float:
    return x


def undefined(x: Float) -> Float:
    return x + WEIGTHS


def annotated_with_torch(x: torch.Tensor) -> Float:
    return x.sum()


def annotated_with_a_set(x: set[float]) -> Float:
    return x


def annotated_with_nothing(x: Floats) -> Float:
    return x


def captures_a_tensor(x: Tensor[Float, (3,)]) -> Float:
    return relay.sum(x * WEIGHTS)


def captures_an_array(x: Tensor[Float, (3,)]) -> Float:
    return relay.sum(x * TABLE)


def captures_a_list(x: Float) -> Float:
    return x * SETTINGS


def captures_an_object(x: Float) -> Float:
    return x * CONFIG.rate


def calls_a_helper(x: Float) -> Float:
    return helper(x) + 1


def calls_torch(x: Float) -> Float:
    return torch.tanh(x)


def misspells_an_operator(x: Float) -> Float:
    return relay.sigmiod(x)


def misspells_a_method(x: Tensor[Float, (N,)]) -> Float:
    return x.summ()


def changes_in_place(x: Tensor[Float, (N,)]) -> Float:
    return x.add_(1).sum()


def misspells_an_argument(x: Tensor[Float, (N, 2)]) -> Float:
    return relay.sum(x, dims=0)


def gives_an_argument_twice(x: Tensor[Float, (N, 2)]) -> Float:
    return relay.sum(x, 0, dim=0)


def forgets_an_argument(x: Tensor[Float, (N, 2)]) -> Float:
    return relay.softmax(x).sum()


def passes_too_much(x: Tensor[Float, (N, 4)]) -> Float:
    return plain(x, 2.0)


def forgets_an_operand(x: Float) -> Float:
    return relay.maximum(x)


def gives_a_bad_value(x: Tensor[Float, (N, 2)]) -> Float:
    return relay.gelu(x, approximate="taylor").sum()


def passes_a_running_value(x: Tensor[Float, (N, 4)], s: float) -> Float:
    return plain(x, scale=s * 2.0)


def passes_the_wrong_type(x: Tensor[Float, (N, 4)]) -> Float:
    return plain(x, scale="much")


def falls_off_the_end(x: Float) -> Float:
    if x > 0:
        return x


def returns_nothing_somewhere(x: Float) -> Float:
    while x > 0:
        if x > 5:
            return  # noqa: RET502
        x = x - 1
    return x


def unbound_in_a_branch(x: Float) -> Float:
    if x > 0:
        pass
    else:
        y = x
    return y


def unbound_after_a_loop(xs: Tensor[Float, (N,)]) -> Float:
    for last in xs:
        pass
    return last


def unbound_before_use(x: Float) -> Float:
    y = x + total
    total = y
    return total


def assigns_a_captured_item(x: Float) -> Float:
    WEIGHTS[0] = x
    return x


def assigns_an_attribute(x: Float) -> Float:
    CONFIG.rate = x
    return x


def assigns_an_item_of_an_argument(x: Tensor[Float, (N,)]) -> Float:
    x[0] = 1.0
    return x.sum()


def assigns_an_item_of_an_alias(x: Tensor[Float, (N,)]) -> Float:
    y = x * 2
    z = y
    y[0] = 1.0
    return z.sum()


def assigns_an_item_of_a_view(x: Tensor[Float, (N, 2)]) -> Float:
    y = x * 2
    z = y.reshape(-1)
    z[0] = 1.0
    return y.sum()


def assigns_an_item_of_what_the_next_round_holds(x: Tensor[Float, (N,)]) -> Float:
    y = x * 2
    z = x
    for i in range(3):
        y[i] = 1.0
        z = y
    return z.sum()


def assigns_an_item_of_what_a_function_got(x: Tensor[Float, (N, 4)]) -> Float:
    y = x * 2
    z = first_rows(y)
    y[0] = 1.0
    return z.sum()


def hides_outside_of_a_model(x: Tensor[Float, (N, 2)]) -> Float:
    return relay.linear(x, out_features=3).sum()


def captures_what_changes(x: Float) -> Float:
    scale = x

    def scaled(y):
        return y * scale

    scale = x * 2
    return scaled(x)


def calls_an_unknown_model(model: Model, x: Tensor[Float, (N, 4)]) -> Float:
    return relay.mean(model(x))


def updates_what_is_no_model(x: Tensor[Float, (N, 4)]) -> Float:
    relay.update_model_params(x, x, lr=0.1)
    return relay.mean(x)


def differentiates_in_another_model(model: Model[net], x: Tensor[Float, (N, 4)]) -> Float:
    grads = relay.grad(model, plain, (x,))
    relay.update_model_params(model, grads, lr=0.1)
    return relay.mean(x)


def mentions_two_widths(x: Tensor[Float, (N, 4)]) -> Float:
    return relay.mean(net(x, width=3)) + relay.mean(net(x, width=4))


def uses_range_as_a_value(n: int) -> Int:
    r = range(n)
    return r[0]


def leaves_layers(x: Float) -> Float:
    for i in relay.layers(3):
        if i == 1:
            break
        x = x * 2
    return x


def counts_layers_at_run_time(x: Float, n: int) -> Float:
    for _ in relay.layers(n):
        x = x * 2
    return x


def differentiates_in_no_parameter(x: Tensor[Float, (N, 4)]) -> Float:
    return relay.sum(relay.grad(plain, wrt="z")(x))


CASES: list[tuple[Callable[..., Any], str, str]] = [
    (unnamed, "RL102", "y"),
    (undefined, "RL101", "WEIGTHS"),
    (annotated_with_torch, "RL103", "torch.Tensor"),
    (annotated_with_a_set, "RL103", "set[float]"),
    (annotated_with_nothing, "RL101", "Floats"),
    (captures_a_tensor, "RL106", "WEIGHTS"),
    (captures_an_array, "RL106", "TABLE"),
    (captures_a_list, "RL116", "SETTINGS"),
    (captures_an_object, "RL116", "CONFIG.rate"),
    (calls_a_helper, "RL107", "helper"),
    (calls_torch, "RL107", "torch.tanh"),
    (misspells_an_operator, "RL111", "relay.sigmiod"),
    (misspells_a_method, "RL111", "x.summ"),
    (changes_in_place, "RL111", "x.add_"),
    (misspells_an_argument, "RL108", "dims=0"),
    (gives_an_argument_twice, "RL108", "dim=0"),
    (forgets_an_argument, "RL108", "relay.softmax(x)"),
    (passes_too_much, "RL108", "2.0"),
    (forgets_an_operand, "RL108", "relay.maximum(x)"),
    (gives_a_bad_value, "RL118", '"taylor"'),
    (passes_a_running_value, "RL117", "s * 2.0"),
    (passes_the_wrong_type, "RL118", 'plain(x, scale="much")'),
    (falls_off_the_end, "RL104", "if x > 0:"),
    (returns_nothing_somewhere, "RL104", "return"),
    (unbound_in_a_branch, "RL105", "y"),
    (unbound_after_a_loop, "RL105", "last"),
    (unbound_before_use, "RL105", "total"),
    (assigns_a_captured_item, "RL112", "WEIGHTS[0]"),
    (assigns_an_attribute, "RL112", "CONFIG.rate"),
    (assigns_an_item_of_an_argument, "RL114", "x[0]"),
    (assigns_an_item_of_an_alias, "RL114", "y[0]"),
    (assigns_an_item_of_a_view, "RL114", "z[0]"),
    (assigns_an_item_of_what_the_next_round_holds, "RL114", "y[i]"),
    (assigns_an_item_of_what_a_function_got, "RL114", "y[0]"),
    (hides_outside_of_a_model, "RL115", "relay.linear(x, out_features=3)"),
    (captures_what_changes, "RL119", "scale"),
    (calls_an_unknown_model, "RL120", "model: Model"),
    (updates_what_is_no_model, "RL120", "x"),
    (differentiates_in_another_model, "RL121", "plain"),
    (mentions_two_widths, "RL124", "net(x, width=4)"),
    (uses_range_as_a_value, "RL100", "range(n)"),
    (leaves_layers, "RL100", "break"),
    (counts_layers_at_run_time, "RL117", "n"),
    (differentiates_in_no_parameter, "RL108", '"z"'),
]


@pytest.mark.parametrize(("function", "code", "text"), CASES, ids=[f.__name__ for f, *_ in CASES])
def test_a_mistake_has_its_code_and_place(
    function: Callable[..., Any], code: str, text: str
) -> None:
    with pytest.raises(CheckError) as caught:
        translate(Definition(function, DefinitionKind.FUNCTION))
    found = caught.value.diagnostics[0]
    assert found.code == code
    assert found.primary is not None
    assert found.primary.span.text == text
    assert found.help is not None or found.notes or code == "RL118"


def several(x: Float, y) -> Float:
    a = relay.tahn(x)
    b = unheard_of + a
    c = helper(b)
    return c + b + unheard_of


def test_independent_mistakes_are_collected_each_once() -> None:
    with pytest.raises(CheckError) as caught:
        translate(Definition(several, DefinitionKind.FUNCTION))
    assert caught.value.codes == ("RL102", "RL111", "RL101", "RL107", "RL101")


def calls_a_wrong_one(x: Float) -> Float:
    return wrong(x) + undefined_here


@relay
def wrong(x: Float) -> Float:
    return x.summ()


def test_mistakes_of_called_functions_are_found_too() -> None:
    with pytest.raises(CheckError) as caught:
        translate(Definition(calls_a_wrong_one, DefinitionKind.FUNCTION))
    assert caught.value.codes == ("RL101", "RL111")


def test_a_mutable_default_is_refused() -> None:
    def listed(x: Float, xs: Float = []) -> Float:  # noqa: B006
        return x

    with pytest.raises(CheckError) as caught:
        translate(Definition(listed, DefinitionKind.FUNCTION))
    assert caught.value.codes == ("RL113",)


def test_models_that_contain_each_other_are_refused() -> None:
    @relay_model
    def left(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 4)]:
        return right(relay.linear(x, out_features=4))

    @relay_model
    def right(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 4)]:
        return left(x)

    with pytest.raises(CheckError) as caught:
        translate(left.__relay__)
    assert "RL123" in caught.value.codes


def test_one_name_for_two_parameters_is_refused() -> None:
    @relay_model
    def twin(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 4)]:
        y = relay.linear(x, out_features=4, name="same")
        return relay.linear(y, out_features=4, name="same")

    with pytest.raises(CheckError) as caught:
        translate(twin.__relay__)
    assert caught.value.codes == ("RL122",)


@dataclass(frozen=True)
class Settings:
    rate: float = 0.5
    sizes: tuple[int, ...] = (2, 3)


FROZEN = Settings()


def test_frozen_objects_are_constants() -> None:
    @relay
    def uses(x: Float) -> Float:
        return x * FROZEN.rate + relay.zeros(FROZEN.sizes).sum() + math.pi

    assert uses(2.0) == pytest.approx(1.0 + math.pi)
