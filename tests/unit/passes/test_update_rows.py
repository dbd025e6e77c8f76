"""Steps of optimisers on tables: taken on the rows that move, where that cannot be observed."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch

from pyrelay.infer import infer
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.passes.normalise.flavours import with_flavours
from pyrelay.passes.rewrites.in_place import update_in_place
from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.runtime.host import compile_module
from pyrelay.runtime.values.values import Cell
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text

CPU = torch.device("cpu")
TABLE, VECTOR = "Tensor[(5, 3), float32]", "Tensor[(3,), float32]"
MODEL = f"ref((({TABLE}, {VECTOR}), (float32, ({TABLE}, {VECTOR}))))"
READ = "let %c = ref_read(%m); let %p = %c.0; let %v = %c.1.1; let %r = %c.1.0;"
GRADIENTS = "let %g = embedding_grad(%x, %i, num_embeddings=Dim(5)); let %b = sum(%x, dim=(0,));"
STEP = (
    "let %s = momentum_step(%p.0, %g, %r, %v.0, momentum=0.5, weight_decay=0.1, by_rows=True);"
    " let %t = momentum_step(%p.1, %b, %r, %v.1, momentum=0.5);"
)
WRITE = "ref_write(%m, ((%s.0, %t.0), (%r, (%s.1, %t.1))))"


def program(body: str) -> Module:
    """Return a program that updates a model `%m` by the rows `%x` with their numbers `%i`."""
    data = "%x: Tensor[(4, 3), float32], %i: Tensor[(4,), int64]"
    return to_anf(infer(parse_module(f"def @f(%m: {MODEL}, {data}) {{ {body} }}")))


def values() -> list[Any]:
    torch.manual_seed(0)
    params, velocity = ((torch.randn(5, 3), torch.randn(3)) for _ in range(2))
    rows, numbers = torch.randn(4, 3), torch.tensor([1, 4, 1, 0])
    rows[3] = 0.0  # which is looked up, and does not move
    return [Cell((params, (torch.tensor(0.1), velocity))), rows, numbers]


def is_by_rows(module: Module) -> bool:
    text = to_text(update_in_place(module))
    return "overwrite_all(" in text and "embedding_grad(" not in text


def check(module: Module) -> None:
    """Compare results and the model after a run, before the pass and after it, evaluated and
    run."""
    expected = values()
    result = evaluate(module, "f", expected, CPU)
    changed = update_in_place(module)
    for runs in (
        lambda args: evaluate(changed, "f", args, CPU),
        lambda args: compile_module(with_flavours(changed), "f", CPU)(*args),
    ):
        given = values()
        torch.testing.assert_close(runs(given), result)
        torch.testing.assert_close(given[0].value, expected[0].value)


DONE = {
    "a step": f"{READ}{GRADIENTS}{STEP}{WRITE}; sum(%x)",
    "read again afterwards": f"{READ}{GRADIENTS}{STEP}{WRITE}; sum(ref_read(%m).0.0)",
    "a loop": "let rec %go = fn (%k: int64) -> float32 { if (%k == 0i64) { sum(%x) } else {"
    f" {READ}{GRADIENTS}{STEP}{WRITE}; %go(%k - 1i64) }} }}; %go(3i64)",
    "a velocity alone moves": f"{READ}{GRADIENTS}"
    f"{STEP.replace('weight_decay=0.1, ', '')}{WRITE}; sum(%x)",
}


@pytest.mark.parametrize("body", DONE.values(), ids=DONE.keys())
def test_steps_on_tables_are_taken_on_their_rows(body: str) -> None:
    module = program(body)
    assert is_by_rows(module)
    check(module)


def test_what_a_step_moves_stays_where_it_is() -> None:
    module = update_in_place(program(DONE["a step"]))
    given = values()
    params, (_, velocity) = given[0].value
    evaluate(module, "f", given, CPU)
    after, (_, moved) = given[0].value
    assert all(map(operator.is_, (*after, *moved), (*params, *velocity)))


KEPT = {
    "a table read afterwards": f"{READ}{GRADIENTS}{STEP}{WRITE}; sum(%p.0)",
    "a velocity in the result": f"{READ}{GRADIENTS}{STEP}{WRITE}; %v.0",
    "a step on all rows": f"{READ}{GRADIENTS}{STEP.replace(', by_rows=True', '')}{WRITE}; sum(%x)",
    "a gradient with another use": f"{READ}{GRADIENTS}{STEP}{WRITE}; sum(%g)",
    "a new velocity with another use": f"{READ}{GRADIENTS}{STEP}{WRITE}; sum(%s.1)",
    "tables that change places": f"{READ}{GRADIENTS}{STEP}"
    "ref_write(%m, ((%s.1, %t.0), (%r, (%s.0, %t.1)))); sum(%x)",
    "a table from before another write": f"{READ}{GRADIENTS}{STEP}"
    f"ref_write(%m, ref_read(%m)); {WRITE}; sum(%x)",
}


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT.keys())
def test_other_steps_make_new_tables(body: str) -> None:
    module = program(body)
    assert not is_by_rows(module)
    check(module)
