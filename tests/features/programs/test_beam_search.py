"""Beam search over a table of transitions: hypotheses as records, sorted lists, a best path."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch

from pyrelay import Dim, Float, Int, Tensor, relay

V, T = Dim("V"), Dim("T")


@dataclass(frozen=True)
class Hypothesis:
    score: Float
    tokens: list[Int]

    @property
    def last(self) -> Int:
        return self.tokens[-1]

    def extended(self, token: Int, log_probability: Float) -> Hypothesis:
        return Hypothesis(self.score + log_probability, [*self.tokens, token])


@relay
def beam_search(
    transitions: Tensor[Float, (V, V)], start: Int, steps: int, width: int
) -> list[Hypothesis]:
    log_probabilities = relay.log_softmax(transitions, dim=1)
    beam = [Hypothesis(0.0, [start])]
    for _ in range(steps):
        candidates = []
        for hypothesis in beam:
            row = log_probabilities[hypothesis.last]
            for token in range(len(row)):
                candidates.append(hypothesis.extended(token, row[token]))
        beam = sorted(candidates, key=lambda h: h.score, reverse=True)[:width]
    return beam


@relay
def best_score(transitions: Tensor[Float, (V, V)], steps: int, width: int) -> Float:
    beam = beam_search(transitions, 0, steps, width)
    return max(beam, key=lambda h: h.score).score


def table() -> torch.Tensor:
    return torch.randn(4, 4, generator=torch.Generator().manual_seed(0))


def scored(paths: list[tuple[int, ...]]) -> list[tuple[float, list[int]]]:
    log = table().log_softmax(1)
    found = [
        (float(sum(log[a, b] for a, b in itertools.pairwise((0, *path)))), [0, *path])
        for path in paths
    ]
    return sorted(found, key=lambda pair: pair[0], reverse=True)


def test_a_wide_beam_finds_the_best_paths_of_all() -> None:
    expected = scored(list(itertools.product(range(4), repeat=3)))[:5]
    found = beam_search(table(), 0, 3, 64)
    for hypothesis, (score, path) in zip(list(found)[:5], expected, strict=True):
        assert [int(token) for token in hypothesis.tokens] == path
        torch.testing.assert_close(hypothesis.score, torch.tensor(score))


def test_a_beam_of_one_is_greedy() -> None:
    (found,) = beam_search(table(), 0, 5, 1)
    path = [0]
    for _ in range(5):
        path.append(int(table()[path[-1]].argmax()))
    assert [int(token) for token in found.tokens] == path


def test_the_score_of_the_best_path_is_differentiated_by_the_table() -> None:
    transitions = table().requires_grad_()
    (path,) = (path for _, path in scored(list(itertools.product(range(4), repeat=3)))[:1])
    log = transitions.log_softmax(1)
    sum(log[a, b] for a, b in itertools.pairwise(path)).backward()
    ours = relay.grad(best_score, wrt="transitions")(table(), 3, 64)
    torch.testing.assert_close(ours, transitions.grad)
