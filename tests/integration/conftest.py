"""Fixtures: factories that make things of the harness and end them with the test, last made first.

    LEASEHOLD_BIN=build/leasehold /usr/bin/python3 -m pytest tests/integration
"""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from harness import aws_tools  # noqa: E402
from harness.app import App, TcpEcho  # noqa: E402
from harness.client import Client  # noqa: E402
from harness.dynalite import Dynalite  # noqa: E402
from harness.fault_proxy import FaultProxy  # noqa: E402
from harness.local_sqs import LocalSqs  # noqa: E402
from harness.moto import Moto  # noqa: E402
from harness.redis import Redis  # noqa: E402
from harness.sanitizer_fixtures import no_sanitizer_report, sanitizer_reports  # noqa: E402, F401
from harness.sidecar import Sidecar, binary  # noqa: E402
from harness.strict_sqs import StrictSqs  # noqa: E402

# What the tests need beside the program, and how one gets it. Nothing is skipped for want of it.
NEEDED = {
    "redis-server": "apt-get install redis-server",
    "setpriv": "apt-get install util-linux",
    "wrk": "apt-get install wrk",
    "cc": "apt-get install gcc",
}


def pytest_sessionstart(session):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]  # no test uses, or asks, what this machine may use
    missing = [f"{name} is missing; get it with: {how}"
               for name, how in NEEDED.items() if shutil.which(name) is None]
    missing += aws_tools.missing()
    if not os.access(binary(), os.X_OK):
        missing.append(f"the program {binary()} is missing; build it with: make build, "
                       "or name another in LEASEHOLD_BIN")
    if missing:
        pytest.exit("cannot test: " + "; ".join(missing), returncode=1)


@pytest.fixture
def things():
    """Whatever has close() and is pushed here is ended with the test."""
    with contextlib.ExitStack() as stack:
        yield stack


def _factory(things, make):
    def factory(*arguments, **options):
        thing = make(*arguments, **options)
        things.callback(thing.close)
        return thing
    return factory


@pytest.fixture
def redis_server(things, tmp_path):
    """redis_server(*options, persist=False, name="redis") -> Redis, running."""
    return _factory(things, lambda *options, persist=False, name="redis":
                    Redis(tmp_path / name, *options, persist=persist))


@pytest.fixture
def dynalite(things, tmp_path):
    """dynalite(persist=False, name="dynalite") -> Dynalite, running, with the table."""
    return _factory(things, lambda persist=False, name="dynalite":
                    Dynalite(tmp_path / name, persist=persist))


@pytest.fixture(params=["redis", "dynamodb"])
def store_server(request):
    """store_server(persist=False) -> a store that is a server: the same test on each kind."""
    return request.getfixturevalue({"redis": "redis_server", "dynamodb": "dynalite"}[request.param])


@pytest.fixture
def local_sqs(things, tmp_path):
    """local_sqs(queues=[...]) -> LocalSqs, running."""
    return _factory(things, lambda **options: LocalSqs(tmp_path / "local_sqs", **options))


@pytest.fixture
def moto(things, tmp_path):
    """moto(queues=[...], checking=False) -> Moto, running; `checking` verifies signatures."""
    return _factory(things, lambda **options: Moto(tmp_path / "moto", **options))


@pytest.fixture
def strict_sqs(things):
    """strict_sqs(queues=[...]) -> StrictSqs, serving in this process."""
    return _factory(things, StrictSqs)


@pytest.fixture
def sidecar(things, tmp_path):
    """sidecar(node, store, gates=[...], lease={...}, more={...}) -> Sidecar, not started."""
    return _factory(things, lambda node, store, **options:
                    Sidecar(tmp_path / node, node, store, **options))


@pytest.fixture
def app(things):
    """app(name) -> App, serving."""
    return _factory(things, App)


@pytest.fixture
def tcp_echo(things):
    return _factory(things, TcpEcho)


@pytest.fixture
def client(things):
    """client(address, rate=100) -> Client, sending."""
    return _factory(things, Client)


@pytest.fixture
def fault_proxy(things):
    """fault_proxy(store) -> FaultProxy before that Redis or Dynalite."""
    return _factory(things, lambda store: FaultProxy(store.port, store.protocol))


@pytest.fixture(scope="session")
def wall_clock_library(tmp_path_factory):
    """What LD_PRELOAD takes to move the wall clock (harness/wall_clock.c); AddressSanitizer's own
    library before it where the program has one, which must come first."""
    library = tmp_path_factory.mktemp("wall_clock") / "wall_clock.so"
    source = pathlib.Path(__file__).parent / "harness" / "wall_clock.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    linked = subprocess.run(["ldd", binary()], capture_output=True, text=True, check=True).stdout
    asan = re.search(r"libasan\S* => (\S+)", linked)
    return str(library) if asan is None else f"{asan.group(1)}:{library}"


@pytest.fixture
def moved(wall_clock_library, tmp_path):
    """moved(name, seconds) -> (environment of a process whose wall clock is moved so far, file that
    moves it further while it runs)."""
    def make(name, seconds):
        offset = tmp_path / f"offset-{name}"
        offset.write_text(str(seconds))
        return {"LD_PRELOAD": wall_clock_library, "WALL_CLOCK_OFFSET_FILE": str(offset)}, offset
    return make


def pytest_terminal_summary(terminalreporter):
    """Measured values are shown also when all is well."""
    from harness.measured import VALUES
    for line in VALUES:
        terminalreporter.write_line("measured: " + line)
