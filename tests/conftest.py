"""What all tests share: golden files and the option that rewrites them, hypothesis's profiles."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

from tests.golden import Golden, folder_of

os.environ.setdefault("PYRELAY_VERIFY", "1")  # every program of every test, after every stage

settings.register_profile("patient", settings.get_profile("default"), deadline=None)
if settings.get_current_profile_name() == "default":  # in CI hypothesis chooses its own
    settings.load_profile("patient")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update-golden`."""
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the expected text of golden tests"
    )


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Tell whether golden files are to be rewritten instead of compared."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture
def golden(request: pytest.FixtureRequest, update_golden: bool) -> Golden:
    """Give the comparison with the golden files of the test's own file."""
    return Golden(folder_of(request.path), update=update_golden)
