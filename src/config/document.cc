#include "config/document.h"

#include <algorithm>

namespace leasehold::config {

void Document::NoteOption(const TableId& table, std::string_view key, int line, std::string shown) {
  options_[{table, std::string(key)}] = {line, std::move(shown)};
}

bool Document::Given(const TableId& table, std::string_view key) const {
  return options_.contains({table, std::string(key)});
}

Problem Document::MakeProblem(const TableId& table, std::string_view key, std::string value,
                              std::string sentence) const {
  Problem problem;
  problem.file = file_;
  problem.key = std::string(table.section);
  if (!key.empty()) problem.key.append(".").append(key);
  problem.value = std::move(value);
  problem.message = std::move(sentence);
  if (const auto at = tables_.find(table); at != tables_.end()) problem.line = at->second;
  const auto place = options_.find({table, std::string(key)});
  if (place != options_.end()) {
    problem.line = place->second.line;
    problem.value = place->second.shown;
  }
  return problem;
}

void Document::Error(const TableId& table, std::string_view key, std::string sentence,
                     std::string value) {
  broken_.insert(table);
  result_.errors.push_back(MakeProblem(table, key, std::move(value), std::move(sentence)));
}

void Document::Warn(const TableId& table, std::string_view key, std::string sentence,
                    std::string value) {
  result_.warnings.push_back(MakeProblem(table, key, std::move(value), std::move(sentence)));
}

void Document::ErrorAt(int line, std::string key, std::string value, std::string sentence) {
  result_.errors.push_back({file_, line, std::move(key), std::move(value), std::move(sentence)});
}

LoadResult Document::Take() {
  const auto by_line = [](const Problem& a, const Problem& b) { return a.line < b.line; };
  std::stable_sort(result_.errors.begin(), result_.errors.end(), by_line);
  std::stable_sort(result_.warnings.begin(), result_.warnings.end(), by_line);
  return std::move(result_);
}

std::string Problem::ToString() const {
  std::string out = file;
  if (line > 0) out += ":" + std::to_string(line);
  out += ": ";
  if (!key.empty()) out += key + (value.empty() ? "" : " = " + value) + ": ";
  return out + message;
}

}  // namespace leasehold::config
