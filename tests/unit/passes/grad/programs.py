"""Programs in text, differentiated, and what torch's autograd finds for the same programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from pyrelay.infer import infer
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.transforms import expand_transforms
from pyrelay.runtime.compile import evaluator
from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.text.parser import parse_module


def prepared(text: str) -> Module:
    """Return a program in A-normal form, its transforms still in it."""
    module = to_anf(infer(parse_module(text)))
    verify(module, Stage.ANF)
    return module


def expanded(text: str) -> Module:
    """Return a program with its transforms expanded, verified."""
    module = expand_transforms(prepared(text))
    verify(module, Stage.DERIVED)
    return module


def run(text: str, *args: Any, entry: str = "main") -> Any:
    """Return the value of a program whose transforms are expanded."""
    return evaluate(expanded(text), entry, args)


def scalar(value: float) -> torch.Tensor:
    """Return a float64 of rank 0."""
    return torch.tensor(value, dtype=torch.float64)


def vector(*values: float) -> torch.Tensor:
    """Return a float64 of rank 1."""
    return torch.tensor(values, dtype=torch.float64)


def derivatives(params: str, floats: Sequence[int], generics: str = "") -> str:
    """Return text with `@first` and `@second`: the gradient of `@f`, and of its squared norm."""
    names = [p.split(":")[0].strip() for p in _split(params)]
    args = ", ".join(names)
    wrt = f"wrt=({', '.join(map(str, floats))},), single=False"
    squares = " + ".join(f"sum(%r.{i} * %r.{i})" for i in range(len(floats)))
    return f"""
def @first{generics}({params}) {{ let %g = grad{{{wrt}}}(@f); %g({args}) }}
def @norm{generics}({params}) -> float64 {{ let %r = @first({args}); {squares} }}
def @second{generics}({params}) {{ let %g = grad{{{wrt}}}(@norm); %g({args}) }}
"""


def _split(params: str) -> list[str]:
    parts: list[str] = []
    depth = 0
    for piece in params.split(","):
        parts[-1:] = [f"{parts[-1]},{piece}"] if depth else [*parts[-1:], piece]
        depth += piece.count("(") + piece.count("[") - piece.count(")") - piece.count("]")
    return parts


def check(text: str, params: str, *args: Any, generics: str = "") -> None:
    """Check first and second derivatives of `@f`, for all float tensors among the arguments."""
    floats = [i for i, a in enumerate(args) if isinstance(a, torch.Tensor)]
    module = expanded(text + derivatives(params, floats, generics))
    leaves = [args[i].clone().requires_grad_() for i in floats]
    inputs = list(args)
    for index, leaf in zip(floats, leaves, strict=True):
        inputs[index] = leaf
    loss = evaluate(module, "f", inputs, grad=True)
    first = _autograd(loss, leaves)
    assert_close(evaluate(module, "first", args), first)
    norm = sum(((g * g).sum() for g in first), torch.zeros((), dtype=torch.float64))
    assert_close(evaluate(module, "second", args), _autograd(norm, leaves))


def _autograd(loss: torch.Tensor, leaves: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    if not loss.requires_grad:
        return tuple(torch.zeros_like(leaf) for leaf in leaves)
    return torch.autograd.grad(loss, leaves, create_graph=True, materialize_grads=True)


def assert_close(got: Any, expected: Any) -> None:
    """Check that two nests of tuples hold equal numbers."""
    if isinstance(expected, tuple):
        assert isinstance(got, tuple)
        assert len(got) == len(expected)
        for a, b in zip(got, expected, strict=True):
            assert_close(a, b)
        return
    got, expected = (torch.as_tensor(v, dtype=torch.float64).detach() for v in (got, expected))
    torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-12)


def operator_counts(
    monkeypatch: pytest.MonkeyPatch, module: Module, entry: str, *args: Any
) -> Counter[str]:
    """Return how often each operator runs; `elements` counts the elements of all results."""
    counts: Counter[str] = Counter()
    plain = evaluator.apply_op

    def counting(op: Any, *rest: Any) -> Any:
        result = plain(op, *rest)
        counts[op.name] += 1
        for part in result if isinstance(result, tuple) else (result,):
            counts["elements"] += part.numel() if isinstance(part, torch.Tensor) else 1
        return result

    with monkeypatch.context() as patch:
        patch.setattr(evaluator, "apply_op", counting)
        evaluate(module, entry, args, dispatched=False)
    return counts
