"""The chart's tests: `make helm-test`, or

    LEASEHOLD_BIN=build/leasehold /usr/bin/python3 -m pytest tests/helm
"""

import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]

from chart import helm_binary  # noqa: E402
from harness.sanitizer_fixtures import no_sanitizer_report, sanitizer_reports  # noqa: E402, F401
from harness.sidecar import binary  # noqa: E402
from kube_schema import WHEEL  # noqa: E402


def pytest_sessionstart(session):
    missing = [f"{path} is missing; get it with: {how}"
               for path, how in ((helm_binary(), ".ci/deps helm, or name yours in HELM"),
                                 (str(WHEEL), ".ci/deps helm"), (binary(), "make build"))
               if not os.path.exists(path)]
    if missing:
        pytest.exit("cannot test: " + "; ".join(missing), returncode=1)
