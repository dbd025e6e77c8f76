"""Programs that compilers of tensors are known to fuse, and into how many kernels ours are.

They are those of the tests of Relay's FuseOps, which takes at least as many kernels for each.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.unit.kernels.test_fuse import called, check

X: Final = "%x: Tensor[(4, 8), float32]"
Y: Final = "%y: Tensor[(4, 8), float32]"
ROWS: Final = "%i: Tensor[(3,), int64]"


def diamonds(count: int) -> str:
    """Return a chain of values that are taken apart and come together, of seven operators each."""
    lines: list[str] = []
    last = "%x"
    for n in range(count):
        lines += (
            f"let %a{n} = {last} + 1.0f32;",
            f"let %l{n} = sin(exp(%a{n})); let %r{n} = cos(tanh(%a{n}));",
            f"let %z{n} = %l{n} * %r{n} - %a{n};",
        )
        last = f"%z{n}"
    return " ".join((*lines, last))


def kernels(text: str) -> list[str]:
    """Return what `main` calls after fusion, which changes no value; all kernels are one name."""
    return ["kernel" if n.startswith("kernel.") else n for n in called(check(text))]


@pytest.mark.parametrize(
    ("params", "body"),
    [
        ("%x: Tensor[(10, 20), float32]", "exp(%x + 1.0f32)"),
        (X, diamonds(3)),
        (X, "let %a = transpose(%x, dim0=0, dim1=1); let %b = reshape(%x, shape=(8, 4)); %a + %b"),
        (X, "let %c = cat((%x, %x * 2.0f32), dim=0); cat((%c, %c + 1.0f32), dim=1) * 2.0f32"),
        (f"{X}, {Y}, {ROWS}", "take(cat((%x, %y), dim=0), %i)"),
        (f"{X}, {Y}, {ROWS}", "index_select(cat((%x, %y), dim=0), %i, dim=0)"),
        (X, "cast(softmax(%x, dim=1), dtype=float16)"),
        (X, "let %m = minimum(sum(%x), 1.0f32); where(%m < %x, %m, %x)"),
    ],
    ids=[
        "chain",
        "diamonds",
        "views",
        "tuples in a row",
        "concatenation and elements",
        "concatenation and rows",
        "softmax in half precision",
        "a comparison with a sum",
    ],
)
def test_a_program_is_one_kernel(params: str, body: str) -> None:
    assert kernels(f"def @main({params}) {{ {body} }}") == ["kernel"]


def test_a_view_of_a_kernel_is_none() -> None:
    params = "%x: Tensor[(1, 10, 20), float32]"
    assert kernels(f"def @main({params}) {{ squeeze(exp(%x), dim=0) }}") == ["kernel", "squeeze"]


def test_what_is_between_convolutions_is_a_kernel_for_each() -> None:
    found = kernels("""
        def @main(%x: Tensor[(1, 16, 8, 8), float32], %a: Tensor[(32, 16, 3, 3), float32],
                  %b: Tensor[(32, 32, 1, 1), float32], %c: Tensor[(32, 32, 3, 3), float32]) {
          let %y = conv2d(%x + 1.0f32, %a, padding=(1, 1));
          let %z = %y + (1.0f32 + %y);
          conv2d(%z, %b) + conv2d(%z, %c, padding=(1, 1))
        }
    """)
    assert found == ["kernel", "conv2d", "kernel", "conv2d", "conv2d", "kernel"]


def test_the_gates_of_a_cell_follow_their_product_in_a_kernel() -> None:
    found = kernels("""
        def @main(%x: Tensor[(4, 8), float32], %w: Tensor[(12, 8), float32]) {
          let %s = split(linear(%x, %w), split_size_or_sections=4, dim=1);
          sigmoid(%s.0) + tanh(%s.1) * exp(%s.2)
        }
    """)
    assert found == ["kernel", "kernel"]


def test_hundreds_of_operands_are_kernels_of_a_bounded_number() -> None:
    names = [f"%x{n}" for n in range(300)]
    params = ", ".join(f"{name}: Tensor[(4,), float32]" for name in names)
    found = kernels(f"def @main({params}) {{ {' + '.join(names)} }}")
    assert set(found) == {"kernel"}
    assert 5 < len(found) < 30
