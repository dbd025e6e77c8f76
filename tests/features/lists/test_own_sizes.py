"""Lists whose elements have sizes of their own, `list[Tensor[Float, (Any,)]]`, against torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from pyrelay import CheckError, Dim, Float, Int, RunError, Tensor, relay, relay_model
from pyrelay.prelude import foldl
from pyrelay.prelude import map as mapped

K, N = Dim("K"), Dim("N")
Rows = list[Tensor[Float, (Any,)]]


def rows() -> list[torch.Tensor]:
    """Return rows of several lengths."""
    return [torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0, 5.0]), torch.tensor([1.0])]


@relay
def norm(v: Tensor[Float, (N,)]) -> Float:
    return (v * v).sum()


def over_a_loop(xs: Rows) -> Float:
    t = 0.0
    for x in xs:
        t += (x * x).sum() * len(x)
    return t


def by_place(xs: Rows) -> Float:
    return xs[0].sum() + xs[-1].max() * xs[1][2]


def by_a_function(xs: Rows) -> Float:
    return sum([norm(x) for x in xs])


def by_a_local_function(xs: Rows) -> Float:
    half = lambda v: (v * 0.5).sum()  # noqa: E731  a local function without annotations
    t = 0.0
    for x in xs:
        t += half(x)
    return t


def by_functions_over_lists(xs: Rows) -> Float:
    return foldl(lambda t, x: t + x.sum(), 0.0, xs) + sum(mapped(norm, xs))


def by_patterns(xs: Rows) -> Float:
    match xs:
        case [first, second, *_]:
            return first.sum() * second.sum()
        case _:
            return 0.0


def in_pairs(xs: Rows) -> Float:
    t = 0.0
    for a, b in zip(xs, reversed(xs)):
        t += a[0] * b[-1]
    for i, x in enumerate(xs):
        t += i * x.mean()
    return t


def element_by_element(xs: Rows) -> Float:
    t = 0.0
    for x in xs:
        for v in x:
            t += v * v
    return t


def the_longest(xs: Rows) -> Float:
    best = xs[0]
    for x in xs:
        if len(x) > len(best):
            best = x
    return norm(best) + max(xs, key=lambda x: len(x)).sum()


def put_together(xs: Rows) -> Float:
    return norm(relay.cat((xs[0], xs[1])))


LOSSES = [
    over_a_loop,
    by_place,
    by_a_function,
    by_a_local_function,
    by_functions_over_lists,
    by_patterns,
    in_pairs,
    element_by_element,
    the_longest,
    put_together,
]
REFERENCES: dict[str, Any] = {
    "over_a_loop": lambda xs: sum((x * x).sum() * len(x) for x in xs),
    "by_place": lambda xs: xs[0].sum() + xs[-1].max() * xs[1][2],
    "by_a_function": lambda xs: sum((x * x).sum() for x in xs),
    "by_a_local_function": lambda xs: sum((0.5 * x).sum() for x in xs),
    "by_functions_over_lists": lambda xs: sum(x.sum() + (x * x).sum() for x in xs),
    "by_patterns": lambda xs: xs[0].sum() * xs[1].sum(),
    "in_pairs": lambda xs: (
        sum(a[0] * b[-1] for a, b in zip(xs, xs[::-1], strict=True))
        + sum(i * x.mean() for i, x in enumerate(xs))
    ),
    "element_by_element": lambda xs: sum((x * x).sum() for x in xs),
    "the_longest": lambda xs: (xs[1] * xs[1]).sum() + xs[1].sum(),
    "put_together": lambda xs: (xs[0] * xs[0]).sum() + (xs[1] * xs[1]).sum(),
}


@pytest.mark.parametrize("function", LOSSES)
def test_values_and_gradients_are_those_of_torch(function: Callable[..., Float]) -> None:
    loss, given = relay(function), rows()
    leaves = [x.clone().requires_grad_() for x in rows()]
    expected = REFERENCES[function.__name__](leaves)
    gradients = torch.autograd.grad(expected, leaves, allow_unused=True)
    torch.testing.assert_close(loss(given), expected.detach())
    torch.testing.assert_close(loss.interpret(given), expected.detach())
    found = relay.grad(loss)(given).to_list()
    for mine, own, x in zip(found, gradients, given, strict=True):
        torch.testing.assert_close(mine, torch.zeros_like(x) if own is None else own)
    joined = [x.clone().requires_grad_() for x in rows()]
    loss(joined).backward()
    for x, own in zip(joined, gradients, strict=True):
        torch.testing.assert_close(x.grad, torch.zeros_like(x) if own is None else own)


def doubled(xs: Rows) -> Rows:
    return [x * 2.0 for x in xs]


def doubled_by_append(xs: Rows) -> Rows:
    found = []
    for x in xs:
        found.append(x * 2.0)
    return found


def doubled_in_an_annotated_list(xs: Rows):
    found: list[Tensor[Float, (Any,)]] = []
    for x in xs:
        found.append(x * 2.0)
    found.append(xs[0])
    found.pop()
    return found


def doubled_in_an_annotated_comprehension(xs: Rows):
    found: list[Tensor[Float, (Any,)]] = [x * 2.0 for x in xs]
    return found


MAPS = [
    doubled,
    doubled_by_append,
    doubled_in_an_annotated_list,
    doubled_in_an_annotated_comprehension,
]


@pytest.mark.parametrize("function", MAPS)
def test_results_are_lists_of_such_tensors(function: Callable[..., Any]) -> None:
    program = relay(function)
    for found in (program(rows()), program.interpret(rows())):
        assert [x.tolist() for x in found] == [[2.0, 4.0], [6.0, 8.0, 10.0], [2.0]]


@relay
def in_a_display(x: Tensor[Float, (N,)]) -> Rows:
    return [x[x > 1.0], x, x[:1]]


@relay
def lengthened(xs: Rows) -> Rows:
    return xs + [xs[0] * 3.0, relay.ones((4,))] + sorted(xs, key=lambda x: len(x))[:1]  # noqa: RUF005


def test_displays_slices_and_sums_of_lists_hold_tensors_of_all_sizes() -> None:
    found = in_a_display(torch.tensor([1.0, 2.0, 3.0]))
    assert [x.tolist() for x in found] == [[2.0, 3.0], [1.0, 2.0, 3.0], [1.0]]
    longer = lengthened(rows())
    assert [len(x) for x in longer] == [2, 3, 1, 2, 4, 1]
    assert longer[3].tolist() == [3.0, 6.0]


@relay
def chosen(xs: Rows, i: Int) -> Tensor[Float, (Any,)]:
    return xs[i] if i > 0 else relay.zeros((7,))


def test_an_element_is_a_result_of_any_size() -> None:
    assert chosen(rows(), 1).tolist() == [3.0, 4.0, 5.0]
    assert chosen(rows(), 0).tolist() == [0.0] * 7


@relay
def products(xs: list[Tensor[Float, (Any, K)]], w: Tensor[Float, (K,)]) -> Float:
    t = 0.0
    for x in xs:
        t += (x @ w).sum()
    return t


def test_sizes_with_names_are_the_same_in_all_elements() -> None:
    w = torch.arange(4.0)
    given = [torch.ones(2, 4), torch.ones(3, 4)]
    torch.testing.assert_close(products(given, w), torch.tensor(30.0))
    by_rows, by_weight = relay.grad(products)(given, w)
    assert [tuple(g.shape) for g in by_rows] == [(2, 4), (3, 4)]
    assert by_weight.tolist() == [5.0] * 4
    with pytest.raises(RunError, match=r"dimension 1 of `xs\[1\]` is 5, not 4"):
        products([torch.ones(2, 4), torch.ones(3, 5)], w)


@dataclass(frozen=True)
class Document:
    """Sentences, as the numbers of their words, and a label."""

    sentences: list[Tensor[Int, (Any,)]]
    label: Int


@relay
def words(documents: list[Document]) -> Int:
    n = 0
    for document in documents:
        for sentence in document.sentences:
            n += len(sentence)
        n += document.label
    return n


@relay
def picked(pairs: list[tuple[Tensor[Float, (Any,)], Int]]) -> Float:
    t = 0.0
    for x, i in pairs:
        t += x[i]
    return t


@relay
def summed(batches: list[list[Tensor[Float, (Any,)] | None]]) -> Float:
    t = 0.0
    for batch in batches:
        for x in batch:
            if x is not None:
                t += x.sum()
    return t


def test_such_lists_stand_in_data_tuples_lists_and_beside_none() -> None:
    sentences = [torch.tensor([4, 2]), torch.tensor([7])]
    documents = [Document(sentences, torch.tensor(3)), Document([], torch.tensor(1))]
    assert int(words(documents)) == 7
    assert float(picked([(torch.tensor([1.0, 2.0]), 1), (torch.tensor([5.0]), 0)])) == 7.0
    assert float(summed([[rows()[0], None], rows()])) == 19.0


@relay_model
def embedded(xs: list[Tensor[Float, (Any, 3)]]) -> Float:
    t = 0.0
    for x in xs:
        t += relay.linear(x, out_features=2).sum()
    return t


def test_models_take_such_lists_and_are_exported() -> None:
    model = relay.create_model(embedded, seed=0)
    given = [torch.ones(2, 3), torch.ones(1, 3)]
    value, gradients = relay.value_and_grad(model, embedded, (given,))
    torch.testing.assert_close(value, model(given).detach())
    torch.testing.assert_close(gradients["linear_1.weight"], torch.full((2, 3), 3.0))
    torch.testing.assert_close(relay.export_model(model)(given), value)


def test_types_are_shown_as_they_are_annotated() -> None:
    assert "list[Tensor[Float, (Any, K)]]" in str(products.type)
    loss = relay(over_a_loop)
    with pytest.raises(RunError, match=r"`xs\[1\]` is Tensor\[Float, \(Any,\)\]"):
        loss([torch.ones(2), torch.ones(2, 2)])


def stacked(xs: Rows):
    return relay.stack(xs)


def test_tensors_of_different_sizes_make_no_tensor() -> None:
    with pytest.raises(CheckError, match="give the size a name"):
        relay(stacked).check()


def test_texts_of_such_programs_are_read_back() -> None:
    text = str(lengthened)
    assert str(relay.parse(text)) == text
