"""Products of matrices leave a program as their factors where nothing can observe it."""

from __future__ import annotations

import pytest

from pyrelay.ir.expr import Function
from pyrelay.ir.module import Module
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.normalise.flavours import with_flavours
from pyrelay.passes.rewrites.low_rank_gradients import factor_gradients, gives_fresh
from pyrelay.runtime.compile.program import Program
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text

HEAD = """def @main[N: Dim](%x: Tensor[(N, 4), float32], %w: Tensor[(4, 3), float32])"""


def simplified(body: str) -> Module:
    """Return a program of a body, as it is before it is compiled."""
    return Program(parse_module(f"{HEAD} {{ {body} }}"), "main").simplified


def main(module: Module) -> Function:
    return module.functions["main"]


FACTORS = "let %a = tanh(%x); let %b = exp(%w);"


def test_a_product_of_what_the_program_made_is_a_pair() -> None:
    module = factor_gradients(
        simplified(f"{FACTORS} (sum(%a), (matmul(%a, %b), exp(%x)))"), "main", (1,)
    )
    verify(with_flavours(module), Stage.FLAVOURED)
    text = to_text(module)
    assert "matmul" not in text
    assert text.count("(Tensor[(N, 4), float32], Tensor[(4, 3), float32])") >= 1


def test_a_bare_gradient_may_be_a_pair() -> None:
    module = factor_gradients(simplified(f"{FACTORS} matmul(%a, %b)"), "main", ())
    assert "matmul" not in to_text(module)


def test_views_of_what_the_program_made_are_factors() -> None:
    turned = "matmul(transpose(%b, dim0=0, dim1=1), transpose(%a, dim0=0, dim1=1))"
    body = f"{FACTORS} (sum(%a), ({turned},))"
    assert "matmul" not in to_text(factor_gradients(simplified(body), "main", (1,)))


@pytest.mark.parametrize(
    "body",
    [
        f"{FACTORS} (sum(%a), (matmul(%x, %b),))",
        f"{FACTORS} (sum(%a), (matmul(%a, %w),))",
        f"{FACTORS} (sum(%a), (matmul(%a, %b), %a))",
        f"{FACTORS} (sum(%a), (matmul(%a, %b), reshape(%b, shape=(3, 4))))",
        f"{FACTORS} let %m = matmul(%a, %b); (sum(%m), (%m,))",
        f"{FACTORS} (sum(%a), (matmul(%a, %b), %x))",
        f"{FACTORS} (matmul(%a, %b), (exp(%a),))",
        f"{FACTORS} (sum(%a), (add(matmul(%a, %b), 1),))",
    ],
    ids=[
        "a factor is an argument",
        "the other factor is an argument",
        "a factor is a result, too",
        "a view of a factor is a result",
        "the product is used",
        "a result is an argument",
        "the product is no gradient",
        "the gradient is no product",
    ],
)
def test_other_products_are_made(body: str) -> None:
    module = simplified(body)
    assert factor_gradients(module, "main", (1,)) is module
    assert "matmul" in to_text(module)


def test_what_a_program_made_is_told_from_what_it_was_given() -> None:
    assert gives_fresh(main(simplified("exp(%x)")))
    assert gives_fresh(main(simplified("(exp(%x), (sum(%w), matmul(%x, %w)))")))
    assert gives_fresh(main(simplified("reshape(exp(%x), shape=(4, N))")))
    assert not gives_fresh(main(simplified("%x")))
    assert not gives_fresh(main(simplified("(exp(%x), %w)")))
    assert not gives_fresh(main(simplified("reshape(%x, shape=(4, N))")))
    assert not gives_fresh(main(simplified("(exp(%x), 1)"))), "a number becomes a tensor"
    assert not gives_fresh(main(simplified("(exp(%x), 1.5)"))), "a constant belongs to the program"
