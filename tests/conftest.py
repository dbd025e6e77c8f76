"""What all tests share: the option that rewrites golden files, and hypothesis without deadlines."""

from __future__ import annotations

import pytest
from hypothesis import settings

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
