// Console: where a command writes and whom it may ask. Commands know no file descriptors, so that
// tests see what people see. Texts from elsewhere are shown by Shown(): nothing of them can steer a
// terminal.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "cli/exit_code.h"

namespace leasehold::cli {

struct Console {
  std::ostream& out;
  std::ostream& err;
  bool color = false;  // only when `out` is a terminal
  // Asks a question on the terminal; empty where there is none.
  std::function<bool(const std::string& question)> confirm;
  // Nobody will ever read what is written to `out`: its pipe is closed. Empty: not known.
  std::function<bool()> reader_gone = {};
};

enum class Color { kNone, kGood, kWarning, kBad };

std::string Paint(const Console& console, Color color, const std::string& text);
// Printable form of text that came from outside.
std::string Shown(std::string_view text);

// The failure of a command: one sentence on standard error; with `json` an object
// {"ok":false,"error":...,"detail":...} on standard output as well. Returns `code`.
int Fail(Console& console, bool json, ExitCode code, std::string_view error,
         const std::string& detail);

// Rows of cells in aligned columns, two blanks apart, no blanks at line ends. Cells may be painted.
class Table {
 public:
  explicit Table(std::vector<std::string> heads);
  struct Cell {
    // NOLINTNEXTLINE(google-explicit-constructor): a row is written as a list of texts
    Cell(std::string t, Color c = Color::kNone) : text(std::move(t)), color(c) {}
    std::string text;
    Color color;
  };
  void Add(std::vector<Cell> row);
  void Print(const Console& console) const;

 private:
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace leasehold::cli
