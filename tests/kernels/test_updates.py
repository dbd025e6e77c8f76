"""Kernels of several passes that share a launch."""

from __future__ import annotations

import torch

from tests.golden import Golden
from tests.kernels.running import check, kernels, text

STEP = """def @step[K: Dim](
    %w: Tensor[(K, 7), float32], %b: Tensor[(7,), float32], %s: float32,
    %gw: Tensor[(K, 7), float32], %gb: Tensor[(7,), float32], %gs: float32, %lr: float32) {
    let %_ = overwrite(%w, %w - %gw * %lr);
    let %_1 = overwrite(%b, %b - %gb * %lr);
    let %_2 = overwrite(%s, %s - %gs * %lr);
    exp(%gb)
}"""


def test_all_parameters_are_updated_in_one_launch() -> None:
    for rows in (0, 1, 90):
        w, b, s = torch.randn(rows, 7), torch.randn(7), torch.randn(())
        check(STEP, w, b, s, w.exp(), b.exp(), s.exp(), torch.tensor(0.1))
    assert len(kernels(STEP)) == 1


def test_the_text_of_a_step(golden: Golden) -> None:
    golden("step.txt", text(STEP))
