"""Arguments of programs: drawn as plain data, and made into what each side takes."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import torch

from tests.property.differential.reference import int64


def drawn(kind: str, random: Random, size: int = 0) -> Any:
    """Return an argument of a kind, as plain data; `size` is the length of vectors."""
    many = random.randint(0, 4)
    made: dict[str, Callable[[], Any]] = {
        "Float": lambda: random.choice(
            (0.5, -1.25, 2.0, 0.0, 1.0, round(random.uniform(-3, 3), 3))
        ),
        "Int": lambda: _integer(random),
        "Small": lambda: random.randint(0, 5),
        "Bool": lambda: random.random() < 0.5,
        "Vec": lambda: [drawn("Float", random) for _ in range(size)],
        "Mat": lambda: [drawn("Vec", random, size) for _ in range(size)],
        "Floats": lambda: [drawn("Float", random) for _ in range(many)],
        "Ints": lambda: [_integer(random) for _ in range(many)],
        "Rows": lambda: [drawn("Floats", random) for _ in range(many - 1)],
        "Maybe": lambda: None if many < 2 else drawn("Float", random),
        "Point": lambda: (drawn("Float", random), _integer(random)),
        "Tree": lambda: _drawn_tree(random, 3),
    }
    return made[kind]()


def _integer(random: Random) -> int:
    near = random.choice((2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 2**62, 2**32 + 1))
    return near if random.random() < 0.12 else random.randint(-9, 12)


def _drawn_tree(random: Random, depth: int) -> tuple[Any, ...]:
    if depth and random.random() < 0.6:
        return (
            _drawn_tree(random, depth - 1),
            _drawn_tree(random, depth - 1),
            random.randint(-3, 4),
        )
    return (drawn("Float", random),) if random.random() < 0.8 else ()


def plain(value: Any, kind: str, names: dict[str, Any]) -> Any:
    """Return an argument as the reference takes it."""
    match kind:
        case "Float":
            return torch.tensor(value, dtype=torch.float32)
        case "Int" | "Small":
            return int64(value)
        case "Vec" | "Mat":
            return torch.tensor(value, dtype=torch.float32)
        case "Rows":
            return [plain(v, "Floats", names) for v in value]
        case "Point":
            return names["Point"](plain(value[0], "Float", names), int64(value[1]))
        case "Floats":
            return [plain(v, "Float", names) for v in value]
        case "Ints":
            return [int64(v) for v in value]
        case "Maybe":
            return None if value is None else plain(value, "Float", names)
        case "Tree":
            return _tree(value, names, lambda v: plain(v, "Float", names), int64)
        case _:
            return value


def taken(value: Any, kind: str, names: dict[str, Any]) -> Any:
    """Return an argument as pyrelay takes it."""
    if kind in ("Vec", "Mat"):
        return torch.tensor(value, dtype=torch.float32)
    if kind == "Point":
        return names["Point"](*value)
    return _tree(value, names, float, int) if kind == "Tree" else value


def _tree(
    value: Any, names: dict[str, Any], leaf: Callable[[Any], Any], weight: Callable[[Any], Any]
) -> Any:
    match value:
        case ():
            return names["Empty"]()
        case (number,):
            return names["Leaf"](leaf(number))
        case left, right, number:
            parts = [_tree(v, names, leaf, weight) for v in (left, right)]
            return names["Node"](*parts, weight(number))
        case _:
            raise ValueError(value)
