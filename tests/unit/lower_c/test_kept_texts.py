"""Another process finds the C text of a region on disk, as it was written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Tensor, options, relay
from pyrelay.disk_cache import DiskCache
from pyrelay.lower_c.launching import texts
from pyrelay.lower_c.text import region
from pyrelay.runtime.calls.function import RelayFunction

pytestmark = pytest.mark.host("lowerings are chosen here")

N, M = Dim("N"), Dim("M")
Rows = Tensor[Float, (N, M)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    """Run programs in C, with a cache that is empty."""
    with options(lowering="c", cache_dir=tmp_path, cache=True, verify=False):
        yield tmp_path / "regions"


@relay
def layers(x: Rows, w: Tensor[Float, (M, M)]):
    h = relay.softmax(relay.tanh(x @ w) @ w, dim=-1)
    _, places = relay.sort(x, dim=1)
    return h, (h * x).sum(dim=0), relay.scatter_add(x, 1, places, h)


@relay
def slope(x: Rows, w: Tensor[Float, (M, M)]):
    return relay.grad(loss, wrt="w")(x, w)


@relay
def loss(x: Rows, w: Tensor[Float, (M, M)]) -> Float:
    return relay.mean(relay.tanh(x @ w) ** 2)


def again(function: Any) -> Any:
    """Return a relay function as another process has it, with nothing compiled."""
    return RelayFunction(function.__relay__)


@pytest.mark.parametrize("function", [layers, slope])
def test_a_text_is_found_as_it_was_written(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = torch.randn(6, 4), torch.randn(4, 4)
    made: list[Any] = []
    write = region.region_text
    monkeypatch.setattr(region, "region_text", lambda *a: made.append(write(*a)) or made[-1])
    first = again(function)(x, w)
    assert made
    found: list[Any] = []
    look = texts._found
    monkeypatch.setattr(texts, "_found", lambda key: found.append(look(key)) or found[-1])
    monkeypatch.setattr(region, "region_text", None)
    second = again(function)(x, w)
    torch.testing.assert_close(second, first, rtol=0, atol=0)
    assert [repr(text) for text in found] == [repr(text) for text in made]


def test_other_layouts_have_other_texts(folder: Path) -> None:
    x, w = torch.randn(6, 4), torch.randn(4, 4)
    again(slope)(x, w)
    known = texts.TEXTS.usage().entries
    again(slope)(x, w)
    assert texts.TEXTS.usage().entries == known
    again(slope)(x, w.T)
    assert texts.TEXTS.usage().entries > known
    assert folder.is_dir()


@pytest.mark.parametrize("content", [b"", b"{}", b'{"format": "pyrelay-ir 1", "nodes": []}'])
def test_a_damaged_text_is_written_again(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = torch.randn(6, 4), torch.randn(4, 4)
    first = again(slope)(x, w)
    find = DiskCache.find
    monkeypatch.setattr(
        DiskCache, "find", lambda c, key: content if c is texts.TEXTS else find(c, key)
    )
    torch.testing.assert_close(again(slope)(x, w), first, rtol=0, atol=0)


def test_without_the_cache_nothing_is_kept(folder: Path) -> None:
    with options(cache=False):
        again(slope)(torch.randn(6, 4), torch.randn(4, 4))
    assert not folder.exists()
