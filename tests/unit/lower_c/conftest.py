"""Tests of C have the same random inputs each time: sums that cancel differ by more than others."""

from __future__ import annotations

import zlib

import pytest
import torch


@pytest.fixture(autouse=True)
def seeded(request: pytest.FixtureRequest) -> None:
    """Begin the random numbers of a test at a seed of its own."""
    torch.manual_seed(zlib.crc32(request.node.name.encode()))
