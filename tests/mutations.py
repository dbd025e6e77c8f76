"""Every text that the tests hold, and texts changed at random: words cut out, doubled, exchanged,
or others of the same kind put in their place."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

from pyrelay.ir.types import DTYPES
from pyrelay.operators.table import BY_NAME
from pyrelay.prelude import library, relay_library
from pyrelay.relay05.table import SUPPORTED
from pyrelay.text.lexis import TRANSFORMS

FOLDER: Final = Path(__file__).parent
LONGEST: Final = 4000
"""Longer texts take too long to be read again and again."""

WORD: Final = re.compile(
    r'"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`|[@%]?[A-Za-z_]\w*(?:\.\w+)*\??|%?\d+(?:\.\d+)?\w*'
    r"|->|=>|//|==|!=|<=|>=|::|\s+|.",
    re.DOTALL,
)
_IN_SOURCE: Final = re.compile(r"^\s*(?:#\[|def @|type \w|free_var)", re.MULTILINE)


@cache
def texts() -> tuple[str, ...]:
    """Return every text of a program that stands in a file of the tests, or in the prelude."""
    found = [path.read_text("utf-8") for path in sorted(FOLDER.rglob("*.relay"))]
    preludes = (Path(holder.__file__).parent / holder.FILE for holder in (library, relay_library))
    found += [path.read_text("utf-8") for path in preludes]
    for path in sorted(FOLDER.rglob("*.py")):
        nodes = ast.walk(ast.parse(path.read_text("utf-8")))
        constants = (n.value for n in nodes if isinstance(n, ast.Constant))
        found += [value for value in constants if isinstance(value, str)]
    programs = [t for t in dict.fromkeys(found) if _IN_SOURCE.search(t) and "@" in t]
    return tuple(t for t in programs if len(t) <= LONGEST)


ATTRIBUTES: Final = sorted({p.name for op in BY_NAME.values() for p in op.attributes})
VALUES: Final = (
    *("None", "True", "False", "0", "1", "-1", "7", "0.5", "N", "N - 1", '"mean"', '""', '"ij->j"'),
    *("()", "(0,)", "(1, 2)", "(-1, N)", "float32", "int64", "bool", "inf", "nan", "Dim[N]"),
    *('(("int", 0),)', '(("slice", None, N, None),)', "{1}", "{%x}"),
)
TYPES: Final = (
    *("Tensor[(N,), float32]", "Tensor[(2, N), float32]", "Tensor[(), int64]", "Size[N]", "str"),
    *(
        "(float32, int64)",
        "()",
        "ref(float32)",
        "fn (float32) -> float32",
        "A",
        "Tensor[(?,), bool]",
    ),
    *("Tensor[(N + 1,), float32]", "prelude.List[float32]", "prelude.Option[int64]"),
    *sorted(DTYPES),
)
NUMBERS: Final = ("0", "1", "2", "3", "7", "1i64", "2i32", "3size", "0.5", "2.5f32", "1e30", "2f")
PIECES: Final = (
    *("(", ")", "{", "}", "[", "]", ",", ";", "=", "=>", "->", ":", ".0", ".1", ".7", "_", "@"),
    *("let %z = ", "let rec ", "fn ", "if ", " else ", "match ", "match? ", "ref(", "ref_read("),
    *("?", "?3", "()", "%x", "grad(", "vmap(", "jvp(", "vjp(", "True", "'T", "+", "*", "-", "=="),
)


def changed(text: str, random: Random, times: int) -> str:
    """Return a text with some words changed."""
    words = WORD.findall(text)
    for _ in range(times):
        if words:
            _change(words, random)
    return "".join(words)


def changed_document(text: str, random: Random) -> str:
    """Return a JSON document of a program with values in its nodes replaced by others."""
    document = json.loads(text)
    places: list[tuple[Any, Any]] = []
    pending: list[Any] = [document["nodes"]]
    while pending:
        value = pending.pop()
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            places.append((value, key))
            if isinstance(inner, dict | list):
                pending.append(inner)
    for _ in range(random.choice((1, 1, 2, 3))):
        holder, key = random.choice(places)
        source, name = random.choice(places)
        count = len(source) if isinstance(source, list) else 0
        copied = source[name] if isinstance(source, dict) or name < count else None
        value = random.choice((copied, copied, *PLAIN, {"op": random.choice(sorted(BY_NAME))}))
        if isinstance(holder, dict) or key < len(holder):
            holder[key] = json.loads(json.dumps(value))
        if isinstance(holder, list) and random.random() < 0.1:
            del holder[random.randrange(len(holder) + 1) :]
    return json.dumps(document)


PLAIN: Final = (
    *(None, True, False, -1, 0, 1, 2, 7, "x", "N", "dim", [], {}, [1, 2], {"at": 0}, {"at": 5}),
    *({"float": "nan"}, {"float": "0.5"}, {"enum": ["Rule", "GRAD"]}, {"enum": ["Flavour", "REC"]}),
    *({"map": []}, {"map": [["dim", 0]]}, {"map": [["size", [2]], ["dtype", None]]}),
)


def _change(words: list[str], random: Random) -> None:
    """Change one word, or a few that stand together."""
    at = random.randrange(len(words))
    match random.randrange(8):
        case 0:
            del words[at : at + random.randint(1, 4)]
        case 1:
            words[at:at] = words[at : at + random.randint(1, 8)]
        case 2:
            other = random.randrange(len(words))
            words[at], words[other] = words[other], words[at]
        case 3:
            words.insert(at, random.choice(PIECES))
        case 4:
            words.insert(at, f", {random.choice(ATTRIBUTES)}={random.choice(VALUES)}")
        case _:
            places = [i for i, w in enumerate(words) if _others(words, w)]
            if places:
                at = random.choice(places)
                words[at] = random.choice(_others(words, words[at]))


def _others(words: list[str], word: str) -> list[str]:
    """Return what may stand in the place of a word: others of its kind."""
    if word.startswith(("%", "@")) and len(word) > 1:
        return [w for w in words if w.startswith(word[0]) and len(w) > 1]
    if word in BY_NAME:
        return [w for w in words if w in BY_NAME] * 9 + list(BY_NAME)
    if word in SUPPORTED:
        return list(SUPPORTED)
    if word in TRANSFORMS:
        return list(TRANSFORMS)
    if word in ATTRIBUTES:
        return ATTRIBUTES
    if word in DTYPES or word == "Tensor":
        return list(TYPES)
    if word[:1].isdigit():
        return list(NUMBERS)
    if word.startswith('"') or word in ("True", "False", "None"):
        return list(VALUES)
    return []
