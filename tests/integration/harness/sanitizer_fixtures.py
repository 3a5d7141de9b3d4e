"""Fixtures for a conftest that starts the program: imported there, they hold for every test below it."""

import pytest

from . import sanitizer
from .sidecar import binary


@pytest.fixture(scope="session")
def sanitizer_reports(tmp_path_factory):
    return sanitizer.begin(binary(), lambda: tmp_path_factory.mktemp("sanitizer"))


@pytest.fixture(autouse=True)
def no_sanitizer_report(sanitizer_reports):
    """Looks last of all: being first in a test's set-up, it is torn down after whatever was started."""
    yield
    if sanitizer_reports is not None:
        found = sanitizer_reports.new()
        assert not found, found
