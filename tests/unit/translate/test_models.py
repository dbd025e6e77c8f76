"""The hidden values of models: which sites there are, and what they are called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyrelay import Dim, Float, Model, Tensor, relay, relay_model
from pyrelay.ir.op import HiddenKind, Init
from pyrelay.translate.program.models import ModelSpec, SubModelSpec
from pyrelay.translate.source.definition import ModelUse
from pyrelay.translate.translator import Translation, translate

N = Dim("N")


def names(spec: ModelSpec, *, state: bool = False, prefix: str = "") -> Iterator[str]:
    for part in spec.state if state else spec.params:
        if isinstance(part, SubModelSpec):
            yield from names(part.model, state=state, prefix=f"{prefix}{part.name}.")
        else:
            yield f"{prefix}{part.name}"


def spec_of(model: Any, **statics: Any) -> ModelSpec:
    return translate(model.__relay__, statics).implicit[0]


def uses(translation: Translation) -> list[str]:
    return [spec.definition.name for spec in translation.implicit]


@relay_model
def cell(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 4)]:
    return relay.tanh(relay.linear(x, out_features=4))


@relay
def through(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 4)]:
    return cell(x) + 1.0


def test_a_site_is_named_by_the_name_it_is_assigned_to() -> None:
    @relay_model
    def net(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 4)]:
        first = relay.linear(x, out_features=4)
        second = relay.tanh(relay.linear(first, out_features=4, bias=False))
        return relay.linear(second, out_features=4, name="last")

    assert list(names(spec_of(net))) == [
        "first.weight",
        "first.bias",
        "linear_1.weight",
        "last.weight",
        "last.bias",
    ]


def test_a_name_assigned_twice_names_no_site() -> None:
    @relay_model
    def net(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 4)]:
        h = relay.linear(x, out_features=4, bias=False)
        h = relay.linear(h, out_features=4, bias=False)
        x = relay.linear(h, out_features=4, bias=False)
        return x  # noqa: RET504

    assert list(names(spec_of(net))) == ["linear_1.weight", "linear_2.weight", "linear_3.weight"]


def test_a_site_in_a_loop_or_nested_function_is_one_site() -> None:
    @relay_model
    def net(x: Tensor[Float, (N, 4)], n: int) -> Tensor[Float, (N, 4)]:
        def again(y):
            return relay.linear(y, out_features=4, bias=False)

        for _ in range(n):
            x = again(relay.linear(x, out_features=4, bias=False))
        return again(x)

    assert list(names(spec_of(net))) == ["linear_1.weight", "linear_2.weight"]


def test_layers_have_parameters_of_their_own() -> None:
    @relay_model
    def net(x: Tensor[Float, (N, 4)], *, depth: int = 2) -> Tensor[Float, (N, 4)]:
        for _ in relay.layers(depth):
            x = cell(x)
            for _ in relay.layers(2):
                y = relay.linear(x, out_features=4, bias=False)
                x = x + y
        return x

    assert list(names(spec_of(net, depth=1))) == [
        "cell.0.linear_1.weight",
        "cell.0.linear_1.bias",
        "y.0.0.weight",
        "y.0.1.weight",
    ]
    assert len(list(names(spec_of(net)))) == 8


def test_a_model_that_calls_itself_is_one_instance() -> None:
    @relay_model
    def net(x: Tensor[Float, (N, 4)], n: int) -> Tensor[Float, (N, 4)]:
        if n == 0:
            return relay.linear(x, out_features=4, bias=False)
        return relay.tanh(net(x, n - 1))

    assert list(names(spec_of(net))) == ["linear_1.weight"]


def test_a_model_mentioned_as_a_value_is_a_site() -> None:
    @relay_model
    def net(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 4)]:
        step = cell
        f = lambda y: step(y)  # noqa: E731
        return f(f(x)) + cell(x)

    assert list(names(spec_of(net))) == [
        "step.linear_1.weight",
        "step.linear_1.bias",
        "cell.linear_1.weight",
        "cell.linear_1.bias",
    ]


def test_another_name_of_a_model_is_one_site_however_often_it_is_called() -> None:
    @relay_model
    def net(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 4)]:
        f = cell
        g, h = cell, through
        both = (cell, cell)
        return f(x) * f(x) + g(g(x)) + h(h(x)) + both[0](x) * both[0](x) + both[1](x)

    sites = dict.fromkeys(name.split(".linear")[0] for name in names(spec_of(net)))
    assert list(sites) == ["f", "cell", "through.cell", "cell_2", "cell_3"]


def test_a_model_whose_call_has_no_name_is_named_after_itself() -> None:
    @relay_model
    def net(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 4)]:
        x = cell(x)
        for _ in range(2):
            x = cell(x)
        return relay.tanh(cell(x))

    sites = dict.fromkeys(name.split(".")[0] for name in names(spec_of(net)))
    assert list(sites) == ["cell", "cell_2", "cell_3"]


def test_a_function_that_mentions_a_model_is_a_site_in_a_model() -> None:
    @relay_model
    def net(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 4)]:
        h = through(x)
        return relay.tanh(through(h))

    assert list(names(spec_of(net))) == [
        "h.linear_1.weight",
        "h.linear_1.bias",
        "through.cell.linear_1.weight",
        "through.cell.linear_1.bias",
    ]


def test_buffers_and_keys_are_state() -> None:
    @relay_model
    def net(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 4)]:
        h = relay.batch_norm(x)
        out = relay.dropout(h, 0.5)
        return out * relay.param((4,), init="ones", name="scale")

    spec = spec_of(net)
    assert list(names(spec)) == ["h.weight", "h.bias", "scale"]
    assert list(names(spec, state=True)) == ["h.running_mean", "h.running_var", "out.key"]
    assert [p.holder for p in spec.state if not isinstance(p, SubModelSpec)] == [
        HiddenKind.BUFFER,
        HiddenKind.BUFFER,
        HiddenKind.KEY,
    ]
    assert [p.init for p in spec.params if not isinstance(p, SubModelSpec)] == [
        Init.ONES,
        Init.ZEROS,
        Init.ONES,
    ]


def test_the_mode_does_not_change_the_tree() -> None:
    @relay_model
    def net(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 4)]:
        return relay.dropout(relay.batch_norm(cell(x)), 0.5)

    definition = net.__relay__
    train = translate(definition, implicit=[ModelUse(definition, training=True)])
    assert train.entry == "net.train"
    assert list(names(train.implicit[0])) == list(names(spec_of(net)))
    assert list(names(train.implicit[0], state=True)) == list(names(spec_of(net), state=True))


def test_a_weight_that_is_given_makes_no_parameter() -> None:
    @relay_model
    def net(x: Tensor[Float, (N, 4)], w: Tensor[Float, (4, 4)]) -> Tensor[Float, (N, 4)]:
        b = relay.param((4,))
        h = relay.linear(x, w)
        return relay.linear(h, w, b) + relay.linear(h, out_features=4, bias=b)

    assert list(names(spec_of(net))) == ["b", "linear_1.weight"]


def test_functions_pass_the_models_they_mention() -> None:
    @relay
    def outer(x: Tensor[Float, (N, 4)]) -> Float:
        return relay.mean(through(x)) + relay.mean(cell(x))

    found = translate(outer.__relay__)
    assert uses(found) == ["cell"]
    params = [v.name for v in found.module.functions["outer"].params]
    assert params == ["cell_params", "cell_state", "x"]


def test_a_supplied_model_is_not_asked_for() -> None:
    @relay
    def trains(model: Model[cell], x: Tensor[Float, (N, 4)]) -> Float:
        def objective(y):
            return relay.mean(through(y))

        value, _ = relay.value_and_grad(model, objective, (x,))
        return value + relay.mean(model.bind(through)(x))

    found = translate(trains.__relay__)
    assert uses(found) == []
    params = [v.name for v in found.module.functions["trains"].params]
    assert params == ["model", "x"]


def test_what_is_not_supplied_is_asked_for() -> None:
    @relay_model
    def head(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 1)]:
        return relay.linear(x, out_features=1)

    @relay
    def both(x: Tensor[Float, (N, 4)]) -> Float:
        return relay.mean(head(through(x)))

    @relay
    def trains(model: Model[cell], x: Tensor[Float, (N, 4)]) -> Float:
        relay.update_model_params(model, relay.grad(model, both, (x,)), lr=0.1)
        return relay.mean(x)

    assert uses(translate(both.__relay__)) == ["head", "cell"]
    assert uses(translate(trains.__relay__)) == ["head"]


def test_mutual_recursion_of_functions_shares_their_models() -> None:
    found = translate(ping.__relay__)
    assert uses(found) == ["cell"]
    assert [len(f.params) for f in found.module.functions.values()] == [4, 4, 3]


@relay
def ping(x: Tensor[Float, (N, 4)], n: int) -> Tensor[Float, (N, 4)]:
    return x if n == 0 else pong(x, n - 1)


@relay
def pong(x: Tensor[Float, (N, 4)], n: int) -> Tensor[Float, (N, 4)]:
    return ping(cell(x), n)


def test_each_combination_of_modes_and_statics_is_translated_once() -> None:
    @relay_model
    def wide(x: Tensor[Float, (N, 4)], *, width: int) -> Tensor[Float, (N, 4)]:
        return relay.linear(relay.linear(x, out_features=width), out_features=4)

    @relay
    def uses_both(
        a: Model[wide], b: Model[wide], c: Model[wide], x: Tensor[Float, (N, 4)]
    ) -> Float:
        return relay.mean(a(x) + b(x) + c(x) + a(x))

    definition = wide.__relay__
    small, large = (("width", 2),), (("width", 8),)
    models = [
        ModelUse(definition, training=True, statics=small),
        ModelUse(definition, training=False, statics=small),
        ModelUse(definition, training=True, statics=large),
    ]
    found = translate(uses_both.__relay__, models=models)
    assert sorted(found.module.functions) == [
        "uses_both.train",
        "wide[width=2]",
        "wide[width=2].train",
        "wide[width=8].train",
    ]
