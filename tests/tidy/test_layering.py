"""The checker itself: the house is clean, every planted fault is found, and what is right is let through."""

import pathlib

import cxx_text
import layering
import pytest

CMAKE = """
leasehold_room(base)
leasehold_room(lease ROOMS base)
leasehold_room(proto ROOMS base LIBS llhttp)
leasehold_room(observe ROOMS base LIBS spdlog::spdlog)
leasehold_room(loop ROOMS base LIBS PkgConfig::UV)
leasehold_room(store ROOMS base lease loop)  # a remark
leasehold_room(gate ROOMS base lease loop)
leasehold_room(config ROOMS base)
leasehold_room(cli ROOMS base loop)
"""
README = "\n".join(f"| `{room}` | purpose | {knows} |" for room, knows in [
    ("base", "std only"), ("lease", "`base`"), ("proto", "`base`"), ("observe", "`base`"), ("loop", "`base`"),
    ("store", "`base` `lease` `loop`"), ("gate", "`base` `lease` `loop`"), ("config", "`base`"),
    ("cli", "`base` `loop`")]) + "\n"
OPENING = "// Thing: what it is, what it is not, who owns it, and its invariant.\n#pragma once\n"


@pytest.fixture
def house(tmp_path):
    """house({path: text}) -> findings in a small clean house with these files in it."""
    def build(files, cmake=CMAKE, readme=README):
        everything = {"CMakeLists.txt": cmake, "src/README.md": readme, "src/base/result.h": OPENING,
                      "src/loop/loop.h": OPENING, **files}
        for name, text in everything.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return layering.Checker(tmp_path).run()
    return build


def test_this_house_is_clean():
    findings = layering.Checker(layering.ROOT).run()
    assert not findings, "\n".join(map(str, findings))


def test_this_house_has_rooms_and_sources():
    checker = layering.Checker(layering.ROOT)
    assert {"base", "lease", "loop", "store", "gate", "app"} <= checker.rooms.keys()
    assert len(list((layering.ROOT / "src").rglob("*.cc"))) > 50


def test_a_small_house_without_faults_is_clean(house):
    assert house({}) == []


PLANTED = [
    # (rule, file, text, line)
    ("layering", "src/gate/a.cc", '#include "store/lease_store.h"\n', 1),
    ("layering", "src/base/a.cc", '#include "loop/loop.h"\n', 1),
    ("layering", "src/store/a.cc", '\n#  include "gate/gate.h"\n', 2),
    ("layering", "src/main.cc", '#include "loop/loop.h"\n', 1),
    ("layering", "src/store/a.cc", '#include "a.h"\n', 1),
    ("layering", "src/store/a.cc", '#include "../loop/loop.h"\n', 1),
    ("layering", "src/store/a.cc", '#include "loop/gone.h"\n', 1),
    ("layering", "src/attic/a.cc", "int F() { return 1; }\n", 1),
    ("door", "src/gate/a.cc", "#include <uv.h>\n", 1),
    ("door", "src/store/a.cc", "#include <openssl/ssl.h>\n", 1),
    ("door", "src/proto/a.cc", "#include <llhttp.h>\n", 1),
    ("door", "src/observe/other.cc", "#include <spdlog/spdlog.h>\n", 1),
    ("door", "src/store/a.cc", "#include <curl/curl.h>\n", 1),
    ("door", "src/config/config.cc", "#include <toml++/toml.h>\n", 1),
    ("clock", "src/lease/a.cc", "#include <chrono>\n", 1),
    ("clock", "src/gate/a.cc", "void F() {\n  timespec t;\n  clock_gettime(CLOCK_BOOTTIME, &t);\n}\n", 3),
    ("clock", "src/gate/a.cc", "long F() { return time(nullptr); }\n", 1),
    ("clock", "src/gate/a.cc", "long F() { return ::time(nullptr); }\n", 1),
    ("clock", "src/gate/a.cc", "long F() { return std::time(nullptr); }\n", 1),
    ("clock", "src/gate/a.cc", "auto F() { return std::chrono::steady_clock::now(); }\n", 1),
    ("clock", "src/gate/a.cc", "auto F() { return std::chrono::system_clock ::now(); }\n", 1),
    ("random", "src/lease/a.cc", "int F() {\n  std::random_device device;\n  return 1;\n}\n", 2),
    ("random", "src/lease/a.cc", "int F() { return rand(); }\n", 1),
    ("random", "tests/unit/a.cc", "int F() { return std::rand(); }\n", 1),
    ("threads", "src/store/a.cc", "#include <thread>\n", 1),
    ("threads", "src/store/a.cc", "#include <pthread.h>\n", 1),
    ("threads", "src/store/a.h", OPENING + "class A {\n  std::mutex mutex_;\n};\n", 4),
    ("threads", "src/store/a.cc", "void F() { std::jthread t; }\n", 1),
    ("sleep", "src/loop/a.cc", "void F() { usleep(10); }\n", 1),
    ("sleep", "src/loop/a.cc", "void F() { std::this_thread::sleep_for(x); }\n", 1),
    ("sleep", "tests/unit/a_test.cc", "void F() { sleep(1); }\n", 1),
    ("libuv", "src/gate/a.cc", "void F(uv_loop_t* loop);\n", 1),
    ("OpenSSL", "src/gate/a.cc", "void F() { SSL_new(context); }\n", 1),
    ("throw", "src/base/a.cc", "void F() { throw 1; }\n", 1),
    ("throw", "src/config/toml.cc", "void F() {\n  throw std::runtime_error(\"x\");\n}\n", 2),
    ("pure", "src/lease/a.cc", "#include <unistd.h>\n", 1),
    ("pure", "src/proto/a.cc", "#include <sys/socket.h>\n", 1),
    ("pure", "src/lease/a.cc", "#include <fstream>\n", 1),
    ("global", "src/base/a.cc", "namespace leasehold {\nint counter = 0;\n}\n", 2),
    ("global", "src/base/a.cc", "namespace {\n\nstd::map<std::string, int> cache;\n}\n", 3),
    ("global", "src/base/a.cc", "std::function<void(int)> hook;\n", 1),
    ("global", "src/base/a.cc", "std::vector<int> list{1, 2};\n", 1),
    ("global", "src/base/a.cc", "const char* name = \"x\";\n", 1),
    ("global", "src/base/a.cc", "static bool ready;\n", 1),
    ("global", "src/base/a.cc", "inline thread_local int depth = 0;\n", 1),
    ("global", "src/base/a.cc", "int F() {\n  static int calls = 0;\n  return ++calls;\n}\n", 2),
    ("global", "src/base/a.h", OPENING + "class A {\n  static int count;\n};\n", 4),
    ("length", "src/base/a.cc", "int F() {\n" + "  G();\n" * 70 + "}\n", 1),
    ("length", "src/base/a.cc", "A::A(int x) : x_{x}, y_(2) {\n" + "  G();\n" * 70 + "}\n", 1),
    ("length", "src/base/a.cc", "// line\n" * 601, 601),
    ("length", "src/base/a.h", OPENING + "// line\n" * 260, 262),
    ("length", "tests/unit/a.cc", "int F() {\n" + "  G();\n" * 120 + "}\n", 1),
    ("header", "src/base/a.h", "#pragma once\n// Thing: too late, this paragraph must come first.\n", 1),
    ("header", "src/base/a.h", "// Thing.\n#pragma once\n", 1),
    ("header", "tests/lib/a.h", "#pragma once\n", 1),
    ("header", "src/base/a.h", "// Thing: what it is, what it is not, who owns it.\n#ifndef A\n", 2),
    ("unfinished", "src/base/a.cc", "// TO" "DO: more\n", 1),
    ("unfinished", "tests/unit/a.py", "x = 1  # FIX" "ME\n", 1),
    ("unfinished", "src/base/a.cc", "// a st" "ub for now\n", 1),
    ("path", "tests/a.md", "see /wo" "rk/main\n", 1),
    ("path", "Makefile", "x:\n\tcp /ho" "me/me/x .\n", 2),
    ("whitespace", "src/base/a.cc", "int F(); \n", 1),
    ("whitespace", "src/base/a.cc", "int F();", 1),
]


@pytest.mark.parametrize("rule, path, text, line", PLANTED, ids=[f"{r}-{i}" for i, (r, *_) in enumerate(PLANTED)])
def test_a_planted_fault_is_found(house, rule, path, text, line):
    findings = house({path: text})
    assert any(f.rule == rule and path.startswith(f.path) and f.line == line for f in findings), findings


RIGHT = [
    ("src/loop/a.cc", "#include <uv.h>\n#include <openssl/ssl.h>\n#include <mutex>\n#include <chrono>\n"),
    ("src/proto/http1_syntax.h", OPENING + "\n#include <llhttp.h>\n"),
    ("src/store/a.cc", '#include "base/result.h"\n#include "loop/loop.h"\n#include <unistd.h>\n'),
    ("src/gate/a.cc", "// clock_gettime(, throw, std::mutex, sleep(1)\nconst char* const kText = \"throw sleep(1)\";\n"),
    ("src/gate/a.cc", "/* std::thread\n   throw */\nint F();\n"),
    ("src/gate/a.cc", "int F(const T& t) { return t.time() + t->clock() + my_time(3); }\n"),
    ("src/gate/a.h", OPENING + "class A {\n public:\n  MonoTime time() const;\n  Clock& clock(int);\n};\n"),
    ("src/base/a.cc", "constexpr int kLimit = 10'000;\nconst std::string kName = \"x\";\nint F(int x = 0);\n"),
    ("src/base/a.cc", "constexpr std::array<int, 2> kTable{1, 2};\nconstexpr Row kRows[] = {{1, F()}, {2, G()}};\n"),
    ("src/base/a.cc", "bool operator==(const A& a, const A& b) { return true; }\nA::A() : a_{1}, b_{2} {}\n"),
    ("src/base/a.cc", "using F = std::function<void()>;\nclass A;\nenum class E { kA, kB };\nextern const int kX;\n"),
    ("src/base/a.cc", "namespace a {\nint F() {\n  static constexpr int kX = 1;\n  static const auto k = G();\n"
                      "  int local = 0;\n  return local;\n}\n}\n"),
    ("src/base/a.h", OPENING + "class A {\n public:\n  static A Make(int x);\n  int x_ = 0;\n};\n"),
    ("src/base/a.cc", "#define X(a) \\\n  int a = 0;\nint F() { return 0; }\n"),
    ("src/base/a.cc", 'const std::string kRaw = R"json({"throw": "//"})json";\nint F();\n'),
    ("tests/unit/a.cc", "#include <thread>\nint counter = 0;\nvoid F() { throw 1; }\n"),
]


@pytest.mark.parametrize("path, text", RIGHT, ids=range(len(RIGHT)))
def test_what_is_right_is_let_through(house, path, text):
    assert house({path: text}) == []


def test_a_room_may_know_earlier_rooms_only(house):
    findings = house({}, cmake=CMAKE.replace("leasehold_room(base)", "leasehold_room(base ROOMS loop)"))
    assert any(f.rule == "layering" and f.path == "CMakeLists.txt" for f in findings)


def test_the_map_must_say_what_cmake_says(house):
    findings = house({}, readme=README.replace("| `base` `lease` `loop` |", "| `base` `lease` |", 1))
    assert [f.rule for f in findings] == ["map"]
    assert "room store" in findings[0].text


def test_a_room_missing_from_the_map_is_found(house):
    findings = house({}, readme=README.replace("| `proto` |", "| proto |"))
    assert [f.rule for f in findings] == ["map"]


def test_functions_are_measured_from_signature_to_brace():
    code = "namespace a {\n\nint F(int x,\n      int y) {\n  if (x) {\n    return y;\n  }\n  return 1;\n}\n}\n"
    functions, _ = cxx_text.outline(cxx_text.bare(code))
    assert [(f.name, f.line, f.lines) for f in functions] == [("F", 3, 7)]


def test_functions_inside_types_are_measured_too():
    code = "class A {\n public:\n  A() : x_{1} {\n    G();\n  }\n  int x_;\n};\n"
    functions, _ = cxx_text.outline(cxx_text.bare(code))
    assert [(f.name, f.lines) for f in functions] == [("A", 3)]


def test_the_command_ends_with_one_on_a_fault(house, tmp_path, monkeypatch, capsys):
    house({"src/base/a.cc": "void F() { throw 1; }\n"})
    monkeypatch.setattr("sys.argv", ["layering.py", "--root", str(tmp_path)])
    assert layering.main() == 1
    assert "src/base/a.cc:1: throw:" in capsys.readouterr().out


def test_the_checker_finds_what_stands_in_every_folder():
    names = {path.relative_to(layering.ROOT).parts[0] for path in layering.Checker(layering.ROOT).texts()}
    assert {"src", "tests", "CMakeLists.txt"} <= names
    assert pathlib.Path(layering.__file__).name == "layering.py"
