"""Stretches of convolutions are in the layout NHWC, with conversions at their ends alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

from pyrelay import options
from pyrelay.ir.module import Module
from pyrelay.ir.verify import Stage, VerifyError, verify
from pyrelay.passes.base import Context, Pass
from pyrelay.passes.insertion import insert
from pyrelay.passes.normalise.write_layouts import WriteLayouts
from pyrelay.passes.rewrites.convert_layout import ConvertLayout
from pyrelay.runtime.compile.program import Program
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text
from tests.unit.passes.programs import normal

IMAGE = "Tensor[(2, 4, 8, 8), float32]"
WEIGHT = "Tensor[(4, 4, 3, 3), float32]"
CONTEXT = Context(entry="f")


def converted(body: str, more: str = "") -> list[str]:
    """Return the bindings of a function `f` with a convolution's operands behind the pass."""
    text = f"""
    def @f(%x: {IMAGE}, %w: {WEIGHT}{more}) {{
      {body}
    }}
    """
    module = ConvertLayout().run(normal(text), CONTEXT)
    verify(module, Stage.ANF)
    written = WriteLayouts().run(module, CONTEXT)
    verify(written, Stage.ANF)
    assert "NHWC" not in to_text(written)
    lines = to_text(module).splitlines()
    return [line.split("=", 1)[1].strip(" ;") for line in lines if "let " in line]


def operators(bindings: list[str]) -> list[str]:
    """Return the operators of bindings; a conversion as the layout that it gives."""
    names = [b.split("(", 1)[0] for b in bindings]
    layouts = [b.split('"')[1] if "to_layout" in b else "" for b in bindings]
    return [layout or name for name, layout in zip(names, layouts, strict=True)]


def test_a_stretch_is_converted_at_its_ends() -> None:
    found = converted("""
      let %a = relu(conv2d(%x, %w, padding=1));
      let %b = max_pool2d(tanh(conv2d(%a, %w, padding=1)) + %a, kernel_size=2);
      flatten(%b, start_dim=1)
    """)
    stretch = ["conv2d", "relu", "conv2d", "tanh", "add", "max_pool2d"]
    assert operators(found) == ["NHWC", *stretch, "NCHW", "flatten"]


def test_uses_of_one_value_share_a_conversion() -> None:
    found = converted("conv2d(%x, %w, padding=1) * %x + conv2d(%x, %w, padding=1)")
    assert operators(found) == ["NHWC", "conv2d", "multiply", "conv2d", "add", "NCHW"]
    found = converted("""
      let %a = conv2d(%x, %w);
      (mean(%a, dim=(2, 3)), sum(%a, dim=1))
    """)
    assert operators(found)[:5] == ["NHWC", "conv2d", "NCHW", "mean", "sum"]


def test_operands_along_channels_are_converted_and_numbers_are_not() -> None:
    found = converted("conv2d(%x, %w) * %s + 2.0f32", ", %s: Tensor[(4, 1, 1), float32]")
    assert operators(found) == ["NHWC", "conv2d", "NHWC", "multiply", "add", "NCHW"]
    found = converted("conv2d(%x, %w) * %s", ", %s: Tensor[(6,), float32]")
    assert operators(found) == ["NHWC", "conv2d", "NCHW", "multiply"]


def test_reads_of_sizes_convert_nothing() -> None:
    found = converted("dim_size(conv2d(%x, %w), dim=1)")
    assert "NCHW" not in operators(found)


def test_a_conversion_in_a_branch_ends_with_it() -> None:
    found = converted(
        """
        if (%c) { relu(conv2d(%x, %w, padding=1)) } else { tanh(conv2d(%x, %w, padding=1)) }
        """,
        ", %c: bool",
    )
    assert operators([f for f in found if "if" not in f[:3]]).count("NHWC") == 2


def test_functions_with_convolutions_are_inlined() -> None:
    text = f"""
    def @block(%x: {IMAGE}, %w: {WEIGHT}) -> {IMAGE} {{ relu(conv2d(%x, %w, padding=1)) + %x }}
    def @f(%x: {IMAGE}, %w: {WEIGHT}) {{ @block(@block(%x, %w), %w) }}
    """
    module = ConvertLayout().run(normal(text), CONTEXT)
    assert list(module.functions) == ["f"]
    assert to_text(module).count("to_layout") == 2


def test_programs_without_convolutions_stay() -> None:
    module = normal(f"def @f(%x: {IMAGE}) {{ max_pool2d(relu(%x), kernel_size=2) }}")
    assert ConvertLayout().run(module, CONTEXT) is module
    assert WriteLayouts().run(module, CONTEXT) is module


def test_the_verifier_finds_a_conversion_that_a_pass_forgets() -> None:
    text = f"""
    def @f(%x: {IMAGE}) -> {IMAGE} {{
      let %a: Tensor[(2, 4, 8, 8), float32, NHWC] = to_layout(%x, layout="NHWC");
      let %b: {IMAGE} = to_layout(%a, layout="NCHW");
      %b
    }}
    """
    module = normal(text)
    verify(module, Stage.ANF)
    for call in ("relu(%a)", "flip(%a, dims=(1,))"):
        forgotten = to_text(module).replace('to_layout(%a, layout="NCHW")', call)
        with pytest.raises(VerifyError, match="NHWC"):
            verify(parse_module(forgotten), Stage.ANF)


@dataclass(frozen=True)
class ForgetsConversions(Pass):
    """Take a conversion back to NCHW for its operand."""

    name: ClassVar = "forgets-conversions"
    needs: ClassVar = Stage.ANF

    def run(self, module: Module, context: Context) -> Module:
        text = to_text(module)
        assert "NCHW" in text
        return parse_module(text.replace('layout="NCHW"', 'layout="NHWC"'))


def test_a_pass_that_forgets_a_conversion_is_named_when_it_has_run() -> None:
    text = f"def @f(%x: {IMAGE}, %w: {WEIGHT}) {{ mean(relu(conv2d(%x, %w)), dim=(2, 3)) }}"
    program = Program(parse_module(text), "f")
    with (
        options(lowering="torch", layout="NHWC", verify=True),
        insert(ForgetsConversions(), after="convert-layout"),
        pytest.raises(VerifyError, match="forgets-conversions"),
    ):
        program.compiled(torch.device("cpu"))
