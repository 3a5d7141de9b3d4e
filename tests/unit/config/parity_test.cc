// The option table and the shipped sidecar.conf say the same: each option stands in the file,
// commented or not, with exactly the table's default; nothing else stands there; it loads and runs.
// And the defaults that the rooms' options.h repeat are the table's.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "base/text.h"
#include "config/config.h"
#include "config/option_table.h"
#include "config/option_value.h"

namespace leasehold::config {
namespace {

struct FileOption {
  std::string section;
  std::string type;  // of the store or gate it stands under
  std::string key;
  std::string value;
  int line = 0;
  bool explained = false;  // a line of prose stands above
};

std::string ConfPath() { return std::string(LEASEHOLD_TEST_DIR) + "/../sidecar.conf"; }

// Option lines are `key = value` or `# key = value`; sections the same; all else must be prose.
class SidecarConfTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ifstream in(ConfPath());
    ASSERT_TRUE(in) << ConfPath();
    std::string text;
    std::string section;
    size_t table_begin = 0;
    bool prose = false;
    for (int number = 1; std::getline(in, text); ++number) {
      const bool commented = text.rfind("# ", 0) == 0;
      const std::string line = commented ? text.substr(2) : text;
      if (line.rfind("[", 0) == 0 && line.find(']') != std::string::npos) {
        GiveType(table_begin);
        section = line.substr(line.find_first_not_of('['));
        section = section.substr(0, section.find(']'));
        table_begin = options_.size();
      } else if (const size_t equals = line.find(" = ");
                 equals != std::string::npos && IsKey(line.substr(0, equals))) {
        options_.push_back(
            {section, "", line.substr(0, equals), line.substr(equals + 3), number, prose});
      }
      // One explanation may serve the option below it only.
      prose = commented && (options_.empty() || options_.back().line != number);
    }
    GiveType(table_begin);
  }

  static bool IsKey(const std::string& text) {
    return !text.empty() &&
           text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_.0123456789") == std::string::npos;
  }
  void GiveType(size_t from) {
    std::string type;
    for (size_t i = from; i < options_.size(); ++i) {
      if (options_[i].key == "type")
        type = options_[i].value.substr(1, options_[i].value.size() - 2);
    }
    for (size_t i = from; i < options_.size(); ++i) options_[i].type = type;
  }
  // [store] stands once and shows the options of every type.
  static const Option* RowOf(const FileOption& option) {
    for (const Option& row : Options()) {
      if (row.section != option.section || row.key != option.key) continue;
      if (option.section == "store" || AppliesTo(row, option.type)) {
        return &row;
      }
    }
    return nullptr;
  }

  std::vector<FileOption> options_;
};

TEST_F(SidecarConfTest, HasNoOptionThatTheTableDoesNotKnow) {
  ASSERT_GT(options_.size(), 60u);
  for (const FileOption& option : options_) {
    EXPECT_NE(RowOf(option), nullptr) << "line " << option.line << ": " << option.key;
  }
}

TEST_F(SidecarConfTest, ShowsExactlyTheDefaults) {
  for (const FileOption& option : options_) {
    const Option* row = RowOf(option);
    if (row == nullptr || row->default_text.empty()) continue;
    if (row->key == "type" && option.section == "gate") continue;  // one example of each type
    EXPECT_EQ(option.value, row->default_text) << "line " << option.line << ": " << option.key;
  }
}

TEST_F(SidecarConfTest, HasEveryOptionOfTheTable) {
  std::set<const Option*> found;
  for (const FileOption& option : options_) found.insert(RowOf(option));
  for (const Option& row : Options()) {
    EXPECT_TRUE(found.contains(&row)) << "[" << row.section << "] " << row.key << " "
                                      << row.applies_to << " is missing in sidecar.conf";
  }
}

TEST_F(SidecarConfTest, EachGateTypeShowsAllOfItsOptions) {
  for (const std::string type : {"http", "tcp", "sqs"}) {
    for (const Option& row : Options()) {
      if (row.section != "gate" || !AppliesTo(row, type)) continue;
      bool found = false;
      for (const FileOption& option : options_) {
        found = found || (option.section == "gate" && option.type == type && option.key == row.key);
      }
      EXPECT_TRUE(found) << type << " gate: " << row.key;
    }
  }
}

TEST_F(SidecarConfTest, EveryOptionHasALineOfWhy) {
  for (const FileOption& option : options_) {
    EXPECT_TRUE(option.explained) << "line " << option.line << ": " << option.key;
  }
}

TEST_F(SidecarConfTest, LoadsWithoutErrorOrWarning) {
  const LoadResult result = LoadFile(ConfPath());
  EXPECT_TRUE(result.errors.empty()) << result.errors[0].ToString();
  EXPECT_TRUE(result.warnings.empty()) << result.warnings[0].ToString();
  ASSERT_EQ(result.config.gates.size(), 1u);
  EXPECT_EQ(result.config.gates[0].listen.ToString(), "127.0.0.1:8080");
  EXPECT_EQ(result.config.gates[0].upstream.ToString(), "127.0.0.1:8000");
  EXPECT_FALSE(result.config.node.id.empty());
}

TEST_F(SidecarConfTest, LoadsWithEveryCommentedOptionTakenIn) {
  std::ifstream in(ConfPath());
  std::string text;
  std::string all;
  while (std::getline(in, text)) {
    if (text.rfind("# ", 0) == 0) {
      const std::string line = text.substr(2);
      const size_t equals = line.find(" = ");
      const bool option = equals != std::string::npos && IsKey(line.substr(0, equals));
      if (line == "[[gate]]" || option) text = line;
    }
    all += text + "\n";
  }
  const LoadResult result =
      LoadText(all, "all.conf", [](const char*) -> const char* { return nullptr; });
  EXPECT_TRUE(result.errors.empty()) << result.errors[0].ToString();
  EXPECT_EQ(result.config.gates.size(), 3u);
}

// What the table sets for an option that is not given.
TEST(OptionTableTest, DefaultsAreThoseOfTheRoomsOptions) {
  Config plain;
  plain.leases.emplace_back();
  for (const Option& row : Options()) {
    if (row.default_text.empty() || row.key == "file.dir" || row.key == "id") continue;
    Config set = plain;
    gate::Options gate_plain;
    if (row.applies_to == "tcp") gate_plain.standby = gate::StandbyPolicy::kRefuse;
    if (row.applies_to == "sqs") gate_plain.body_bytes_max = gate::kSqsBodyBytesMax;
    gate::Options gate_set = gate_plain;
    const Scope scope{&set, &set.leases[0], &gate_set};
    const Scope untouched{&plain, &plain.leases[0], &gate_plain};
    const std::optional<std::string> wrong = Assign(row, DefaultValue(row), scope);
    EXPECT_FALSE(wrong.has_value()) << row.key << ": " << *wrong;
    std::string from_table;
    std::string from_room;
    base::JsonWriter table_writer(from_table);
    base::JsonWriter room_writer(from_room);
    WriteValue(row, scope, table_writer);
    WriteValue(row, untouched, room_writer);
    EXPECT_EQ(from_table, from_room) << row.section << "." << row.key;
  }
}

TEST(OptionTableTest, EveryRangeParsesAndEveryRowHasAWhy) {
  for (const Option& row : Options()) {
    EXPECT_FALSE(row.why.empty()) << row.key;
    EXPECT_NE(row.slot, nullptr) << row.key;
    if (row.kind == Kind::kWord) {
      EXPECT_GE(Words(row.range).size(), 2u) << row.key;
      continue;
    }
    if (row.range.empty()) continue;
    const size_t dots = row.range.find("..");
    ASSERT_NE(dots, std::string_view::npos) << row.key;
    for (const std::string_view end : {row.range.substr(0, dots), row.range.substr(dots + 2)}) {
      const bool duration = row.kind == Kind::kDuration || row.kind == Kind::kDurationOrAuto;
      EXPECT_TRUE(!duration || base::ParseDuration(end).ok()) << row.key;
      EXPECT_TRUE(row.kind != Kind::kSize || base::ParseSize(end).ok()) << row.key;
    }
  }
}

TEST(OptionTableTest, EveryWordIsTakenAndWrittenBackAsItself) {
  for (const Option& row : Options()) {
    if (row.kind != Kind::kWord) continue;
    for (const std::string_view word : Words(row.range)) {
      if (word.empty()) continue;
      Config config;
      config.leases.emplace_back();
      gate::Options gate;
      const Scope scope{&config, &config.leases[0], &gate};
      TomlValue value;
      value.kind = TomlValue::Kind::kString;
      value.text = std::string(word);
      ASSERT_FALSE(Assign(row, value, scope).has_value()) << row.key << " " << word;
      std::string text;
      base::JsonWriter out(text);
      WriteValue(row, scope, out);
      EXPECT_EQ(text, base::JsonQuote(word)) << row.key;
    }
  }
}

TEST(OptionTableTest, TheReferenceNamesEveryOption) {
  const std::string reference = DescribeOptions();
  for (const Option& row : Options()) {
    EXPECT_NE(reference.find("\n" + std::string(row.key) + " "), std::string::npos) << row.key;
    EXPECT_NE(reference.find(row.why), std::string::npos) << row.key;
  }
}

}  // namespace
}  // namespace leasehold::config
