"""Refused uses of Relay's operators: those without a counterpart, and conversions."""

from __future__ import annotations

import pytest

from pyrelay import api
from pyrelay.diagnostics.diagnostic import CheckError
from pyrelay.relay05.table import UNSUPPORTED
from tests.relay.reading import HEADER


@pytest.mark.parametrize(
    "text",
    [
        "reshape(%x, newshape=[-5])",
        "argmax(%x, select_last_index=True)",
        'nn.conv2d(%x, %x, data_layout="NCHW16c")',
        'nn.conv2d(%x, %x, out_dtype="uint16")',
        'nn.dense(%x, %x, auto_scheduler_rewritten_layout="4o")',
        "take(%x, %x, batch_dims=1)",
        "strided_slice(%x, begin=[0, 0], end=[1])",
        'cast(%x, dtype="uint16")',
        'take(%x, %x, axis=0, mode="raise")',
        "strided_slice(%x, begin=[3], end=[0], strides=[0])",
        'nn.pad(%x, pad_width=[[0, 0]], pad_mode="wrap")',
        'topk(%x, ret_type="none")',
        "clip(%x, a_min=None, a_max=1f)",
        'reshape(%x, newshape="a")',
        'image.resize2d(%x, size=[4, 4], method="cubic")',
        'image.resize2d(%x, size=[4, 4], method="nearest_neighbor")',
        'nn.conv3d(%x, %x, kernel_layout="OIHW")',
    ],
)
def test_uses_without_a_counterpart_are_refused_by_name(text: str) -> None:
    with pytest.raises(CheckError) as caught:
        api.parse(f"{HEADER}def @main(%x: Tensor[(2, 2), float32]) {{ {text} }}")
    (found,) = caught.value.diagnostics
    assert found.code == "RL617"
    assert text.split("(")[0] in found.title


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nn.matmul(%x, %y)", "takes operands of ranks 2 \\(or more\\) and 2, not of 2 and 3"),
        ("nn.batch_matmul(%x, %y)", "takes operands of rank 3, not of 2 and 3"),
        ("sum(%x < 1f)", "takes numbers, not bools"),
        ("argmax(%y, axis=[0], exclude=True)", "is supported with one `axis`, or with all"),
        ("contrib_reverse_reshape(%x, newshape=[0, 0, 0])", "has the code 0 in `newshape`"),
        ("one_hot(%z, 1f, 0f, depth=2, axis=4)", "has no axis 4: the result has 2 dims"),
    ],
)
def test_uses_that_types_show_to_be_none_are_refused_by_name(text: str, why: str) -> None:
    params = "%x: Tensor[(2, 2), float32], %y: Tensor[(2, 2, 2), float32], %z: Tensor[(2), int32]"
    with pytest.raises(CheckError, match=f"Relay's `{text.split('(')[0]}` {why}") as caught:
        api.parse(f"{HEADER}def @main({params}) {{ {text} }}").check()
    assert caught.value.diagnostics[0].primary is not None


@pytest.mark.parametrize("name", sorted(UNSUPPORTED))
def test_operators_without_a_counterpart_are_refused_by_name(name: str) -> None:
    with pytest.raises(CheckError, match=f"Relay's `{name}` has no counterpart"):
        api.parse(f"{HEADER}def @main(%x: float32) {{ {name}(%x) }}")


@pytest.mark.parametrize("text", ["%x + 1", "%x * 1f64", "concatenate((%x, 1i64))", "exp(1)"])
def test_nothing_is_converted(text: str) -> None:
    module = api.parse(f"{HEADER}def @main(%x: Tensor[(2), float32]) {{ {text} }}")
    with pytest.raises(CheckError):
        module.check()


def test_what_an_operator_says_of_its_weight_decides_and_must_hold() -> None:
    text = "def @main(%x: Tensor[(2, 3), float32], %w{}) {{ nn.dense(%x, %w, units=4) }}"
    open_weight = api.parse(HEADER + text.format(""))["main"]
    assert "w: Tensor[Float, (4, 3)]" in open_weight.type
    with pytest.raises(CheckError):
        api.parse(HEADER + text.format(": Tensor[(5, 3), float32]")).check()
