"""Each checker of `make check` finds a planted fault, and lets what is right through. Apart from the tests of
`make test`, which does not install the checkers; `make check` runs it:

    /usr/bin/python3 -m pytest tests/tidy/planted.py
"""

import os
import pathlib
import shutil
import subprocess
import sys

import cppcheck
import pytest
import scripts

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

CPPCHECK = {
    "containerOutOfBounds": "#include <vector>\nint F() {\n  std::vector<int> v;\n  return v[3];\n}\n",
    "arrayIndexOutOfBounds": "int F() {\n  int a[3] = {1, 2, 3};\n  int sum = 0;\n"
                             "  for (int i = 0; i <= 3; ++i) sum += a[i];\n  return sum;\n}\n",
    "accessMoved": "#include <string>\n#include <utility>\nvoid G(std::string);\nvoid F(std::string s) {\n"
                   "  G(std::move(s));\n  G(s);\n}\n",
    "nullPointerRedundantCheck": "int F(int* p) {\n  const int x = *p;\n  if (p == nullptr) return 0;\n  return x;\n}\n",
    "uninitMemberVar": "class A {\n public:\n  A() {}\n  int Get() const { return x_; }\n\n private:\n  int x_;\n};\n",
    "invalidContainer": "#include <vector>\nint F() {\n  std::vector<int> v{1, 2};\n  const int* p = &v[0];\n"
                        "  v.push_back(1);\n  return *p;\n}\n",
    "danglingTemporaryLifetime": "#include <string>\nstd::string G();\nchar F() {\n  const char* p = G().c_str();\n"
                                 "  return *p;\n}\n",
    "memleak": "int F(bool b) {\n  int* p = new int(1);\n  if (b) return 0;\n  delete p;\n  return 1;\n}\n",
    "wrongPrintfScanfArgNum": "#include <cstdio>\nvoid F() { std::printf(\"%d %d\", 1); }\n",
}


@pytest.mark.parametrize("fault", CPPCHECK)
def test_cppcheck_finds(fault, tmp_path):
    (tmp_path / "a.cc").write_text(CPPCHECK[fault])
    well, found = cppcheck.run([tmp_path / "a.cc"], tmp_path, 1)
    assert not well
    assert f"[{fault}]" in found


def test_cppcheck_lets_through_what_is_right(tmp_path):
    (tmp_path / "a.cc").write_text("#include <vector>\nint F(const std::vector<int>& v) { return v.empty() ? 0 : v[0]; }\n")
    assert cppcheck.run([tmp_path / "a.cc"], tmp_path, 1) == (True, "")


def test_cppcheck_tells_of_a_suppression_that_meets_nothing(tmp_path):
    (tmp_path / "a.cc").write_text("int F() { return 1; }\n")
    (tmp_path / "suppressions.txt").write_text("# a reason\nmemleak:a.cc\n")
    well, found = cppcheck.run(["a.cc"], tmp_path, 1, suppressions=tmp_path / "suppressions.txt")
    assert not well
    assert "[unmatchedSuppression]" in found


def test_every_suppression_of_cppcheck_has_its_reason_before_it():
    before = ""
    for line in (HERE / "cppcheck.txt").read_text().splitlines():
        assert not line or line.startswith("#") or before.startswith("# "), line
        before = line


PYTHON = {
    "undefined name 'y'": "x = y\n",
    "'os' imported but unused": "import os\n",
    "local variable 'x' is assigned to but never used": "def f():\n    x = 1\n",
    "invalid syntax": "def f(:\n",
    "redefinition of unused 'f' from line 1": "def f():\n    pass\n\n\ndef f():\n    pass\n",
    "assertion is always true, perhaps remove parentheses?": "assert (1 == 2, 'never')\n",
}
SHELL = {
    "SC2086": "#!/bin/sh\nrm -f $1\n",
    "SC2164": "#!/bin/bash\ncd \"$1\"\nrm -f x\n",
    "SC2154": "#!/bin/sh\necho \"$nowhere\"\n",
}


@pytest.mark.parametrize("name", ("tests/fuzz/a.py", "bench/run_it"))
@pytest.mark.parametrize("fault", PYTHON)
def test_pyflakes_finds(fault, name, tmp_path):
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(PYTHON[fault] if name.endswith(".py") else "#!/usr/bin/env python3\n" + PYTHON[fault])
    findings = scripts.check(tmp_path)
    told = fault.replace("line 1", "line 2") if not name.endswith(".py") else fault
    assert [told in finding and finding.startswith(name + ":") for finding in findings] == [True], findings


@pytest.mark.parametrize("fault", SHELL)
def test_shellcheck_finds(fault, tmp_path):
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "a").write_text(SHELL[fault])
    findings = scripts.check(tmp_path)
    assert len(findings) == 1 and fault in findings[0] and findings[0].startswith(".ci/a:"), findings


def test_scripts_that_are_right_or_say_why_are_let_through(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a.py").write_text(
        "from b import f  # noqa: F401 (a fixture)\n\n\ndef test_g(f):\n    assert f\n")
    (tmp_path / "tests" / "a.sh").write_text("#!/bin/sh\n# shellcheck disable=SC2086  # words\necho $1\n")
    (tmp_path / "tests" / "a.txt").write_text("import os\n")
    assert scripts.check(tmp_path) == []


def test_scripts_finds_ours():
    python, shell = scripts.sources(ROOT)
    names = {str(path.relative_to(ROOT)) for path in python + shell}
    assert {"tests/run.py", "bench/run", ".ci/run", ".ci/deps", ".ci/chart-tools"} <= names


@pytest.fixture
def copy(tmp_path):
    """What clang-tidy's front reads, with one room, so that a fault can be planted there."""
    for name in (".clang-tidy", ".clang-format"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "tests" / "tidy").mkdir(parents=True)
    shutil.copy(HERE / "clang_tidy.py", tmp_path / "tests" / "tidy")
    room = tmp_path / "src" / "base"
    room.mkdir(parents=True)

    def run(text):
        source = room / "a.cc"
        source.write_text(text)
        (tmp_path / "compile_commands.json").write_text(
            f'[{{"directory": "{tmp_path}", "file": "{source}", "command": "c++ -std=c++20 -o a.o -c {source}"}}]')
        return subprocess.run([sys.executable, tmp_path / "tests/tidy/clang_tidy.py", "--build", tmp_path], text=True,
                              capture_output=True, check=False, stdin=subprocess.DEVNULL, env=dict(os.environ))
    return run


TIDY = {
    "bugprone-use-after-move": CPPCHECK["accessMoved"],
    "readability-identifier-naming": "namespace leasehold {\nint F(int BadName) { return BadName; }\n}  // namespace leasehold\n",
    "clang-analyzer-core.NullDereference": "int F(bool b) {\n  int* p = nullptr;\n  if (b) return 1;\n  return *p;\n}\n",
}


@pytest.mark.parametrize("fault", TIDY)
def test_clang_tidy_finds(fault, copy):
    done = copy(TIDY[fault])
    assert done.returncode == 1
    assert fault in done.stdout, done.stdout + done.stderr


def test_clang_tidy_lets_through_what_is_right(copy):
    done = copy("namespace leasehold {\nint F(int x) { return x; }\n}  // namespace leasehold\n")
    assert done.returncode == 0, done.stdout + done.stderr


def test_clang_format_finds_what_it_would_write_otherwise(tmp_path):
    shutil.copy(ROOT / ".clang-format", tmp_path)
    (tmp_path / "a.cc").write_text("int  F( ) { return 1;}\n")
    done = subprocess.run(["clang-format", "--dry-run", "-Werror", tmp_path / "a.cc"], capture_output=True, check=False)
    assert done.returncode != 0
