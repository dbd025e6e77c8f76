"""Damaged texts and documents end in diagnostics with positions, never in anything else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pyrelay.diagnostics.diagnostic import CheckError
from pyrelay.prelude import library, relay_library
from pyrelay.text.json import from_json, to_json
from pyrelay.text.parser import parse_expr, parse_module
from pyrelay.text.printer import to_text
from tests.relay.reading import HEADER
from tests.texts import modules

PRELUDE = (Path(library.__file__).parent / library.FILE).read_text("utf-8")
RELAY_PRELUDE = (Path(relay_library.__file__).parent / relay_library.FILE).read_text("utf-8")
NETWORK = """
def @main(%x: Tensor[(?, 3, 8, 8), float32], %w, Primitive=1) -> Tensor[(?, 4), float32] {
  %0 = nn.conv2d(%x, %w, padding=[0, 0, 1, 1], channels=4, kernel_size=[3, 3], out_dtype="");
  %1 = nn.batch_norm(%0, %w, %w, %w, %w, epsilon=1e-05f); // statistics
  %2 = split(%1.0, indices_or_sections=[1, 2], axis=1); /* and /* more */ */
  let %f = fn (%n: int32) -> int32 { if (%n == 0) { -1 } else { %f(%n - 1) * 2 } };
  ref_write(ref(meta[relay.Constant][0]), inff);
  nn.softmax(%2.0 / 2f, axis=-1)
}
#[metadata]
{"root": 1, "nodes": []}
"""
TEXTS = [PRELUDE, RELAY_PRELUDE, HEADER + NETWORK]
WORDS = sorted({w for text in TEXTS for w in re.findall(r'\w+|"[^"]*"|[^\w\s]+', text)})
EXTRA = [
    "@[0:1:2]",
    "@[9:0:0]",
    "tensor[(2,), float32]",
    '"AAAA"',
    "?3",
    "?",
    "'T",
    "`a b`",
    "1e999",
]
EXTRA += [
    "0x",
    "é",
    "\x00",
    "\u2028",
    "meta[a][0]",
    "%0",
    "%%",
    "@@",
    "*/",
    "/*",
    "//",
    "[" * 5,
    "1." * 3,
]
Draw = Callable[[st.SearchStrategy[Any]], Any]


def ends_in_a_diagnostic(read: Callable[[], object]) -> None:
    """Read something damaged; a mistake must be one of the catalogue's, with its place."""
    error = mistake_of(read)
    if error is not None:
        assert str(error)
        assert all(d.primary is not None for d in error.diagnostics)


def mistake_of(read: Callable[[], object]) -> CheckError | None:
    try:
        read()
    except CheckError as error:
        return error
    return None


@st.composite
def damaged(draw: Draw, text: str) -> str:
    """Draw a text with pieces cut out, put in, doubled or swapped."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        piece = draw(st.sampled_from([*WORDS, *EXTRA, "", text[end : end + 20]]))
        text = text[:start] + piece + text[end:]
    return text


@st.composite
def streams(draw: Draw) -> str:
    """Draw words one after another."""
    words = draw(st.lists(st.sampled_from([*WORDS, *EXTRA]), max_size=30))
    return draw(st.sampled_from((" ", ""))).join(words)


@given(st.sampled_from(TEXTS).flatmap(damaged))
def test_a_damaged_text_ends_in_a_diagnostic(text: str) -> None:
    ends_in_a_diagnostic(lambda: parse_module(text))


@given(modules().map(to_text).flatmap(damaged))
def test_a_damaged_text_of_any_module_ends_in_a_diagnostic(text: str) -> None:
    ends_in_a_diagnostic(lambda: parse_module(text))


@given(streams())
def test_a_stream_of_words_ends_in_a_diagnostic(text: str) -> None:
    ends_in_a_diagnostic(lambda: parse_module(text))
    ends_in_a_diagnostic(lambda: parse_module(HEADER + text))
    ends_in_a_diagnostic(lambda: parse_module(f"def @f(%x) {{ {text} }}"))
    ends_in_a_diagnostic(lambda: parse_module(f"{HEADER} def @f(%x) {{ {text} }}"))
    ends_in_a_diagnostic(lambda: parse_module(f"def @f(%x: {text}) {{ %x }}"))
    ends_in_a_diagnostic(lambda: parse_expr(text))
    ends_in_a_diagnostic(lambda: parse_expr(text, relay=True))


@given(st.text(max_size=60))
def test_any_characters_end_in_a_diagnostic(text: str) -> None:
    ends_in_a_diagnostic(lambda: parse_module(text))
    ends_in_a_diagnostic(lambda: parse_module(HEADER + text))
    ends_in_a_diagnostic(lambda: parse_module(f"{HEADER} def @f() {{ () }} #[metadata] {text}"))


@given(modules().map(to_json).flatmap(damaged))
def test_a_damaged_document_ends_in_a_diagnostic(text: str) -> None:
    ends_in_a_diagnostic(lambda: from_json(text))


@st.composite
def changed(draw: Draw) -> str:
    """Draw a document of a module with values in it replaced by others of the document."""
    document = json.loads(to_json(draw(modules())))
    values: list[tuple[Any, Any]] = []
    pending = [document]
    while pending:
        value = pending.pop()
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in list(items):
            values.append((value, key))
            if isinstance(inner, dict | list):
                pending.append(inner)
    others = [None, True, -1, 0, 1.5, "x", "Dim", [], {}, {"at": 0}, {"enum": ["Rule", "GRAD"]}]
    for _ in range(draw(st.integers(1, 3))):
        holder, key = draw(st.sampled_from(values))
        source, name = draw(st.sampled_from(values))
        plain = [v for v in others if v != holder]
        copied = json.loads(
            json.dumps(source[name] if name in source or isinstance(name, int) else 0)
        )
        holder[key] = draw(st.sampled_from([*plain, copied]))
    return json.dumps(document)


@given(changed())
def test_a_changed_document_ends_in_a_diagnostic(text: str) -> None:
    ends_in_a_diagnostic(lambda: from_json(text))
