"""Programs printed as Python compile to what they were printed from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from pyrelay import Bool, Dim, Float, Fn, Int, Ref, Tensor, float64, prelude, relay, relay_model
from pyrelay.decorators import RelayFunction
from pyrelay.diagnostics.source import NOWHERE
from pyrelay.infer import infer
from pyrelay.ir.expr import Function
from pyrelay.ir.module import Module
from pyrelay.ir.op import Clash, Op, Sample
from pyrelay.ir.types import FnType, dim_names
from pyrelay.operators.table import ALL
from pyrelay.prelude import List
from pyrelay.translate.types.annotation import type_names
from tests.features.language import data_programs, match_programs
from tests.golden import Golden
from tests.ops.checks import samples
from tests.ops.materials import shape_names
from tests.ops.programs import call_program
from tests.python_text import assert_reads_back, load
from tests.scale.programs import chain, nested

pytestmark = pytest.mark.host("prints programs and compiles them again")

NOT_ALONE = {"param", "batch_norm", "equal_sizes", "solved_size"}
"""Operators that Python calls only for a model, of whose result it gives the first field, or that
inference writes again."""
PLAIN = [op for op in ALL if op.name not in NOT_ALONE]


def called(op: Op, sample: Sample, names: Mapping[int, Any]) -> Module | None:
    """Return a function that calls an operator on the types of a sample, with sizes of these
    names; None if the operator does not take them, or finds a size."""
    try:
        program, result = call_program(op, sample, names)
    except Clash:
        return None
    types = tuple(p.ty for p in program.params if p.ty is not None)
    sizes = type_names(types)
    if dim_names(result.ty) - {s.name for s in sizes}:
        return None  # which the sample names apart from inference
    function = Function(
        tuple(program.params),
        program.builder.block(result),
        type_params=sizes,
        name="main",
        ty=FnType(types, result.ty, sizes),
        span=NOWHERE,
    )
    return infer(Module({"main": function}, {}))


@pytest.mark.parametrize("op", PLAIN, ids=lambda op: op.name)
def test_every_operator_reads_back(op: Op, tmp_path: Path) -> None:
    for sample in samples(op):
        module = called(op, sample, shape_names(sample)) or called(op, sample, {})
        if module is not None:
            assert_reads_back(module, "main", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("op", PLAIN, ids=lambda op: op.name)
def test_every_operator_reads_back_where_sizes_are_numbers(op: Op, tmp_path: Path) -> None:
    for module in (called(op, sample, {}) for sample in samples(op)):
        if module is not None:
            assert_reads_back(module, "main", tmp_path)


M, N = Dim("M"), Dim("N")
TABLE = relay.const(torch.tensor([[0.1, -math.inf], [float("nan"), -0.0]]))
LARGE = relay.const(torch.arange(40, dtype=torch.bfloat16).reshape(5, 8))


@relay
def cube(x: Float) -> Float:
    return x * x * x


@relay
def scaled(x: Tensor[float64, (N,)], k: Int) -> Tensor[float64, (N,)]:
    half = 0.5
    return x * half + k if k > 3 else x * 1e400


@relay
def straight(x: Tensor[Float, (N, 2)], k: Int, b: Bool) -> tuple[Tensor[Float, (N, 2)], Int]:
    y = x @ TABLE * 2 + 0.5
    n = x.shape[0]
    pair = (y.reshape(n * 2), (k + 1, not b))
    return -pair[0].reshape((n, 2)), pair[1][0] // 2


@relay
def indexed(x: Tensor[Float, (N, 4, M)], i: Int):
    chosen = x[x.sum((1, 2)) > 0]
    return chosen, relay.nonzero(x), x[1:, None, ..., 0], x[i, ::2], x[:, -1, : M // 2]


@relay
def controlled(x: Tensor[Float, (N,)], k: Int) -> tuple[Float, Tensor[Float, (N,)]]:
    def squared(y: Tensor[Float, (N,)]):
        return (y * y).sum()

    v, (g,) = relay.value_and_grad(squared, wrt=("y",))(x)
    assert v > 0, "negative"
    if v > 100.0:
        raise ValueError("big")
    for i in range(3):
        if v > i:
            break
        v = v + 1 if k < i and v < 3 else v - 1
    return v * relay.grad(relay.grad(cube))(v), g


@relay
def recursive(x: Tensor[Float, (N,)], k: Int) -> Tensor[Float, (N,)]:
    if k <= 0:
        return x

    def even(n: Int) -> Bool:
        return n == 0 or odd(n - 1)

    def odd(n: Int) -> Bool:
        return n != 0 and even(n - 1)

    return relay.sin(recursive(x, k - 1)) if even(k) else twice(recursive, x, k // 2)


@relay
def twice(
    f: Fn[[Tensor[Float, (N,)], Int], Tensor[Float, (N,)]], x: Tensor[Float, (N,)], k: Int
) -> Tensor[Float, (N,)]:
    return f(f(x, k), k)


@relay
def raised(cell: Ref[Float], by: Float) -> None:
    cell.value += by


@relay
def with_cells(x: Float, k: Int) -> Float:
    cell = relay.ref(x)
    count: Ref[tuple[Int, Ref[Float]]] = relay.ref((k, relay.ref(x)))

    def add(y: Float):
        cell.value = cell.value + y
        count.value[1].value = y

    add(x)
    raised(cell, 2.0)
    if k > 2:
        add(cell.value)
    return cell.value * count.value[0]


@relay
def sized(n: Dim("K"), x: Tensor[Float, (2 * Dim("K"), 3)]) -> Tensor[Float, (Dim("K"), 6)]:
    return x.reshape((n, 6)) + relay.ones((n, 6))


@relay_model
def network(x: Tensor[Float, (N, 1, 8, 8)]) -> Tensor[Float, (N, 3)]:
    h = relay.batch_norm(relay.conv2d(x, out_channels=4, kernel_size=3))
    return relay.linear(relay.flatten(relay.relu(h), start_dim=1), out_features=3)


@relay_model
def normed(x: Tensor[Float, (N, 3)]) -> Tensor[Float, (N, 3)]:
    return relay.batch_norm(x)


PROGRAMS = {
    f.__name__: f
    for f in (cube, scaled, straight, controlled, recursive, with_cells, sized, indexed)
}


def typed(function: Any) -> Module:
    return function.module


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_read_back_and_look_like_this(name: str, tmp_path: Path, golden: Golden) -> None:
    text = assert_reads_back(typed(PROGRAMS[name]), name, tmp_path)
    assert text == PROGRAMS[name].show("python")
    golden(f"{name}.txt", text)
    assert_reads_back(load(text, tmp_path)[name].module, name, tmp_path)


@pytest.mark.parametrize(
    "body",
    [
        "-> (int64, int64) { let %p = ((1, 2.5), 3); (%p.0.0, %p.1) }",
        "-> ((int32, float32), int64) { let %p = ((1, 2.5), 3); %p }",
        '{ let %p = ("a", ("b", 1)); (%p.0, %p.1.0, %p.1) }',
        "-> int32 { let %f = fn () { 1 }; let %p = (%f, 2); %p.0() + %p.1 }",
    ],
)
def test_values_that_are_known_have_their_names(body: str, tmp_path: Path) -> None:
    assert_reads_back(relay.parse(f"def @main() {body}").typed.ir, "main", tmp_path)


def test_constants_are_exact(tmp_path: Path) -> None:
    @relay
    def constants(x: Tensor[Float, (N, 2)]):
        return TABLE, LARGE, 1e400, -0.0, math.nan, -3, True, x * -1e-30

    text = assert_reads_back(typed(constants), "constants", tmp_path)
    assert "b64decode" in text
    assert "[0.10000000149011612, -math.inf, math.nan, -0.0]" in text


def test_a_model_is_a_function_of_its_parameters_and_cells(tmp_path: Path) -> None:
    text = assert_reads_back(typed(network), "network", tmp_path)
    assert "state: tuple[Ref[Tensor[Float, (4,)]], Ref[Tensor[Float, (4,)]]]" in text


def test_the_output_of_a_layer_that_does_not_train_may_be_the_result(tmp_path: Path) -> None:
    assert "return batch_norm" in assert_reads_back(typed(normed), "normed", tmp_path)


def test_long_programs_are_flat_and_deep_ones_are_made_so(tmp_path: Path) -> None:
    long = infer(chain(1_500))
    text = assert_reads_back(long, "main", tmp_path)
    assert max(map(len, text.splitlines())) < 200
    for in_tail in (True, False):
        text = assert_reads_back(infer(nested(300, in_tail=in_tail)), "main", tmp_path)
        assert max(len(line) - len(line.lstrip()) for line in text.splitlines()) < 200


def test_names_of_the_file_are_not_hidden(tmp_path: Path) -> None:
    @relay
    def relay_1(Float_1: Float, N: Tensor[Float, (N,)], torch: Int) -> Float:  # noqa: N803
        print_ = N.sum()
        match = print_ + Float_1
        return match + torch

    assert_reads_back(typed(relay_1), "relay_1", tmp_path)


MATCHES = {n: f for n, f in vars(match_programs).items() if isinstance(f, RelayFunction)}


@pytest.mark.parametrize("name", MATCHES)
def test_programs_with_matches_lists_and_optionals_read_back(name: str, tmp_path: Path) -> None:
    assert_reads_back(typed(MATCHES[name]), name, tmp_path)


def test_functions_of_the_prelude_are_printed_with_what_uses_them(tmp_path: Path) -> None:
    @relay
    def doubled(xs: List[Float], k: Int) -> tuple[List[Float], Float]:
        ys = prelude.map(lambda x: x * 2.0, [xs[k], 1.0] if k > 0 else xs)
        return ys, prelude.foldl(relay.maximum, 0.0, ys)

    text = assert_reads_back(typed(doubled), "doubled", tmp_path)
    assert "from pyrelay.prelude import Cons, List, Nil" in text


DATA = {f.__name__: f for f in vars(data_programs).values() if isinstance(f, RelayFunction)}


@pytest.mark.parametrize("name", DATA)
def test_programs_over_data_read_back(name: str, tmp_path: Path, golden: Golden) -> None:
    text = assert_reads_back(typed(DATA[name]), name, tmp_path)
    golden(f"{name}.txt", text)
    assert_reads_back(load(text, tmp_path)[name].module, name, tmp_path)


def test_a_case_that_takes_a_part_of_the_last_class_leaves_the_rest_to_the_next() -> None:
    leaf = data_programs.Leaf(torch.tensor(2.0))
    two = data_programs.Node(leaf, leaf)
    assert data_programs.total(data_programs.Node(two, leaf)) == 2.0
