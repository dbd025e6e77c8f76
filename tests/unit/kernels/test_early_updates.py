"""Updates run as soon as nothing needs what they overwrite, and nothing before them may fail."""

from __future__ import annotations

from pyrelay.ir.expr import Binding, Call, GlobalVar, Var
from pyrelay.kernels.arena import Allocation, placed
from pyrelay.kernels.cost import size_of
from pyrelay.kernels.early_updates import in_order
from pyrelay.kernels.memory import plan_memory
from pyrelay.kernels.outlined import Outlined, outlined_of
from pyrelay.kernels.reading import straight_line
from tests.unit.kernels.kernels import in_regions, module

WEIGHTS = "".join(f", %w{i}: Tensor[(8, 8), float32]" for i in range(4))
FORWARD = "".join(f"let %h{i + 1} = tanh(matmul(%h{i}, %w{i})); " for i in range(4))


def backward(layer: int) -> str:
    """Return the text of the gradient of a layer and of the weight before it."""
    return (
        f"let %d{layer} = matmul(%g{layer + 1}, transpose(%w{layer}, dim0=0, dim1=1));"
        f" let %g{layer} = %d{layer} * (1f32 - %h{layer} * %h{layer}); "
    )


def update(layer: int) -> str:
    """Return the text of the update of a layer."""
    return (
        f"let %p{layer} = matmul(transpose(%h{layer}, dim0=0, dim1=1), %g{layer + 1});"
        f" let %_{layer} = overwrite(%w{layer}, %w{layer} - %p{layer} * 0.5f32); "
    )


def step(between: str = "", result: str = "sum(%h4)") -> str:
    """Return the text of a step of training of four layers."""
    layers = "".join(backward(i) for i in (3, 2, 1))
    updates = "".join(update(i) for i in range(4))
    return (
        f"def @main[N: Dim](%h0: Tensor[(N, 8), float32]{WEIGHTS}) {{ {FORWARD}"
        f"let %g4 = %h4 * 2f32; {layers}{between}{updates}{result} }}"
    )


def launched(text: str) -> tuple[list[Binding], list[Binding], Outlined]:
    """Return the bindings of the only region of a program, in its order and as they are run."""
    found = in_regions(module(text), "main")
    outlined = outlined_of(found)
    (name,) = outlined.regions
    bindings, _ = straight_line(found.functions[name].body)
    plan = plan_memory(found.functions[name], outlined.groups)
    return list(bindings), in_order(bindings, plan.early), outlined


def writers(bindings: list[Binding], outlined: Outlined) -> dict[str, int]:
    """Return where each weight is overwritten; check that nothing reads it after."""
    found: dict[str, int] = {}
    for place, binding in enumerate(bindings):
        match binding.value:
            case Call(GlobalVar(name), args) if name in outlined.groups:
                assert found.keys().isdisjoint(a.name for a in args if isinstance(a, Var))
                for position in outlined.groups[name].overwritten:
                    target = args[position]
                    assert isinstance(target, Var)
                    found[target.name] = place
            case _:
                pass
    return found


def test_the_update_of_a_layer_runs_before_the_gradients_of_layers_before_it() -> None:
    written, run, outlined = launched(step())
    assert {b.var for b in written} == {b.var for b in run}
    before, after = writers(written, outlined), writers(run, outlined)
    assert before.keys() == after.keys() == {"w0", "w1", "w2", "w3"}
    kernels = [n for n, b in enumerate(run) if not b.var.name.startswith("_")]
    assert after["w3"] < after["w2"] < max(kernels)
    assert after["w3"] < before["w3"]


def test_what_updates_read_is_needed_no_longer_than_until_they_run() -> None:
    found = in_regions(module(step()))
    outlined = outlined_of(found)
    (name,) = outlined.regions
    region = found.functions[name]
    plan = plan_memory(region, outlined.groups)
    blocks = [
        Allocation(size_of(v.ty).evaluate({"N": 64}), *plan.lives[v]) for v in plan.slots if v.ty
    ]
    values = placed(blocks)[1] / (64 * 8 * 4)
    assert values <= 6  # four layers, and the gradients of two


def test_an_update_stays_behind_what_may_fail() -> None:
    _, run, outlined = launched(step("let %sorted = sort(%g1); ", "(sum(%h4), sum(%sorted.0))"))
    after = writers(run, outlined)
    (place,) = (n for n, b in enumerate(run) if b.var.name == "sorted")
    assert min(after.values()) > place
