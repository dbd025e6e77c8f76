"""What is computed together, what is not, and that it means the same."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay.ir.expr import Call, GlobalVar, type_of
from pyrelay.ir.module import Module
from pyrelay.ir.op import Op
from pyrelay.ir.traverse import post_order
from pyrelay.ir.verify import Stage, verify
from pyrelay.kernels.fusion.decompose import decompose
from pyrelay.kernels.fusion.fitting import Cluster
from pyrelay.kernels.fusion.fuse import fuse
from pyrelay.kernels.groups import Domain, Group, Kind
from pyrelay.kernels.outlined import SeparatedRemark, outlined_of
from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.runtime.values.values import Cell
from pyrelay.text.printer import to_text
from tests.unit.kernels.kernels import module
from tests.unit.kernels.recognised import checked


def fused(text: str) -> Module:
    """Return a program in kernels, verified."""
    found = fuse(decompose(module(text), "main"))
    verify(found, Stage.REGIONS)
    return found


def separated(found: Module) -> list[SeparatedRemark]:
    return [r for r in outlined_of(found).remarks if isinstance(r, SeparatedRemark)]


def called(found: Module) -> list[str]:
    """Return what `main` calls, in order."""
    calls = [n for n in post_order(found.functions["main"].body) if isinstance(n, Call)]
    callees = [c.callee for c in calls]
    return [c.name for c in callees if isinstance(c, GlobalVar | Op)]


def groups(found: Module) -> list[Group]:
    """Return the groups that `main` calls, in order."""
    made = outlined_of(found).groups
    return [checked(made[n]) for n in called(found) if n.startswith("kernel.")]


def kinds(found: Module) -> list[Kind]:
    return [g.kind for g in groups(found)]


def tensors(before: Module, **sizes: int) -> list[Any]:
    """Return arguments for `main`."""
    torch.manual_seed(0)
    return [_value(type_of(p), sizes) for p in before.functions["main"].params]


def _value(ty: Any, sizes: dict[str, int]) -> Any:
    if hasattr(ty, "value"):
        return Cell(_value(ty.value, sizes))
    if hasattr(ty, "fields"):
        return tuple(_value(f, sizes) for f in ty.fields)
    shape = [d.evaluate(sizes) for d in ty.shape]
    if ty.dtype.name == "int64":
        return torch.randint(0, 3, shape)
    return torch.randn(shape).to(getattr(torch, ty.dtype.name))


def check(text: str, **sizes: int) -> Module:
    """Compare results, and what was overwritten, before and after."""
    before, found = module(text), fused(text)
    expected_args, args = tensors(before, **sizes), tensors(before, **sizes)
    expected = evaluate(before, "main", expected_args)
    torch.testing.assert_close(evaluate(found, "main", args), expected)
    for arg, wanted in zip(args, expected_args, strict=True):
        if isinstance(arg, Cell):
            arg, wanted = arg.value, wanted.value
        torch.testing.assert_close(arg, wanted)
    return found


X = "%x: Tensor[(N, 8), float32]"
Y = "%y: Tensor[(N, 8), float32]"


def test_a_chain_is_one_kernel() -> None:
    found = check(f"def @main[N: Dim]({X}, {Y}) {{ tanh(exp(%x) * %y + 1.0f32) / %y }}", N=3)
    assert kinds(found) == [Kind.POINTWISE]
    assert called(found) == ["kernel.1"]


def test_siblings_that_read_the_same_are_one_kernel() -> None:
    found = check(f"def @main[N: Dim]({X}, {Y}) {{ (tanh(%x), %x * %y, sum(%x, dim=(1,))) }}", N=3)
    assert kinds(found) == [Kind.ROWS]
    assert len(groups(found)[0].outputs) == 3


def test_two_branches_of_a_value_join_where_they_meet() -> None:
    found = check(
        f"def @main[N: Dim]({X}, {Y}) {{"
        " let %a = %x * exp(%y); let %b = %y * exp(%x); (%a + %b, %a, %b) }",
        N=3,
    )
    assert kinds(found) == [Kind.POINTWISE]


def test_a_softmax_with_what_is_around_it_is_one_pass_over_rows() -> None:
    found = check(
        f"def @main[N: Dim]({X}, {Y}) {{ let %h = %x * 0.5f32 + %y;"
        " let %m = amax(%h, dim=(1,), keepdim=True); let %e = exp(%h - %m);"
        " relu(%e / sum(%e, dim=(1,), keepdim=True) - 0.1f32) }",
        N=3,
    )
    assert kinds(found) == [Kind.ROWS]
    assert len(groups(found)[0].outputs) == 1


def test_reductions_over_other_dims_are_other_passes() -> None:
    found = check(
        f"def @main[N: Dim]({X}, {Y}, %z: Tensor[(N, 8), float32], %w: Tensor[(N, 8), float32]) {{"
        " let %h = exp(%x) * %y + %z * %w; (sum(%h, dim=(0,)), sum(%h, dim=(1,))) }",
        N=3,
    )
    assert kinds(found) == [Kind.ROWS, Kind.ROWS]
    assert [len(g.outputs) for g in groups(found)] == [2, 1]
    assert any("other dims" in n.why for n in outlined_of(found).remarks)


def test_a_view_between_two_values_costs_nothing() -> None:
    found = check(
        f"def @main[N: Dim]({X}, {Y}) {{ let %h = exp(%x) * %y;"
        " tanh(reshape(%h, shape=(4 * N, 2))) + 1.0f32 }",
        N=3,
    )
    assert kinds(found) == [Kind.POINTWISE]
    assert called(found) == ["kernel.1"]


def test_equal_code_is_one_kernel_function() -> None:
    found = check(
        f"def @main[N: Dim]({X}, %z: Tensor[(N, 8), float32]) {{"
        " let %a = sort(tanh(%x * 2.0f32)); let %b = sort(tanh(%z * 2.0f32)); (%a.0, %b.0) }",
        N=3,
    )
    assert outlined_of(found).kernels == ("kernel.1",)
    assert called(found).count("kernel.1") == 2


def test_what_is_cheap_is_computed_again_instead_of_stored() -> None:
    found = check(
        f"def @main[N: Dim]({X}, {Y}) {{ let %h = %x * 2.0f32 + 1.0f32;"
        " (sum(%h, dim=(0,)), sum(%h, dim=(1,))) }",
        N=3,
    )
    assert all(len(g.outputs) == 1 for g in groups(found))
    assert [len(g.function.params) for g in groups(found)] == [1, 1]


def test_numbers_of_the_host_stay_outside() -> None:
    found = check(
        f"def @main[N: Dim]({X}, %k: int64) {{ let %j = %k * 2i64 + 1i64;"
        " (%x * cast(%j, dtype=float32), %j) }",
        N=3,
    )
    assert called(found)[:2] == ["multiply", "add"]


STATE = "ref((Tensor[(3, 4), float32], Tensor[(4,), float32]))"


def test_an_update_is_in_the_kernel_that_makes_the_gradient() -> None:
    found = check(
        f"def @main(%m: {STATE}, %g: Tensor[(3, 4), float32]) {{"
        " let %p = ref_read(%m); let %w = %p.0;"
        " let %h = exp(%g) * %g; let %_ = overwrite(%w, %w - %h * 0.5f32); sum(%g) }"
    )
    assert Kind.ROWS in kinds(found)
    (update,) = [g for g in groups(found) if any(o.overwrites is not None for o in g.outputs)]
    assert len(update.outputs) <= 2


def test_what_reads_a_parameter_reads_it_before_it_is_overwritten() -> None:
    check(
        f"def @main(%m: {STATE}, %g: Tensor[(3, 4), float32]) {{"
        " let %p = ref_read(%m); let %w = %p.0; let %old = tanh(%w) * %g;"
        " let %t = sort(%w).0; let %_ = overwrite(%w, %w - %g * 0.5f32);"
        " (sum(%old), %t, sum(%g, dim=(0,))) }"
    )


def test_what_reads_a_parameter_afterwards_reads_the_new_one() -> None:
    check(
        f"def @main(%m: {STATE}, %g: Tensor[(3, 4), float32]) {{"
        " let %p = ref_read(%m); let %w = %p.0; let %a = tanh(%g) * %g;"
        " let %_ = overwrite(%w, %w - %g * 0.5f32);"
        " let %q = ref_read(%m); (%a, tanh(%q.0) * %g, sum(%q.0 * %g, dim=(0,))) }"
    )


def test_a_parameter_that_is_used_between_two_updates_is_what_it_is_then() -> None:
    step = "let %_ = overwrite(%w, %w - %h * 0.5f32);"
    check(
        f"def @main(%m: {STATE}, %g: Tensor[(3, 4), float32]) {{"
        f" let %p = ref_read(%m); let %w = %p.0; let %h = exp(%w) * %g; {step}"
        f" let %h = exp(%w) * %g; {step} let %s = sum(%w); let %h = %w * 2.0f32; {step} %s }}"
    )


def test_an_update_at_other_places_than_it_reads_is_apart() -> None:
    found = check(
        "def @main(%m: ref((Tensor[(4, 4), float32], float32)), %g: Tensor[(4, 4), float32]) {"
        " let %p = ref_read(%m); let %w = %p.0; let %t = transpose(%w, dim0=0, dim1=1);"
        " let %_ = overwrite(%w, %t * exp(%g) + %t); sum(%g) }"
    )
    for group in groups(found):
        for output in group.outputs:
            if output.overwrites is not None:
                assert len(group.function.params) == 2


def test_updates_of_many_parameters_are_one_launch() -> None:
    found = check(
        f"def @main(%m: {STATE}, %g: Tensor[(3, 4), float32], %b: Tensor[(4,), float32]) {{"
        " let %p = ref_read(%m); let %w = %p.0; let %v = %p.1;"
        " let %_ = overwrite(%w, %w - %g * 0.5f32); let %_ = overwrite(%v, %v - %b * 0.5f32);"
        " () }"
    )
    assert kinds(found) == [Kind.UPDATES]


def test_parameters_that_are_updated_from_each_other_share_no_launch_of_passes() -> None:
    matrix = "Tensor[(3, 4), float32]"
    found = check(
        f"def @main(%m: ref(({matrix}, {matrix}, Tensor[(4,), float32])), %g: {matrix}) {{"
        " let %p = ref_read(%m); let %w = %p.0; let %v = %p.1; let %n = %p.2;"
        " let %d = %v * 0.5f32 + (%g + %w * 0.5f32); let %_ = overwrite(%n, %n + 1.0f32);"
        " let %_ = overwrite(%w, %w - %d); let %_ = overwrite(%v, %d); () }"
    )
    assert kinds(found) == [Kind.POINTWISE, Kind.POINTWISE]


@pytest.mark.parametrize("count", [200, 2000])
def test_large_bodies_are_cut_into_kernels_of_bounded_size(count: int) -> None:
    steps = "".join(f"let %v{i + 1} = tanh(%v{i}) * %x; " for i in range(count))
    found = check(f"def @main(%x: Tensor[(4,), float32]) {{ let %v0 = %x; {steps} %v{count} }}")
    sizes = [len(g.function.body.bindings) for g in groups(found)]
    assert max(sizes) <= 66
    assert len(sizes) < count / 20


def test_a_condition_cuts() -> None:
    found = check(
        f"def @main[N: Dim]({X}, {Y}) {{ let %h = exp(%x) * %y;"
        " let %r = if (sum(%h) > 0.0f32) { tanh(%h) + %x } else { %h * %y - 1.0f32 };"
        " exp(%r) * %y }",
        N=3,
    )
    assert "@`kernel." in to_text(found)


GATES = """def @main[N: Dim](%x: Tensor[(N, 6), float32], %h: Tensor[(N, 5), float32],
    %a: Tensor[(6, 5), float32], %b: Tensor[(6, 5), float32],
    %u: Tensor[(5, 5), float32], %v: Tensor[(5, 5), float32]) {
    let %p = matmul(%x, %a); let %q = matmul(%h, %u);
    let %r = matmul(%x, %b); let %s = matmul(%h, %v);
    let %i = sigmoid(%p + %q); let %j = tanh(%r + %s); %i * %j }"""


def test_products_that_meet_are_one_kernel() -> None:
    found = check(GATES, N=3)
    assert kinds(found) == [Kind.CONTRACTION]
    assert len(groups(found)[0].products) == 4


def test_products_of_one_tensor_are_one_kernel_if_they_have_the_same_places() -> None:
    found = check(
        "def @main[N: Dim](%x: Tensor[(N, 6), float32], %a: Tensor[(6, 5), float32],"
        " %b: Tensor[(6, 5), float32], %u: Tensor[(6, 7), float32]) {"
        " (matmul(%x, %a), matmul(%x, %b), matmul(%x, %u)) }",
        N=3,
    )
    assert sorted(len(g.products) for g in groups(found)) == [1, 2]
    (apart,) = separated(found)
    assert apart.shared.name == "x"
    assert apart.why == "its rows or columns are others"


def test_a_kernel_keeps_few_sums() -> None:
    products = "".join(f"let %p{i} = matmul(%x, %w{i}); " for i in range(20))
    params = "".join(f", %w{i}: Tensor[(6, 5), float32]" for i in range(20))
    found = check(
        f"def @main[N: Dim](%x: Tensor[(N, 6), float32]{params}) {{ {products}"
        f"({', '.join(f'%p{i}' for i in range(20))}) }}",
        N=3,
    )
    assert sorted(len(g.products) for g in groups(found)) == [4, 8, 8]
    assert len(separated(found)) == 2
    assert {a.why for a in separated(found)} == {
        "a kernel keeps at most 8 sums of products in registers"
    }


LAYER = "%x: Tensor[(N, 6), float32], %w: Tensor[(6, 10), float32]"


def test_short_rows_of_a_product_are_reduced_in_its_kernel() -> None:
    softmax = "let %y = matmul(%x, %w); softmax(%y, dim=1)"
    (group,) = groups(check(f"def @main[N: Dim]({LAYER}) {{ {softmax} }}", N=3))
    assert group.kind is Kind.CONTRACTION
    assert [r.combine for r in group.reductions] == ["max", "add"]
    columns = "let %y = matmul(%x, %w); (%y, sum(%y, dim=(0,)))"
    known = LAYER.replace("(N, 6)", "(5, 6)")
    assert kinds(check(f"def @main({known}) {{ {columns} }}")) == [Kind.CONTRACTION]


def test_long_rows_of_a_product_are_reduced_in_a_kernel_of_their_own() -> None:
    for width, why in (
        ("200", "its rows, of 200 elements, do not fit into tiles of the product"),
        ("M", "only the run knows whether its rows fit into tiles of the product"),
    ):
        found = check(
            f"def @main[N: Dim, M: Dim](%x: Tensor[(N, 6), float32],"
            f" %w: Tensor[(6, {width}), float32]) {{ softmax(matmul(%x, %w), dim=1) }}",
            N=3,
            M=4,
        )
        assert kinds(found) == [Kind.CONTRACTION, Kind.ROWS]
        assert why in [n.why for n in outlined_of(found).remarks]


BESIDE = "it needs a reduction that ends with the loop of the product"


@pytest.mark.parametrize(
    "last", ["%d * expand(unsqueeze(%r, dim=1), size=(4, 6))", "sum(%d, dim=(1,)) * %r"]
)
def test_what_is_made_of_sums_and_of_a_reduction_beside_them_is_another_kernel(last: str) -> None:
    found = check(
        f"""def @main[N: Dim](%g: Tensor[(N, 4), float32], %x: Tensor[(N, 6), float32]) {{
            let %d = matmul(transpose(%g, dim0=0, dim1=1), %x);
            let %s = sum(%g, dim=(0,)); let %r = %s * 0.5f32;
            (%d, %r, {last}) }}""",
        N=3,
    )
    first, *others = groups(found)
    assert (first.kind, len(first.beside)) == (Kind.CONTRACTION, 1)
    assert others
    assert BESIDE in [n.why for n in outlined_of(found).remarks]


GRADIENTS = """def @main[N: Dim](%m: ref((Tensor[(4, 6), float32], Tensor[(4,), float32])),
    %g: Tensor[(N, 4), float32], %x: Tensor[(N, 6), float32]) {
    let %s = sum(%g, dim=(0,)); let %t = transpose(%g, dim0=0, dim1=1);
    let %params = ref_read(%m); let %w = %params.0; let %b = %params.1;
    let %p = (%w, %b); let %f = (%t, %x); let %d = (%f, %s);
    let! %_ = descend_in_place(%p, %d, lr=0.1);
    ()
}"""


def test_the_gradients_of_a_layer_are_one_kernel() -> None:
    (group,) = groups(check(GRADIENTS, N=3))
    assert group.kind is Kind.CONTRACTION
    assert len(group.beside) == 1
    assert sum(o.overwrites is not None for o in group.outputs) == 2


def test_what_all_programs_read_is_not_overwritten_by_the_first() -> None:
    found = check(
        "def @main[N: Dim](%m: ref((Tensor[(4,), float32], float32)),"
        " %g: Tensor[(N, 4), float32], %x: Tensor[(N, 6), float32]) {"
        " let %s = sum(%g, dim=(0,)); let %t = transpose(%g, dim0=0, dim1=1);"
        " let %p = ref_read(%m); let %b = %p.0; let %c = reshape(%b, shape=(4, 1));"
        " let %d = matmul(%t, %x) * %c;"
        " let %new = %b - %s; let! %_ = overwrite(%b, %new); %d }",
        N=3,
    )
    writers = [g for g in groups(found) if any(o.overwrites is not None for o in g.outputs)]
    assert [g.kind for g in writers] != [Kind.CONTRACTION]


def test_what_is_made_of_a_parameter_for_all_programs_is_not_overwritten_by_the_first() -> None:
    steps = "".join(f"let %k{i + 1} = tanh(%k{i} * %b); " for i in range(6))
    found = check(
        "def @main[N: Dim](%m: ref((Tensor[(4,), float32], float32)),"
        " %g: Tensor[(N, 4), float32], %x: Tensor[(N, 6), float32]) {"
        " let %s = sum(%g, dim=(0,)); let %t = transpose(%g, dim0=0, dim1=1);"
        " let %p = ref_read(%m); let %b = %p.0; let %q = matmul(%t, %x);"
        f" let %k0 = %b * 2f32; {steps}"
        " let %c = reshape(%k6, shape=(4, 1)); let %d = tanh(%q) * %c;"
        " let %new = %b - %s; let! %_ = overwrite(%b, %new); (%d, %k6) }",
        N=3,
    )
    assert "it overwrites what other programs may read" in [
        n.why for n in outlined_of(found).remarks
    ]
    writers = [g for g in groups(found) if any(o.overwrites is not None for o in g.outputs)]
    assert all(g.kind is not Kind.CONTRACTION for g in writers)


def test_a_kernel_comes_after_what_it_takes_without_reading_an_element_of_it() -> None:
    """The gradient of a loss depends on labels alone, but its kernel takes the logarithms too."""
    found = check(
        """
        def @main[N: Dim](%x: Tensor[(N, 3), float32], %w: Tensor[(3, 3), float32],
                          %y: Tensor[(N,), int64], %n: float32) {
          let %g = nll_loss_grad(1.0f32, %x, %y, %n);
          let %s = sum(%g, dim=(1,), keepdim=True);
          let %b = multiply(%x, %s);
          let %p = matmul(%b, %w);
          let %q = softmax(%p, dim=1);
          let %h = nll_loss_grad(1.0f32, %q, %y, %n);
          let %u = sum(%h, dim=(1,), keepdim=True);
          let %v = multiply(%u, sum(%q, dim=(1,), keepdim=True));
          (%s, %v)
        }
        """,
        N=5,
    )
    assert sum(g.kind is Kind.ROWS for g in groups(found)) > 1


def test_the_first_of_many_users_of_a_group_is_not_forgotten() -> None:
    first, *others = (Cluster(order, Kind.POINTWISE, Domain((), ())) for order in range(40))
    for user in others:
        first.precede(user)
        assert first.first_user == 1
