"""Values brought to the types at which they are used: in tuples, and as what functions take."""

from __future__ import annotations

from typing import Any

import pytest

from pyrelay import relay

CASES = [
    ("() -> (int32, int32) { let %p = (1, 2); %p }", "(1, 2)"),
    ("() -> ((int32, float32), int64) { let %p = ((1, 2.5), 3); %p }", "((1, 2.5), 3)"),
    ("() -> int32 { let %f = fn () { 1 }; @call(%f) }", "1"),
    ("() -> int32 { @call(fn () { 1 }) }", "1"),
    ("() -> int32 { @call(@one) }", "1"),
    ("() -> int32 { let %f = fn () { 1 }; let %p = (%f, 2); @both(%p) }", "3"),
    ("(%c: bool) -> int32 { let %f = fn () { 1 }; @call(if (%c) { %f } else { @one }) }", "1"),
]
REST = """
def @one() { 1 }
def @call(%f: fn () -> int32) -> int32 { %f() }
def @both(%p: (fn () -> int32, int32)) -> int32 { let %f = %p.0; %f() + %p.1 }
"""


def shown(value: Any) -> str:
    """Return a value without its dtypes."""
    if isinstance(value, tuple):
        return f"({', '.join(map(shown, value))})"
    return str(value.item())


@pytest.mark.parametrize(("head", "value"), CASES)
def test_a_value_has_the_type_at_which_it_is_used(head: str, value: str) -> None:
    module = relay.parse(f"def @main{head}{REST}")
    args = (True,) if "bool" in head else ()
    module.check()
    for result in (module["main"](*args), module["main"].interpret(*args)):
        assert shown(result) == value
        dtype = result.dtype if not isinstance(result, tuple) else None
        assert dtype is None or str(dtype) == "torch.int32"
