"""`str(f.module)` is the text of the module."""

from __future__ import annotations

import torch

from pyrelay import Dim, Float, Tensor, relay

N = Dim("N")


@relay
def doubled(x: Tensor[Float, (N,)]):
    return x * 2.0


def test_the_text_of_a_module_is_read_back() -> None:
    text = str(doubled.module)
    assert "def @doubled" in text
    again = relay.parse(text)
    torch.testing.assert_close(again["doubled"](torch.ones(2)), torch.full((2,), 2.0))
