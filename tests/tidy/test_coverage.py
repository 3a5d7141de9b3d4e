"""The verdict of `make coverage`, on counts made up here: what is too little fails, and its file and lines are named."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import cxx_coverage as coverage  # noqa: E402


def line(number, count, branches=(), **more):
    return {"line_number": number, "count": count, "branches": [{"count": each} for each in branches], **more}


def files(**lines):
    """path (with __ for / and _dot_ for .) -> Count, as from gcovr's JSON."""
    named = {name.replace("__", "/").replace("_dot_", "."): each for name, each in lines.items()}
    return coverage.count_files({"files": [{"file": name, "lines": each} for name, each in named.items()]})


def test_enough_is_enough():
    counts = files(src__lease__a_dot_cc=[line(n, 1, (3, 1)) for n in range(1, 11)])
    assert coverage.faults_of("lease", counts) == []


def test_too_few_lines_fail_and_are_named_as_ranges():
    counts = files(src__lease__a_dot_cc=[line(n, 1) for n in range(1, 18)] + [line(18, 0), line(19, 0), line(30, 0)],
                   src__lease__b_dot_cc=[line(n, 1) for n in range(1, 9)])
    first, second = coverage.faults_of("lease", counts)
    assert first == "lease: 89.3 % of its lines are reached; at least 90 %"
    assert second == "  src/lease/a.cc: lines not reached: 18-19, 30"


def test_too_few_branches_fail_although_every_line_was_reached():
    counts = files(src__proto__a_dot_cc=[line(1, 5, (1, 0)), line(2, 5, (1, 1)), line(3, 5, (0, 1))])
    first, second = coverage.faults_of("proto", counts)
    assert first == "proto: 66.7 % of its branches are reached; at least 80 %"
    assert second == "  src/proto/a.cc: lines not reached in full: 1, 3"


def test_a_file_with_few_lines_reached_fails_in_a_well_tested_area_too():
    counts = files(src__lease__large_dot_cc=[line(n, 1) for n in range(1, 101)],
                   src__lease__small_dot_cc=[line(1, 1), line(2, 0)])
    first, second = coverage.faults_of("lease", counts)
    assert first == "src/lease/small.cc: 50.0 % of its lines are reached; at least 80 %"
    assert second == "  src/lease/small.cc: lines not reached: 2"


def test_an_area_that_no_test_compiled_is_not_enough():
    assert coverage.faults_of("gate core", {}) == ["gate core: no file of it was compiled into a test"]


def test_lines_without_code_do_not_count():
    counts = files(src__lease__a_dot_cc=[line(1, 1), line(2, 0, **{"gcovr/noncode": True})])
    assert counts["src/lease/a.cc"].lines == [1, 1]


@pytest.mark.parametrize("path, area", [
    ("src/lease/engine.cc", "lease"), ("src/lease/permit.h", "lease"), ("src/proto/url.cc", "proto"),
    ("src/gate/gate_core.cc", "gate core"), ("src/gate/hold_queue.h", "gate core"), ("src/gate/admission.cc", "gate core"),
    ("src/gate/peer_route.cc", "gate core"), ("src/gate/gate_core_peers.cc", "gate core"), ("src/gate/http_gate.cc", None),
    ("src/store/lease_store.h", None)])
def test_files_belong_to_their_area(path, area):
    found = [name for name, inside in coverage.areas_of({path: coverage.Count()}).items() if inside]
    assert found == ([area] if area else [])


def test_the_table_has_each_file_and_each_area():
    text = coverage.table({"lease": files(src__lease__a_dot_cc=[line(1, 1, (1, 0)), line(2, 0)])})
    assert "src/lease/a.cc" in text
    assert "lease: together" in text and "1/2  50.0 %" in text
