// Document: the options of one `sidecar.conf` as they are filled in, and where each stood in the
// file, so that later checks (combinations.h) can name line and value of what they judge. One per
// load; owned by LoadText.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/toml.h"

namespace leasehold::config {

// A table of the file: section, and which of its kind ([[lease]], [[gate]] count from 0).
struct TableId {
  std::string_view section;
  size_t index = 0;
  auto operator<=>(const TableId&) const = default;
};

class Document {
 public:
  explicit Document(std::string file) : file_(std::move(file)) {}

  Config& config() { return result_.config; }
  const Config& config() const { return result_.config; }

  // Where the table begins; where an option of it stands, and its value fit to be shown.
  void NoteTable(const TableId& table, int line) { tables_[table] = line; }
  void NoteOption(const TableId& table, std::string_view key, int line, std::string shown);
  bool Given(const TableId& table, std::string_view key) const;

  // An error or warning about an option. An option that is not in the file is reported at its table
  // with `value`, which may be empty.
  void Error(const TableId& table, std::string_view key, std::string sentence,
             std::string value = {});
  void Warn(const TableId& table, std::string_view key, std::string sentence,
            std::string value = {});
  // About something that is no known option.
  void ErrorAt(int line, std::string key, std::string value, std::string sentence);

  // Did this table have an error of its own? Then what follows from it is not judged.
  bool Broken(const TableId& table) const { return broken_.contains(table); }
  bool clean() const { return result_.errors.empty(); }

  // Problems in the order of the file.
  LoadResult Take();

 private:
  struct Place {
    int line = 0;
    std::string shown;
  };
  Problem MakeProblem(const TableId& table, std::string_view key, std::string value,
                      std::string sentence) const;

  std::string file_;
  LoadResult result_;
  std::map<TableId, int> tables_;
  std::map<std::pair<TableId, std::string>, Place> options_;
  std::set<TableId> broken_;
};

}  // namespace leasehold::config
