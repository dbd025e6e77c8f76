"""Every rewrite rule applies in its own program, and keeps types and values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import pytest
import torch

from pyrelay.analysis.bindings import definitions, uses
from pyrelay.ir.expr import Call, type_of
from pyrelay.ir.module import Module
from pyrelay.ir.types import TensorType
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.rewrites.fold_norms import NORM_RULES
from pyrelay.passes.rewrites.peepholes import POOL_RULES, TORCH_RULES
from pyrelay.passes.simplify.algebra import LAWS
from pyrelay.passes.simplify.fold import fold
from pyrelay.passes.simplify.rules import Redex, Rewrite, apply_rules
from pyrelay.runtime.compile.evaluator import evaluate
from tests.ops.checks import assert_equal
from tests.unit.passes.programs import normal


class Applied(NamedTuple):
    """A rule, and the pass that applies it."""

    rule: Rewrite
    run: Callable[[Module], Module]
    rtol: float = 0.0


RULES: Final = (
    *(Applied(rule, fold) for rule in LAWS),
    *(Applied(r, lambda m: apply_rules(m, TORCH_RULES), 1e-6) for r in TORCH_RULES),
    *(Applied(r, lambda m: apply_rules(m, POOL_RULES)) for r in POOL_RULES),
    *(Applied(r, lambda m: apply_rules(m, NORM_RULES), 1e-5) for r in NORM_RULES),
)
every_rule = pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule.statement)


def program(rule: Rewrite) -> Module:
    """Return the program in which a rule applies."""
    return normal(f"def @main({rule.params}) {{ {rule.body} }}")


@every_rule
def test_a_rule_applies_in_its_program(case: Applied) -> None:
    function = program(case.rule).functions["main"]
    known = definitions(function)
    calls = [v for v in known.values() if isinstance(v, Call) and v.callee is case.rule.op]
    sites = [Redex(call, known, uses(function), set(), []) for call in calls]
    found = [case.rule.apply(site) for site in sites]
    assert any(expr is not None for expr in found)
    for site, expr in zip(sites, found, strict=True):
        assert expr is None or type_of(expr) == type_of(site.call)


@every_rule
def test_values_and_types_stay(case: Applied) -> None:
    module = program(case.rule)
    after = case.run(module)
    assert after is not module
    verify(after, Stage.ANF)
    assert after.functions["main"].ty == module.functions["main"].ty
    args = [_value(type_of(p)) for p in module.functions["main"].params]
    expected = evaluate(module, "main", args)
    assert_equal(evaluate(after, "main", args), expected, rtol=case.rtol, atol=case.rtol)


def _value(ty: object) -> torch.Tensor:
    assert isinstance(ty, TensorType)
    sizes = [d.constant or 1 for d in ty.shape]
    generator = torch.Generator().manual_seed(0)
    found = torch.randn(sizes, generator=generator) * 5
    if str(ty.dtype) == "int64":
        return found.abs().long() % 5
    return found.to(getattr(torch, str(ty.dtype))) if str(ty.dtype) != "bool" else found > 0


def test_statements_are_equations() -> None:
    assert all(" = " in case.rule.statement for case in RULES)
    assert len({case.rule.statement for case in RULES}) == len(RULES)
