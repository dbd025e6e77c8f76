"""The LeNet example: its data, its training against plain PyTorch, its script and its notebook."""

from __future__ import annotations

import gzip
import importlib
import os
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

FOLDER = Path(__file__).parents[2] / "examples" / "lenet"


@pytest.fixture(autouse=True)
def _import_from_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))


def load(name: str) -> Any:
    """Import an example's file."""
    return importlib.import_module(name)


def test_the_digits_have_lenets_size_and_a_fixed_split() -> None:
    data = load("digits").load()
    assert data.train_images.shape == (1437, 1, 28, 28)
    assert data.test_images.shape == (360, 1, 28, 28)
    assert data.train_images.min() >= 0
    assert data.train_images.max() <= 1
    assert len(set(data.test_labels.tolist())) == 10
    again = load("digits").load()
    assert torch.equal(data.test_images, again.test_images)


def test_batches_hold_every_digit_once_and_stacked_ones_are_the_full_ones() -> None:
    data = load("digits").load()
    batches = list(data.batches(16, seed=3))
    assert [len(y) for _, y in batches] == [16] * 89 + [13]
    assert torch.cat([y for _, y in batches]).bincount().equal(data.train_labels.bincount())
    images, labels = data.stacked(16, seed=3)
    assert images.shape == (89, 16, 1, 28, 28)
    assert all(torch.equal(labels[i], batches[i][1]) for i in range(89))
    assert torch.equal(images[5], batches[5][0])


def write_idx(file: Path, shape: tuple[int, ...], body: bytes) -> None:
    data = struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape) + body
    file.write_bytes(gzip.compress(data) if file.suffix == ".gz" else data)


def test_mnist_files_are_read_plain_and_gzipped(tmp_path: Path) -> None:
    pixels = bytes(range(256)) * 7
    write_idx(tmp_path / "train-images-idx3-ubyte.gz", (2, 28, 28), pixels[: 2 * 784])
    write_idx(tmp_path / "train-labels-idx1-ubyte", (2,), b"\x07\x02")
    write_idx(tmp_path / "t10k-images-idx3-ubyte", (1, 28, 28), pixels[:784])
    write_idx(tmp_path / "t10k-labels-idx1-ubyte.gz", (1,), b"\x09")
    data = load("digits").load(tmp_path)
    assert data.train_labels.tolist() == [7, 2]
    assert data.test_labels.tolist() == [9]
    assert data.train_images.shape == (2, 1, 28, 28)
    assert data.train_images[0, 0, 0, :3].tolist() == pytest.approx([0, 1 / 255, 2 / 255])


def test_a_missing_or_broken_mnist_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="train-images-idx3-ubyte"):
        load("digits").load(tmp_path)
    write_idx(tmp_path / "train-images-idx3-ubyte", (2, 28, 28), b"short")
    with pytest.raises(SystemExit, match="not an IDX file"):
        load("digits").load(tmp_path)


def with_weights_of(net: torch.nn.Module, relay: Any, definition: Any) -> Any:
    """Return an instance of a model whose parameters have the values of a torch module's."""
    model = relay.create_model(definition)
    theirs = list(net.parameters())
    ours = list(model.parameters())
    assert [tuple(p.shape) for p in ours] == [tuple(p.shape) for p in theirs]
    model.load_state_dict(
        {n: p.detach().clone() for (n, _), p in zip(model.named_parameters(), theirs, strict=True)}
    )
    return model


def test_the_losses_of_fifty_steps_are_torchs_with_the_loop_in_the_script() -> None:
    from pyrelay import relay

    data, program, plain = load("digits").load(), load("lenet"), load("torch_lenet")
    net = plain.lenet(seed=0)
    model = with_weights_of(net, relay, program.lenet)
    expected = plain.train(net, data, epochs=1)[:50]
    losses: list[float] = []
    for x, y in list(data.batches(16, seed=0))[:50]:
        value, grads = relay.value_and_grad(model, program.loss, (x, y))
        relay.update_model_params(model, grads, lr=0.05)
        losses.append(float(value))
    assert losses == pytest.approx(expected, abs=1e-4)


def test_the_losses_of_fifty_steps_are_torchs_with_the_loop_in_the_program() -> None:
    from pyrelay import relay

    data, program, plain = load("digits").load(), load("lenet"), load("torch_lenet")
    net = plain.lenet(seed=0)
    model = with_weights_of(net, relay, program.lenet)
    expected = plain.train(net, data, epochs=1)[:50]
    images, labels = data.stacked(16, seed=0)
    means = [float(program.train(model, images[i : i + 1], labels[i : i + 1])) for i in range(25)]
    assert means == pytest.approx(expected[:25], abs=1e-4)
    rest = float(program.train(model, images[25:50], labels[25:50]))
    assert rest == pytest.approx(sum(expected[25:]) / 25, abs=1e-4)


def test_a_trained_lenet_is_saved_and_loaded_to_the_bit(tmp_path: Path) -> None:
    from pyrelay import relay

    data, program = load("digits").load(), load("lenet")
    model = relay.create_model(program.lenet, seed=0)
    x, y = next(iter(data.batches(16, seed=0)))
    _, grads = relay.value_and_grad(model, program.loss, (x, y))
    relay.update_model_params(model, grads, lr=0.05)
    exported = relay.export_model(model)
    exported.save(tmp_path / "lenet.safetensors")
    loaded = relay.load_model(tmp_path / "lenet.safetensors")
    assert torch.equal(loaded(x), exported(x))
    assert torch.equal(loaded(x[:3]), model(x[:3]))
    plain = load("torch_lenet").lenet(seed=0).eval()
    plain.load_state_dict(dict(zip(plain.state_dict(), model.parameters(), strict=True)))
    torch.testing.assert_close(loaded(x), plain(x), atol=1e-5, rtol=1e-5)


@pytest.mark.slow
def test_the_script_trains_exports_and_draws(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(FOLDER / "train.py"), "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "2"},
    )
    accuracy, exported = re.findall(r"([\d.]+)%", done.stdout)
    assert float(accuracy) >= 97
    assert accuracy == exported
    assert re.search(r"trained in [\d.]+ s", done.stdout)
    assert (tmp_path / "lenet.safetensors").stat().st_size > 1_000_000
    for name in ("digits.png", "loss.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_papers_program_trains_in_one_call() -> None:
    done = subprocess.run(
        [sys.executable, str(FOLDER / "paper.py")], capture_output=True, text=True, check=True
    )
    accuracy = re.search(r"test accuracy ([\d.]+)%", done.stdout)
    assert accuracy is not None
    assert float(accuracy[1]) >= 97


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of the notebook's own machinery
def test_the_notebook_runs_and_shows_its_mistake() -> None:
    import nbformat
    from nbclient import NotebookClient

    notebook: Any = nbformat.read(FOLDER / "lenet.ipynb", as_version=4)
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(FOLDER)}})
    client.execute()
    text = "\n".join(
        output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", [])
    )
    assert "error[RL" in text
    assert "--> In[4]:" in text
    assert "test accuracy 9" in text
