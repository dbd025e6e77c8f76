"""Long and deep texts are read and written, in both languages, in time that grows linearly."""

from __future__ import annotations

import pytest

from pyrelay.ir.equality import alpha_equal
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text
from tests.steps import calls_of

HEADERS = pytest.mark.parametrize("header", ["", '#[version = "0.0.5"]\n'], ids=["own", "relay"])
LONG, DEEP = 90_000, 20_000


def chain(length: int) -> str:
    """Return a program of `length` additions, each a numbered binding."""
    lines = ["  %0 = add(%x, %x);"]
    lines += [f"  %{i} = add(%{i - 1}, %x);" for i in range(1, length)]
    return "\n".join(["def @main(%x: float32) {", *lines, f"  %{length - 1}", "}"])


@pytest.mark.slow
@HEADERS
def test_ninety_thousand_nodes_are_read_and_written(header: str) -> None:
    module = parse_module(header + chain(LONG))
    text = to_text(module)
    assert text.count("add(") == LONG
    assert alpha_equal(parse_module(text), module)


DEEP_TEXTS = {
    "calls": "abs(" * DEEP + "%x" + ")" * DEEP,
    "brackets": "(" * DEEP + "%x" + ")" * DEEP,
    "braces": "{" * DEEP + "%x" + "}" * DEEP,
    "tuples": "(" * DEEP + "%x" + ",)" * DEEP,
    "conditionals": "if (True) { 1 } else { " * DEEP + "2" + "}" * DEEP,
    "functions": "fn () { " * DEEP + "%x" + "}" * DEEP,
    "chain": "%x + " * DEEP + "%x",
    "minuses": "-" * DEEP + "%x",
    "lets": "let %x = { " * DEEP + "%x" + "}; %x" * DEEP,
}


@pytest.mark.slow
@HEADERS
@pytest.mark.parametrize("body", DEEP_TEXTS.values(), ids=DEEP_TEXTS.keys())
def test_deep_texts_are_read_and_written(body: str, header: str) -> None:
    module = parse_module(f"{header}def @main(%x: float32) {{ {body} }}")
    assert alpha_equal(parse_module(to_text(module)), module)


@HEADERS
def test_the_work_of_reading_grows_with_the_length(header: str) -> None:
    def calls(length: int) -> int:
        text = header + chain(length)
        return calls_of(lambda: parse_module(text))

    calls(10)
    assert calls(2_000) < 12 * calls(200)
