"""Kernels of one pass over places: values, forms of operands, and what their text looks like."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import pytest
import torch

from pyrelay.kernels.calling import Form, Stride
from pyrelay.lower_triton.launching.launch import KernelCall
from tests.golden import Golden
from tests.kernels.running import DEVICE, check, kernels, launch, run, text
from tests.unit.kernels.kernels import kernel, lower

CHAIN = """def @chain[N: Dim](%x: Tensor[(N, 8), float32], %b: Tensor[(8,), float32]) {
    let %h = tanh(%x + %b);
    let %gate = sigmoid(%h * 2.0f32);
    %gate * %h + %x
}"""
SCALED = """def @scaled[N: Dim, M: Dim](%x: Tensor[(N, M), float32], %k: int64) {
    let %y = %x * cast(%k, dtype=float32);
    (%y, greater(%y, 0.0f32))
}"""
TURNED = """def @turned[N: Dim, M: Dim](%x: Tensor[(N, M), float32], %y: Tensor[(M, N), float32]) {
    let %t = transpose(%x, dim0=0, dim1=1);
    exp(%t) - %y
}"""
GATHERED = """def @gathered[N: Dim, K: Dim](
    %table: Tensor[(K, 4), float32], %i: Tensor[(N,), int64]) {
    let %rows = embedding(%i, %table);
    relu(%rows)
}"""
DESCENT = """def @descent(%p: Tensor[(6, 5), float32], %g: Tensor[(6, 5), float32]) {
    let %_ = overwrite(%p, %p - %g * 0.5f32);
    ()
}"""


@pytest.mark.parametrize("rows", [0, 1, 3, 700])
def test_a_chain_gives_what_the_evaluator_gives(rows: int) -> None:
    check(CHAIN, torch.randn(rows, 8), torch.randn(8))


def test_operands_may_have_any_strides() -> None:
    check(CHAIN, torch.randn(8, 9).T, torch.randn(16)[::2])
    check(CHAIN, torch.randn(8).expand(5, 8), torch.randn(1).expand(8))
    check(TURNED, torch.randn(40, 7), torch.randn(7, 40))
    check(TURNED, torch.randn(7, 40).T, torch.randn(40, 7).T)


@pytest.mark.parametrize("k", [0, 1, -7, torch.tensor(3)])
def test_a_number_comes_as_it_is_or_as_a_tensor(k: object) -> None:
    check(SCALED, torch.randn(5, 3), k)


@pytest.mark.parametrize("flag", [True, False, torch.tensor(True)])
def test_bools_and_sizes_come_as_numbers(flag: object) -> None:
    source = """def @chosen[N: Dim](%x: Tensor[(3,), float32], %flag: bool, %n: Size[N]) {
        (where(%flag, %x, 0.0f32), %x * cast(%n, dtype=float32), logical_not(%flag))
    }"""
    check(source, torch.randn(3), flag, 7)


def test_names_that_triton_does_not_take_are_changed() -> None:
    source = """def @`λ 1`(%λ: Tensor[(3,), float32], %`a b`: Tensor[(3,), float32]) {
        let %float = %λ + %`a b`;
        let %tl = exp(%float);
        let %i = %tl * %tl;
        %i + %float
    }"""
    check(source, torch.randn(3), torch.randn(3))


def test_places_may_be_values() -> None:
    table = torch.randn(9, 4)
    check(GATHERED, table, torch.tensor([8, 0, 3, 3, 1]))
    check(GATHERED, table, torch.zeros(0, dtype=torch.int64))


def test_places_outside_are_not_read() -> None:
    table = torch.full((40, 4), math.nan)
    table[10:13] = 1.0
    # Beside these rows lie others that no place may reach.
    found, _ = launch(kernel(GATHERED), [table[10:13], torch.tensor([0, 3, 1, 27])])
    assert not found.isnan().any()


def test_a_parameter_is_overwritten_where_it_lies() -> None:
    check(DESCENT, torch.randn(6, 5), torch.randn(6, 5))
    check(DESCENT, torch.randn(5, 6).T, torch.randn(6, 5))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_floats_of_every_width(dtype: str) -> None:
    operands = [
        torch.randn(5, 8).to(getattr(torch, dtype)),
        torch.randn(8).to(getattr(torch, dtype)),
    ]
    check(CHAIN.replace("float32", dtype).replace("2.0f32", f"2.0{SUFFIXES[dtype]}"), *operands)


SUFFIXES = {"bfloat16": "bf16", "float16": "f16", "float64": "f64"}


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_integers_of_every_width(dtype: str) -> None:
    source = f"""def @whole[N: Dim](%x: Tensor[(N,), {dtype}], %y: Tensor[(N,), {dtype}]) {{
        let %s = %x * %y + %x;
        (%s, floor_divide(%x, %y), mod(%x, %y), maximum(%x, %y), less(%x, %y),
         cast(%x, dtype=float32))
    }}"""
    low = 0 if dtype == "uint8" else -100
    x = torch.randint(low, 100, (37,)).to(getattr(torch, dtype))
    y = torch.randint(1, 9, (37,)).to(getattr(torch, dtype))
    check(source, x, y)


def test_bools_are_combined() -> None:
    source = """def @truth[N: Dim](%a: Tensor[(N,), bool], %b: Tensor[(N,), bool]) {
        (logical_and(%a, %b), logical_or(%a, %b), logical_xor(%a, %b), logical_not(%a),
         less(%a, %b), where(%a, 1.5f32, -2.0f32), cast(%a, dtype=int64))
    }"""
    check(source, torch.tensor([True, True, False, False]), torch.tensor([True, False] * 2))


def test_not_a_number_and_infinity_go_through() -> None:
    source = """def @special[N: Dim](%x: Tensor[(N,), float32], %y: Tensor[(N,), float32]) {
        (maximum(%x, %y), minimum(%x, %y), relu(%x), tanh(%x), sigmoid(%x), exp(%x), log(%x),
         sqrt(%x), sign(%x), softplus(%x), %x / %y, isfinite(%x), isnan(%x), erf(%x))
    }"""
    special = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -2.0, 1e-30])
    check(source, special, special.flip(0))


def test_a_value_of_rank_0_is_one_program() -> None:
    source = "def @one(%x: float32, %y: float32) { tanh(%x) * %y }"
    check(source, torch.tensor(0.3), torch.tensor(-2.0))
    (found,) = kernels(source)
    assert "program_id" not in found.text


def test_outputs_in_other_shapes_are_one_pass() -> None:
    source = """def @shapes[N: Dim](%x: Tensor[(N, 4, 6), float32]) {
        let %y = exp(%x);
        (%y, reshape(%y, shape=(N, 24)), reshape(%y, shape=(4 * N, 2, 3)),
         transpose(%y, dim0=1, dim1=2))
    }"""
    check(source, torch.randn(5, 4, 6))
    (found,) = kernels(source)
    assert found.text.count("tl.load") == 2


def test_an_element_is_loaded_once_and_a_place_that_is_the_number_needs_no_division() -> None:
    source = """def @once[N: Dim, M: Dim](
        %x: Tensor[(N, M), float32], %y: Tensor[(N, M), float32]) {
        let %a = %x * %y;
        let %b = reshape(reshape(%a, shape=(N * M,)), shape=(N, M));
        %b + %x
    }"""
    (found,) = kernels(source)
    assert found.text.count("tl.load") == 2
    assert "//" not in found.text
    assert "%" not in found.text.split("# ")[0]
    assert not any(isinstance(a, Stride) for a in found.arguments)


def test_half_types_are_rounded_where_the_program_says_so() -> None:
    source = """def @rounded[N: Dim](%x: Tensor[(N,), float32]) {
        cast(cast(%x, dtype=bfloat16), dtype=float32)
    }"""
    x = torch.randn(50)
    # Triton's interpreter cuts off what a device rounds to the nearest.
    torch.testing.assert_close(run(kernel(source), [x]), x.bfloat16().float(), rtol=2**-7, atol=0)
    assert not torch.equal(run(kernel(source), [x]), x)


@pytest.mark.parametrize(
    ("dtype", "held"), [("bfloat16", "0.10009765625"), ("float16", "0.0999755859375")]
)
def test_a_number_in_a_half_type_is_the_one_that_a_tensor_holds(dtype: str, held: str) -> None:
    source = f"""def @moved[N: Dim](%x: Tensor[(N,), {dtype}], %g: Tensor[(N,), {dtype}]) {{
        %x - %g * 0.1{SUFFIXES[dtype]}
    }}"""
    assert held in text(source)
    g = torch.randn(50).to(getattr(torch, dtype))
    check(source, g * 0.1, g)  # what is left is of the size of the rounding


def test_wide_places_are_computed_in_64_bits() -> None:
    assert "tl.program_id(0).to(tl.int64)" in text(CHAIN, is_wide=True)
    function = kernel(CHAIN)
    x, b = torch.randn(5, 8), torch.randn(8)
    wide = KernelCall(
        function,
        lambda layout, target: lower(function)(type(layout)(layout.operands, True), target),
        DEVICE,
    )
    torch.testing.assert_close(run(function, [x, b], wide), run(function, [x, b]))


def test_a_long_chain_needs_no_stack() -> None:
    lines = "\n".join(f"let %x{i + 1} = %x{i} * 1.0001f32;" for i in range(3000))
    source = f"def @long(%x0: Tensor[(4,), float32]) {{ {lines} %x3000 }}"
    check(source, torch.randn(4))


@pytest.mark.parametrize(
    ("name", "source", "forms"),
    [
        ("chain", CHAIN, ()),
        ("scaled", SCALED, (Form.STRIDED, Form.NUMBER)),
        ("turned", TURNED, ()),
        ("gathered", GATHERED, ()),
        ("descent", DESCENT, (Form.STRIDED, Form.CONTIGUOUS)),
    ],
)
def test_the_text_of_a_kernel(
    name: str, source: str, forms: tuple[Form, ...], golden: Golden
) -> None:
    golden(f"{name}.txt", text(source, *forms))


def test_another_process_writes_the_same_text() -> None:
    code = (
        "import os; os.environ['TRITON_INTERPRET'] = '1'\n"
        "from tests.kernels import test_pointwise as t\n"
        "print(t.text(t.CHAIN), t.text(t.GATHERED), t.text(t.TURNED))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        check=True,
        text=True,
    )
    assert found.stdout == f"{text(CHAIN)} {text(GATHERED)} {text(TURNED)}\n"


BATCHED = """def @batched[B: Dim, N: Dim, M: Dim](
    %x: Tensor[(B, M, N), float32], %y: Tensor[(B, N, M), float32], %b: Tensor[(M,), float32]) {
    let %t = transpose(%x, dim0=1, dim1=2);
    (%t * %y + %b, cast(greater(%t, 0.0f32), dtype=float32))
}"""
CHANNELS_LAST = """def @last[N: Dim](%x: Tensor[(N, 9, 5, 4), float32], %b: Tensor[(9,), float32]) {
    permute(%x, dims=(0, 2, 3, 1)) + %b
}"""


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 70), (2, 70, 3), (3, 40, 33), (0, 4, 4)])
def test_operands_may_lie_across_the_result(shape: tuple[int, int, int]) -> None:
    b, n, m = shape
    check(BATCHED, torch.randn(b, m, n), torch.randn(b, n, m), torch.randn(m))


def test_images_may_get_their_channels_last() -> None:
    check(CHANNELS_LAST, torch.randn(3, 9, 5, 4), torch.randn(9))
    found = "\n".join(x for x in text(CHANNELS_LAST).splitlines() if "# " not in x)
    # Rows and columns of an image are one side of the rectangles, with no division in it.
    assert "row" in found
    assert "%" not in found.replace("tile // tiles % rows", "").replace("tile % tiles", "")


def test_no_rectangles_are_made_of_few_places() -> None:
    narrow = CHANNELS_LAST.replace("9", "3")
    check(narrow, torch.randn(3, 3, 5, 4), torch.randn(3))
    assert "BLOCK" in text(narrow)
