#include "cli/console.h"

#include <algorithm>
#include <ostream>

#include "base/json_writer.h"
#include "base/text.h"

namespace leasehold::cli {

std::string Paint(const Console& console, Color color, const std::string& text) {
  if (!console.color || color == Color::kNone) return text;
  const char* code = color == Color::kGood ? "32" : color == Color::kWarning ? "33" : "31";
  return std::string("\x1b[") + code + "m" + text + "\x1b[0m";
}

std::string Shown(std::string_view text) { return base::Printable(text, 500); }

int Fail(Console& console, bool json, ExitCode code, std::string_view error,
         const std::string& detail) {
  console.err << "leasehold: " << detail << "\n";
  if (json) {
    std::string text;
    base::JsonWriter out(text);
    out.BeginObject().Member("ok", false).Member("error", error).Member("detail", detail);
    out.EndObject();
    console.out << text << "\n";
  }
  return code;
}

Table::Table(std::vector<std::string> heads) {
  std::vector<Cell> row;
  row.reserve(heads.size());
  for (std::string& head : heads) row.emplace_back(std::move(head));
  rows_.push_back(std::move(row));
}

void Table::Add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }

void Table::Print(const Console& console) const {
  std::vector<size_t> widths;
  for (const std::vector<Cell>& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].text.size());
  }
  for (const std::vector<Cell>& row : rows_) {
    size_t blanks = 0;
    for (size_t i = 0; i < row.size(); ++i) {
      if (!row[i].text.empty()) {
        console.out << std::string(blanks, ' ') << Paint(console, row[i].color, row[i].text);
        blanks = 0;
      }
      blanks += widths[i] - row[i].text.size() + 2;
    }
    console.out << "\n";
  }
}

}  // namespace leasehold::cli
