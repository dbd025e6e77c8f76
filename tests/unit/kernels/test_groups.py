"""Which loop a kernel function is."""

from __future__ import annotations

import pytest
import torch

from pyrelay.ir.dims import Dim
from pyrelay.ir.expr import type_of
from pyrelay.kernels.groups import Domain, Group, Kind
from pyrelay.kernels.places import Places
from pyrelay.kernels.reading import shape_of
from pyrelay.runtime.compile.evaluator import evaluate
from tests.unit.kernels.kernels import kernel, module
from tests.unit.kernels.recognised import NoGroup, group_of

N = Dim.of("N")
SOFTMAX = """def @main[N: Dim](%x: Tensor[(N, 8), float32]) {
    let %m = amax(%x, dim=(1,), keepdim=True);
    let %e = exp(%x - %m);
    %e / sum(%e, dim=(1,), keepdim=True)
}"""


def group(text: str) -> Group:
    return group_of(kernel(text))


def test_a_chain_is_one_pass_over_places() -> None:
    found = group(
        "def @main[N: Dim](%x: Tensor[(N, 8), float32]) {"
        " let %y = exp(%x); (%y, reshape(%y * 2.0f32, shape=(2 * N, 4))) }"
    )
    assert found.kind is Kind.POINTWISE
    assert [o.result for o in found.outputs] == [0, 1]
    assert found.shape == (N, Dim.of(8))


def test_a_softmax_is_a_pass_over_rows() -> None:
    found = group(SOFTMAX)
    assert found.kind is Kind.ROWS
    assert found.domain == Domain((N, Dim.of(8)), (1,))
    assert [r.combine for r in found.reductions] == ["max", "add"]
    assert found.leaves == {r.var for r in found.reductions}


def test_dims_in_a_row_count_as_one() -> None:
    n, c, h = Dim.of("N"), Dim.of(4), Dim.of(6)
    first = Domain((n, c, h, h), (2, 3))
    assert first.merged == Domain((4 * n, Dim.of(36)), (1,)).merged
    assert first.merged != Domain((n, c, h, h), (0, 2, 3)).merged
    assert Domain((n, Dim.of(1), h), (1, 2)).merged == Domain((n, h), (1,)).merged


def test_reductions_over_the_same_places_in_other_shapes_are_one_pass() -> None:
    found = group(
        "def @main[N: Dim](%x: Tensor[(N, 4, 6), float32]) {"
        " let %s = sum(%x, dim=(1, 2)); let %r = reshape(exp(%x), shape=(N, 24));"
        " (%s, amax(%r, dim=(1,))) }"
    )
    assert found.kind is Kind.ROWS
    assert found.domain is not None
    places = Places()
    index = places.index("i", found.domain.shape)
    for output in found.outputs:
        assert found.domain.place(places, index, shape_of(type_of(output.value))) == index[:1]


def test_an_overwritten_parameter_is_an_output() -> None:
    text = """def @main(%p: Tensor[(3, 4), float32], %g: Tensor[(3, 4), float32],
        %q: Tensor[(5,), float32]) {
        let %_ = overwrite(%p, %p - %g * 0.5f32);
        let %_ = overwrite(%q, %q * 0.5f32);
        ()
    }"""
    found = group(text)
    assert found.kind is Kind.UPDATES
    assert [(o.result, o.overwrites) for o in found.outputs] == [(None, 0), (None, 2)]
    p, g, q = torch.randn(3, 4), torch.randn(3, 4), torch.randn(5)
    expected = p - g * 0.5, q * 0.5
    evaluate(module(text), "main", (p, g, q))
    torch.testing.assert_close((p, q), expected)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def @main(%x: Tensor[(3, 4), float32]) { sort(exp(%x)) }", "called"),
        (
            "def @main(%x: Tensor[(3, 4), float32]) { (sum(%x, dim=(0,)), sum(%x, dim=(1,))) }",
            "different dims",
        ),
        (
            "def @main(%x: Tensor[(3, 4), float32], %y: Tensor[(5,), float32]) {"
            " (sum(%x, dim=(0,)), exp(%y)) }",
            "neither",
        ),
        ("def @main(%x: Tensor[(3, 4), float32]) { () }", "nothing is stored"),
    ],
)
def test_what_is_no_loop_is_refused(text: str, why: str) -> None:
    with pytest.raises(NoGroup, match=why):
        group(text)
