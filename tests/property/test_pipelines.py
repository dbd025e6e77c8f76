"""Random pipelines of transforms of random programs are what torch's autograd finds, step by step.

Each step makes a function of the parameters of `main` from the one before it. Its counterpart here
works on tensors that record gradients, so that every composition has its reference.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyrelay.infer import infer
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.partial_eval import partially_evaluated
from pyrelay.passes.simplify.simplify import simplify
from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text
from tests.property.test_transforms import unless_refused
from tests.strategies import Program, programs
from tests.tolerances import assert_program

Args: TypeAlias = tuple[Any, ...]
Loss: TypeAlias = Callable[..., torch.Tensor]

PARAMS: Final = (
    "%a: Tensor[(N, M), float64], %v: Tensor[(M,), float64], %s: float64, %k: int64, %b: bool"
)
GIVEN: Final = "%a, %v, %s, %k, %b"


class Step(NamedTuple):
    """A step of a pipeline: the body of its function, in which `@f` is the one before, and its
    counterpart; the functions beside it, whose names end in that of its own."""

    body: str
    of: Callable[[Loss], Loss]
    beside: str = ""


def gradient(f: Loss, args: Args) -> Args:
    value = f(*args)
    if not value.requires_grad:
        return tuple(torch.zeros_like(x) for x in args[:3])
    return torch.autograd.grad(value, args[:3], create_graph=True, materialize_grads=True)


def slope(f: Loss) -> Loss:
    def run(*args: Any) -> torch.Tensor:
        a, v, s = gradient(f, args)
        return (a * a).sum() + v.sum() + s

    return run


def along(f: Loss) -> Loss:
    def run(*args: Any) -> torch.Tensor:
        pairs = zip(gradient(f, args), args[:3], strict=True)
        return torch.stack([f(*args), *((g * x).sum() for g, x in pairs)]).sum()

    return run


def bent(f: Loss) -> Loss:
    def run(*args: Any) -> torch.Tensor:
        slopes = gradient(f, args)

        def pushed(*at: Any) -> torch.Tensor:
            pairs = zip(slopes, at[:3], strict=True)
            return torch.stack([(g * x).sum() for g, x in pairs]).sum()

        moved = zip(gradient(pushed, args), slopes, strict=True)  # the direction moves too
        return torch.stack([(both - g).sum() for both, g in moved]).sum()

    return run


def over_two(f: Loss) -> Loss:
    return lambda a, v, s, k, b: f(a, v, s, k, b) + f(a, v, s * 0.5, k, b)


def over_vectors(f: Loss) -> Loss:
    return lambda a, v, s, k, b: f(a, v, s, k, b) + f(a, v * 0.5, s, k, b)


def same(f: Loss) -> Loss:
    return f


DIFFERENTIATION: Final = "wrt=(0, 1, 2), single=False"
STEPS: Final = {
    "grad": Step(
        f"let %g = grad{{{DIFFERENTIATION}}}(@f)({GIVEN}); sum(%g.0 * %g.0) + sum(%g.1) + %g.2",
        slope,
    ),
    "jvp": Step(
        f"let %p = jvp{{{DIFFERENTIATION}}}(@f)(({GIVEN}), (%a, %v, %s)); %p.0 + %p.1", along
    ),
    "vjp": Step(
        f"let %p = vjp{{{DIFFERENTIATION}}}(@f)({GIVEN}); let %pull = %p.1;"
        " let %g = %pull(1f64); sum(%g.0 * %a) + sum(%g.1 * %v) + %g.2 * %s + %p.0",
        along,
    ),
    "linearize": Step(
        f"let %p = linearize{{{DIFFERENTIATION}}}(@f)({GIVEN}); let %push = %p.1;"
        " %p.0 + %push(%a, %v, %s)",
        along,
    ),
    "hvp": Step(
        f"let %h = hvp{{{DIFFERENTIATION}}}(@f)(({GIVEN}), (%a, %v, %s));"
        " sum(%h.0) + sum(%h.1) + %h.2",
        bent,
    ),
    "vmap of numbers": Step(
        "let %both = stack((%s, %s * 0.5f64));"
        " sum(vmap{in_axes=(None, None, 0, None, None), out_axes=0}(@f)(%a, %v, %both, %k, %b))",
        over_two,
    ),
    "vmap of vectors": Step(
        "let %both = stack((%v, %v * 0.5f64), dim=1);"
        " sum(vmap{in_axes=(None, 1, None, None, None), out_axes=0}(@f)(%a, %both, %s, %k, %b))",
        over_vectors,
    ),
    "checkpoint": Step(f"checkpoint(@f)({GIVEN})", same),
    "custom_vjp": Step(
        f"let %ruled = custom_vjp(@f, @fwd_own, @bwd_own); %ruled({GIVEN})",
        same,
        f"def @fwd_own[N: Dim, M: Dim]({PARAMS}) {{ (@f({GIVEN}), ({GIVEN})) }}\n"
        "def @bwd_own[N: Dim, M: Dim]("
        "%r: (Tensor[(N, M), float64], Tensor[(M,), float64], float64, int64, bool), %g: float64) {"
        f" let %p = vjp{{{DIFFERENTIATION}}}(@f)(%r.0, %r.1, %r.2, %r.3, %r.4);"
        " let %pull = %p.1; let %d = %pull(%g); (%d.0, %d.1, %d.2) }\n",
    ),
    "partial evaluation": Step("", same),
    "autocast": Step(f"autocast(@f)({GIVEN})", same),
}
PASSES: Final[dict[str, Callable[[Module, str], Module]]] = {
    "nothing": lambda m, _: m,
    "simplify": lambda m, entry: simplify(m, entry, value_of),
    "partial evaluation": lambda m, entry: partially_evaluated(m, entry, value_of),
}


def value_of(module: Module, entry: str) -> Any:
    return evaluate(module, entry, ())


def untyped(module: Module) -> str:
    return to_text(module).replace(", typed]", "]", 1)


def expanded(text: str) -> Module:
    module = unless_refused(to_anf(infer(parse_module(text))))
    verify(module, Stage.DERIVED)
    return module


def pipeline(program: Program, names: list[str]) -> tuple[Module, str, Loss]:
    """Return the program with the functions of the steps, expanded; the name of the last, and what
    it is like."""
    text, before = untyped(program.module), "main"

    def reference(*args: Any) -> torch.Tensor:
        return evaluate(program.module, "main", args, grad=True)

    for place, name in enumerate(names):
        step, own = STEPS[name], f"step_{place}"
        if name in PASSES:
            text = untyped(PASSES[name](expanded(text), before))
            continue
        made = f"def @own[N: Dim, M: Dim]({PARAMS}) -> float64 {{ {step.body} }}\n"
        text += re.sub(r"@f\b", f"@{before}", step.beside + made).replace("own", own)
        before, reference = own, step.of(reference)
    return expanded(text), before, reference


SUM = Program(
    infer(parse_module(f"def @main[N: Dim, M: Dim]({PARAMS}) {{ tanh(sum(%a)) }}")),
    {"N": 1, "M": 3},
    number=4,
    flag=True,
    seed=1,
)
HELD = Program(
    infer(
        parse_module(
            """type Held { Held(fn (float64) -> float64, float64) }
            def @apply(%held: Held) { match (%held) { Held(%f, %x) => %f(%x) } }
            """
            f"def @main[N: Dim, M: Dim]({PARAMS}) {{"
            " @apply(Held(fn (%x: float64) { tanh(%x) }, %s)) + tanh(sum(%a)) * tanh(sum(%v)) }"
        )
    ),
    {"N": 3, "M": 2},
    number=0,
    flag=False,
    seed=2,
)
FEW = settings(max_examples=settings().max_examples // 5)
PIPELINES = st.lists(st.sampled_from(list(STEPS)), min_size=1, max_size=4)


@FEW
@example(SUM, ["grad", "vjp", "grad"], "partial evaluation")
@example(HELD, ["vjp", "grad", "vjp"], "partial evaluation")
@example(HELD, ["vjp", "vjp", "vjp"], "partial evaluation")
@given(programs(4, differentiable=True), PIPELINES, st.sampled_from(list(PASSES)))
def test_a_pipeline_is_what_autograd_finds(program: Program, names: list[str], last: str) -> None:
    module, entry, reference = pipeline(program, names)
    made = PASSES[last](module, entry)
    verify(made, Stage.DERIVED)
    expected = reference(*program.arguments(requires_grad=True))
    assert_program(evaluate(made, entry, program.arguments()), expected.detach())
