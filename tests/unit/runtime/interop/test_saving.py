"""Saved models: what is loaded is what was saved."""

from __future__ import annotations

import inspect
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load

from pyrelay import (
    Bool,
    CheckError,
    Dim,
    Float,
    Int,
    Model,
    RunError,
    Tensor,
    bfloat16,
    float32,
    float64,
    relay,
    relay_model,
)
from pyrelay.ir.rules import same_as_operand
from pyrelay.runtime.interop.export import Exported

N, K, T = Dim("N"), Dim("K"), Dim("T")
TABLE = relay.const(torch.linspace(-1.0, 1.0, 40).reshape(4, 10))


@relay_model
def block(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 4)]:
    h = relay.batch_norm(relay.linear(x, out_features=4))
    return relay.dropout(relay.tanh(h), p=0.5)


@relay_model
def tower(
    x: Tensor[Float, (N, 4)], scale: Float = 2.0, *, shift: Float = 0.0, hidden: int = 4
) -> Tensor[Float, (N, K)]:
    for _ in relay.layers(3):
        x = block(x)
    return relay.linear(x, out_features=hidden) * scale + shift


@relay
def halves(x: Tensor[Float, (N, 4)], count: Int) -> Tensor[Float, (N, 4)]:
    return x if count == 0 else halves(x / 2, count - 1)


@relay_model
def structured(
    pair: tuple[Tensor[Float, (N, 4)], Tensor[Int, (N,)]], count: Int, twice: Bool
) -> tuple[Tensor[Float, (N, 10)], Int]:
    x, labels = pair
    weight = relay.param((4, 4))

    def step(h: Tensor[Float, (N, 4)]):
        return relay.sin(h @ weight)

    steps = 0
    while steps < count:
        x = step(step(x)) if twice else step(x)
        steps += 1
    return halves(x, count) @ TABLE, steps + labels.max()


@relay_model
def open_net(x: Tensor[Float, (N, K)], *, width: int) -> Tensor[Float, (N, 2)]:
    return relay.linear(relay.linear(x, out_features=width), out_features=2)


@relay_model
def score(x: Tensor[float64, (N,)], weight: Tensor[bfloat16, (N,)]) -> float:
    scale = relay.param((2,), name="scale")
    slope = relay.cast(relay.grad(cube)(2.0), dtype=float64)
    total = (x * relay.cast(weight, dtype=float64)).sum()
    return relay.cast(total * relay.cast(scale, dtype=float64).sum() + slope, dtype=float32)


@relay
def cube(x: Float) -> Float:
    return x * x * x


@relay_model
def recurrent(xs: Tensor[Float, (T, N, 4)]) -> Tensor[Float, (N, 4)]:
    h = relay.zeros_like(xs[0])
    for x in xs:
        h = block(x + h)
    return h


def tensors_of(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


X = tensors_of(1, 5, 4)
CASES: dict[str, tuple[Callable[[], Model], tuple[Any, ...]]] = {
    "state and layers": (lambda: relay.create_model(tower, hidden=6), (X, 1.5)),
    "control, closures, recursion, constants": (
        lambda: relay.create_model(structured),
        ((X, torch.arange(5)), 3, True),
    ),
    "open sizes": (lambda: relay.create_model(open_net, dims={K: 4}, width=7), (X,)),
    "dtypes, a gradient, a Python number": (
        lambda: relay.create_model(score),
        (tensors_of(2, 3).double(), tensors_of(3, 3).bfloat16()),
    ),
    "a loop over a model": (lambda: relay.create_model(recurrent), (tensors_of(4, 6, 5, 4),)),
}


def same(left: Any, right: Any) -> bool:
    """Return whether two results are equal to the bit."""
    if isinstance(left, tuple):
        return isinstance(right, tuple) and all(map(same, left, right))
    if isinstance(left, torch.Tensor):
        return left.dtype == right.dtype and torch.equal(left, right)
    return type(left) is type(right) and left == right


@pytest.mark.parametrize("name", CASES)
def test_the_loaded_model_is_the_exported_one(name: str, tmp_path: Path) -> None:
    make, args = CASES[name]
    model = make().eval()
    exported = relay.export_model(model)
    file = tmp_path / "model.safetensors"
    exported.save(file)
    loaded = relay.load_model(file)
    with torch.no_grad():  # else a float would stay a tensor, for torch's gradient
        expected = model(*args)
    assert same(exported(*args), expected)
    assert same(loaded(*args), expected)
    assert str(loaded) == str(exported)
    assert loaded.type == exported.type
    assert repr(loaded) == repr(exported)
    assert inspect.signature(loaded) == inspect.signature(exported)
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == file.read_bytes()
    copied = pickle.loads(pickle.dumps(loaded))
    assert same(copied(*args), expected)


def exported_tower() -> Exported:
    return relay.export_model(relay.create_model(tower, hidden=6))


def test_arguments_have_the_names_and_defaults_of_the_definition(tmp_path: Path) -> None:
    exported = exported_tower()
    exported.save(tmp_path / "model")
    for f in (exported, relay.load_model(tmp_path / "model")):
        torch.testing.assert_close(f(X), f(x=X, scale=2.0))
        torch.testing.assert_close(f(X, 3.0, shift=1.0), f(scale=3.0, x=X, shift=torch.tensor(1.0)))
        assert str(inspect.signature(f)) == "(x, scale=2.0, *, shift=0.0)"
        for wrong in (lambda f=f: f(), lambda f=f: f(X, 1.0, 2.0), lambda f=f: f(X, size=2)):
            with pytest.raises(RunError) as caught:
                wrong()
            assert caught.value.codes == ("RL554",)


def test_a_wrong_argument_is_shown_in_the_signature(tmp_path: Path) -> None:
    exported_tower().save(tmp_path / "model")
    with pytest.raises(RunError) as caught:
        relay.load_model(tmp_path / "model")(torch.ones(3, 5))
    (found,) = caught.value.diagnostics
    assert found.code == "RL551"
    assert found.primary is not None
    assert found.primary.span.text == "x: Tensor[Float, (N, 4)]"
    assert found.primary.span.file.name == str(tmp_path / "model")


def test_a_model_that_a_program_exports_is_saved(tmp_path: Path) -> None:
    @relay
    def make(x: Tensor[Float, (N, 4)]):
        model = relay.create_model(tower, seed=3, hidden=2)
        return model(x), relay.export_model(model)

    value, exported = make(X)
    exported.save(tmp_path / "model")
    loaded = relay.load_model(tmp_path / "model")
    assert same(loaded(X), exported(X))
    assert value.shape == loaded(X).shape
    weights = load((tmp_path / "model").read_bytes())
    assert set(weights) - {".program"} == set(relay.create_model(tower, hidden=2).state_dict()) | {
        f"block.{i}.dropout_1.key" for i in range(3)
    }


def test_another_process_needs_no_source(tmp_path: Path) -> None:
    exported = exported_tower()
    exported.save(tmp_path / "model")
    torch.save(X, tmp_path / "x")
    script = (
        "import torch\nfrom pyrelay import relay\n"
        "f = relay.load_model('model')\n"
        "torch.save(f(torch.load('x')), 'y')\n"
        "f.save('again')\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=env, check=True)
    torch.testing.assert_close(torch.load(tmp_path / "y"), exported(X))
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_a_save_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "model"
    exported_tower().save(file)
    before = file.read_bytes()

    def full(_: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        relay.export_model(relay.create_model(tower, hidden=9)).save(file)
    assert file.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def halved(x: torch.Tensor) -> torch.Tensor:
    """Halve."""
    return x / 2


HALVED = relay.operator(type_rule=same_as_operand(), samples=())(halved)


@relay_model
def own(x: Tensor[Float, (N, 4)]) -> Tensor[Float, (N, 4)]:
    return HALVED(relay.linear(x, out_features=4))


def test_a_users_own_operator_is_given_again(tmp_path: Path) -> None:
    exported = relay.export_model(relay.create_model(own))
    exported.save(tmp_path / "model")
    loaded = relay.load_model(tmp_path / "model", operators=[HALVED])
    assert same(loaded(X), exported(X))
    with pytest.raises(CheckError) as caught:
        relay.load_model(tmp_path / "model")
    assert caught.value.codes == ("RL413",)
    assert "halved" in str(caught.value)


@dataclass(frozen=True)
class Point:
    x: Float
    n: int
    label: float = 0.5


@relay_model
def moved(x: Tensor[Float, (N, 4)], p: Point) -> tuple[Tensor[Float, (N, 4)], Point, Point]:
    return relay.linear(x, out_features=4), p, Point(x.sum(), 7)


def test_values_of_users_classes_go_in_and_out(tmp_path: Path) -> None:
    exported = relay.export_model(relay.create_model(moved))
    exported.save(tmp_path / "model")
    loaded = relay.load_model(tmp_path / "model")
    assert loaded.classes == {"Point": Point}
    p = Point(torch.tensor(1.0), 3)
    for f in (exported, loaded, pickle.loads(pickle.dumps(loaded))):
        value, same_point, new_point = f(X, p)
        torch.testing.assert_close(value, exported(X, p)[0])
        assert same_point == p
        assert type(new_point) is Point
        assert (new_point.n, new_point.label) == (7, 0.5)


def test_where_a_class_is_not_known_one_like_it_is_made(tmp_path: Path) -> None:
    exported = relay.export_model(relay.create_model(moved))
    exported.save(tmp_path / "model")
    torch.save((X, exported(X, Point(torch.tensor(1.0), 3))[0]), tmp_path / "values")
    script = (
        "import torch\nfrom pyrelay import relay\n"
        "f = relay.load_model('model')\n"
        "x, expected = torch.load('values')\n"
        "Point = f.classes['Point']\n"
        "value, p, new = f(x, Point(torch.tensor(1.0), n=3))\n"
        "torch.testing.assert_close(value, expected)\n"
        "assert p == Point(torch.tensor(1.0), 3, 0.5)\n"
        "assert (new.n, new.label, type(new)) == (7, 0.5, Point)\n"
        "f.save('again')\n"
        "print(p)\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=env, check=True, capture_output=True
    )
    assert done.stdout == b"Point(x=tensor(1.), n=3, label=0.5)\n"
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


@dataclass(frozen=True)
class Leaf:
    value: Tensor[Float, (4,)]


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


@relay_model
def folded(tree: Tree) -> Tensor[Float, (4,)]:
    match tree:
        case Leaf(value):
            return relay.tanh(relay.linear(value, out_features=4))
        case Node(left, right):
            both = relay.cat((folded(left), folded(right)))
            return relay.tanh(relay.linear(both, out_features=4))


def test_a_recursive_model_is_loaded_for_trees_of_any_shape_and_depth(tmp_path: Path) -> None:
    exported = relay.export_model(relay.create_model(folded))
    exported.save(tmp_path / "model")
    loaded = relay.load_model(tmp_path / "model")
    assert loaded.classes == {"Leaf": Leaf, "Node": Node}
    tree: Leaf | Node = Leaf(X[0])
    for depth in range(20_000):
        if depth in (0, 1, 5, 200):
            torch.testing.assert_close(loaded(tree), exported(tree))
        tree = Node(tree, Leaf(X[depth % 5])) if depth % 2 else Node(Leaf(X[depth % 5]), tree)
    torch.testing.assert_close(loaded(tree), exported(tree))


def test_a_program_that_is_no_text_is_told(tmp_path: Path) -> None:
    file = tmp_path / "block.relay"
    relay.export_model(relay.create_model(block, seed=0)).save(file)
    data = bytearray(file.read_bytes())
    data[data.rindex(b"def @")] = 0xFF
    file.write_bytes(data)
    with pytest.raises(CheckError, match="its program is no text"):
        relay.load_model(file)
