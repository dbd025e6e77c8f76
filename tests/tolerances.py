"""How far apart values may be that two lowerings give of one program: the place that says so.

The reference is the evaluator, or torch called operator by operator. Ints, bools and texts are
equal everywhere. Where a test compares with a formula of its own, or must allow more, it says so.
pyrelay/runtime/README.md shows the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import torch

Allowed: TypeAlias = tuple[float, float]
"""A difference relative to what is expected, and one that is added to it."""

PROGRAMS: Final[Mapping[torch.dtype, Allowed]] = {
    torch.float64: (1e-9, 1e-11),
    torch.float32: (1e-4, 1e-5),
}
"""Of the results of whole programs by any two lowerings."""

KERNELS: Final[Mapping[torch.dtype, Allowed]] = {
    torch.float64: (1e-11, 1e-12),
    torch.float32: (2e-5, 2e-6),
    torch.float16: (4e-3, 4e-3),
    torch.bfloat16: (3e-2, 3e-2),
}
"""Of the results of one kernel and of the same operators in torch."""

WHY: Final = {
    "a program, by any two lowerings": (
        PROGRAMS,
        "sums are regrouped, composites written out; a difference loses the digits that were equal",
    ),
    "a kernel, and its operators in torch": (
        KERNELS,
        "sums of blocks, functions of our own; what torch rounds to a half type stays float32",
    ),
}


def table() -> str:
    """Return the tolerances as a table for people."""
    dtypes = tuple(KERNELS)
    names = [str(d).removeprefix("torch.") for d in dtypes]
    lines = [f"| of | {' | '.join(names)} | because |", "|---" * (len(dtypes) + 2) + "|"]
    for name, (allowed, why) in WHY.items():
        pairs = ["{:g} + {:g}".format(*allowed[d]) if d in allowed else "" for d in dtypes]
        lines.append(f"| {name} | {' | '.join(pairs)} | {why} |")
    return "\n".join(lines)


def assert_program(found: Any, expected: Any) -> None:
    """Compare what two lowerings give of a program."""
    assert_within(PROGRAMS, found, expected)


def assert_kernel(found: Any, expected: Any) -> None:
    """Compare what a kernel gives with what it should."""
    assert_within(KERNELS, found, expected)


def assert_within(table: Mapping[torch.dtype, Allowed], found: Any, expected: Any) -> None:
    """Compare values part by part: floats as a table allows, all else exactly.

    An int or a bool may be a number on one side and a tensor of rank 0 on the other.
    """
    if isinstance(expected, tuple):
        assert isinstance(found, tuple)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_within(table, one, other)
        return
    found, expected = torch.as_tensor(found), torch.as_tensor(expected)
    rtol, atol = table.get(expected.dtype, (0.0, 0.0))
    torch.testing.assert_close(found, expected, rtol=rtol, atol=atol, equal_nan=True)


def forms_of(value: Any) -> Any:
    """Return the shapes and dtypes of a value."""
    if isinstance(value, tuple):
        return tuple(map(forms_of, value))
    value = torch.as_tensor(value)
    return value.shape, value.dtype
