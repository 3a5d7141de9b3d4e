"""A sanitizer's report fails the test during which it was written: shown with planted faults of each kind, in a
child as the tests start them, whatever becomes of its exit code and its output."""

import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

from harness import sanitizer  # noqa: E402
from harness.process import Process  # noqa: E402

PROGRAM = r"""
#include <cstring>
int main(int count, char** words) {
  if (std::strcmp(words[1], "past_the_end") == 0) { volatile char* piece = new char[3]; piece[count + 2] = 1; }
  if (std::strcmp(words[1], "overflow") == 0) { volatile int most = 2147483647; most = most + count; }
  if (std::strcmp(words[1], "leak") == 0) { void* volatile lost = new char[10]; lost = nullptr; }
}
"""
FAULTS = {"past_the_end": "AddressSanitizer: heap-buffer-overflow", "overflow": "runtime error: signed integer overflow",
          "leak": "LeakSanitizer: detected memory leaks"}
FLAGS = ["-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-static-libasan", "-static-libubsan"]


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faulty")
    (folder / "faulty.cc").write_text(PROGRAM)
    subprocess.run(["g++", *FLAGS, "-o", folder / "faulty", folder / "faulty.cc"], check=True)
    return folder / "faulty"


@pytest.fixture
def reports(faulty, tmp_path, monkeypatch):
    """The session's Reports as a conftest gets them where nobody named a folder."""
    for name in (sanitizer.FOLDER, *sanitizer.PASSED_ON):
        monkeypatch.setenv(name, "")   # so that it is put back
        monkeypatch.delenv(name)
    folder = tmp_path / "reports"
    folder.mkdir()
    begun = sanitizer.begin(faulty, lambda: folder)
    yield begun
    for name in (sanitizer.FOLDER, *sanitizer.PASSED_ON):
        os.environ.pop(name, None)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_report_of_a_child_whose_output_nobody_reads_is_found(fault, faulty, reports):
    subprocess.run(f"{faulty} {fault} 2>/dev/null || true", shell=True, check=True, stdin=subprocess.DEVNULL)
    found = reports.new()
    assert FAULTS[fault] in found
    assert not reports.new(), "told twice"


@pytest.mark.parametrize("fault", FAULTS)
def test_closing_a_child_that_ended_with_a_report_fails(fault, faulty, reports, tmp_path):
    child = Process([faulty, fault], tmp_path / "output")
    child.wait(10)
    with pytest.raises(AssertionError, match="sanitizer's exit code"):
        child.close()
    assert FAULTS[fault] in reports.new()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_report_in_the_output_fails_where_no_folder_is_named(fault, faulty, tmp_path):
    child = Process([faulty, fault], tmp_path / "output", env={"ASAN_OPTIONS": "", "UBSAN_OPTIONS": ""})
    child.wait(10)
    with pytest.raises(AssertionError, match="a sanitizer's report in its output"):
        child.close()


def test_what_ends_well_or_is_killed_is_no_fault(faulty, reports, tmp_path):
    child = Process([faulty, "nothing"], tmp_path / "output")
    assert child.wait(10) == 0
    child.close()
    Process(["cat", "/dev/zero"], "/dev/null").close()
    assert not reports.new()


def test_a_program_without_sanitizers_has_no_reports():
    assert sanitizer.begin("/bin/true", lambda: pytest.fail("a folder was made")) is None
