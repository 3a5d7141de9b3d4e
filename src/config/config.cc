// Loading: TOML values are matched with the option table, expanded, assigned; then the combinations
// are judged (combinations.h).
#include "config/config.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/text.h"
#include "config/combinations.h"
#include "config/document.h"
#include "config/expand.h"
#include "config/option_table.h"
#include "config/option_value.h"
#include "config/suggest.h"
#include "config/toml.h"

namespace leasehold::config {
namespace {

constexpr size_t kTablesMax = 256;            // [[lease]] or [[gate]]; a process holds dozens
constexpr size_t kFileBytesMax = 1 << 20;     // toml.h takes no more
constexpr size_t kSecretBytesMax = 64 << 10;  // a token or password; a certificate at most

std::string Quoted(std::string_view name) { return "\"" + base::Printable(name) + "\""; }

class Loader {
 public:
  Loader(std::string file, const Environment& environment)
      : document_(std::move(file)), environment_(environment) {}

  LoadResult Load(std::string_view text) {
    std::variant<TomlValue, TomlError> parsed = ParseToml(text);
    if (const auto* error = std::get_if<TomlError>(&parsed)) {
      const std::string column =
          error->column > 0 ? " (column " + std::to_string(error->column) + ")" : "";
      document_.ErrorAt(error->line, "", "", "not TOML: " + error->message + column);
      return document_.Take();
    }
    const TomlValue& root = std::get<TomlValue>(parsed);
    for (const auto& [name, value] : root.members) CheckSection(name, value);
    for (const std::string_view section : Sections()) LoadSection(section, root.Find(section));
    if (document_.config().leases.empty()) {
      document_.ErrorAt(0, "lease", "", "there is none; write at least [[lease]] with a name");
    }
    CheckCombinations(document_);
    return document_.Take();
  }

 private:
  void CheckSection(const std::string& name, const TomlValue& value) {
    for (const std::string_view section : Sections()) {
      if (name == section) return;
    }
    const std::vector<std::string_view> sections(Sections().begin(), Sections().end());
    std::string sentence;
    if (value.kind != TomlValue::Kind::kTable && value.kind != TomlValue::Kind::kArray) {
      sentence = "stands outside of any section";
      if (const std::string home = SectionsWith(name); !home.empty()) {
        sentence += "; it belongs under " + home;
      }
    } else {
      sentence = "is no section";
    }
    if (const std::string_view near = Nearest(name, sections); !near.empty()) {
      sentence += "; did you mean " + Quoted(near) + "?";
    } else if (sentence == "is no section") {
      sentence += "; there are";
      for (const std::string_view one : sections) {
        sentence += (one == sections.front() ? " " : ", ") + std::string(one);
      }
    }
    document_.ErrorAt(value.line, base::Printable(name), "", sentence);
  }

  // "[lease]" or "[store] and [app]": where an option of this name lives; empty: nowhere.
  static std::string SectionsWith(std::string_view key) {
    std::string homes;
    std::string_view last;
    for (const Option& option : Options()) {
      if (option.key != key || option.section == last) continue;
      last = option.section;
      if (!homes.empty()) homes += " or ";
      homes += IsRepeated(last) ? "[[" + std::string(last) + "]]" : "[" + std::string(last) + "]";
    }
    return homes;
  }

  void LoadSection(std::string_view section, const TomlValue* value) {
    static const TomlValue kEmpty;
    const std::string name(section);
    if (!IsRepeated(section)) {
      if (value != nullptr && value->kind != TomlValue::Kind::kTable) {
        document_.ErrorAt(value->line, name, "", "must be one table, written [" + name + "]");
        return;
      }
      LoadTable({section, 0}, value != nullptr ? *value : kEmpty);
      return;
    }
    if (value == nullptr) return;
    if (value->kind != TomlValue::Kind::kArray) {
      document_.ErrorAt(value->line, name, "",
                        "there may be several, so it is written [[" + name + "]]");
      // Its other faults are told too, and what names it finds it.
      if (value->kind == TomlValue::Kind::kTable) LoadTable(NewTable(section), *value);
      return;
    }
    if (value->elements.size() > kTablesMax) {
      document_.ErrorAt(value->line, name, "", "more than 256; use several sidecars");
      return;
    }
    for (size_t i = 0; i < value->elements.size(); ++i) {
      if (value->elements[i].kind != TomlValue::Kind::kTable) {
        document_.ErrorAt(value->elements[i].line, name, value->elements[i].Literal(),
                          "must be a table, written [[" + name + "]]");
        continue;
      }
      LoadTable(NewTable(section), value->elements[i]);
    }
  }

  TableId NewTable(std::string_view section) {
    Config& config = document_.config();
    if (section == "lease") {
      config.leases.emplace_back();
      return {section, config.leases.size() - 1};
    }
    config.gates.emplace_back();
    return {section, config.gates.size() - 1};
  }

  Scope ScopeOf(const TableId& table) {
    Config& config = document_.config();
    Scope scope{&config, nullptr, nullptr};
    if (table.section == "lease") scope.lease = &config.leases[table.index];
    if (table.section == "gate") scope.gate = &config.gates[table.index];
    return scope;
  }

  void LoadTable(const TableId& table, const TomlValue& value) {
    document_.NoteTable(table, value.line);
    const Scope scope = ScopeOf(table);
    const std::string type = TypeOf(table, value, scope);
    LoadMembers(table, "", value, type, scope);
    for (const Option& option : Options()) {
      if (option.section != table.section || document_.Given(table, option.key)) continue;
      if (AppliesTo(option, type)) Default(table, option, scope);
    }
  }

  // The type decides which rows apply, so it is read before the others. Of one that is not valid
  // (reported with the other options) the first in the list is assumed.
  std::string TypeOf(const TableId& table, const TomlValue& value, const Scope& scope) {
    const Option* row = FindOption(table.section, "type", "");
    if (row == nullptr) return "";
    TomlValue type = DefaultValue(*row);
    const TomlValue* given = value.Find("type");
    if (given != nullptr && given->kind == TomlValue::Kind::kString) {
      const base::Result<std::string> text = Expand(given->text, environment_);
      if (text) type.text = *text;
    }
    if (!Assign(*row, type, scope)) return type.text;
    return "";
  }

  void LoadMembers(const TableId& table, const std::string& prefix, const TomlValue& value,
                   const std::string& type, const Scope& scope) {
    for (const auto& [name, member] : value.members) {
      const std::string key = prefix + name;
      if (member.kind == TomlValue::Kind::kTable && IsPrefix(table.section, key + ".")) {
        LoadMembers(table, key + ".", member, type, scope);
      } else {
        LoadOption(table, key, member, type, scope);
      }
    }
  }

  static bool IsPrefix(std::string_view section, std::string_view prefix) {
    for (const Option& option : Options()) {
      if (option.section == section && option.key.starts_with(prefix)) return true;
    }
    return false;
  }

  void LoadOption(const TableId& table, const std::string& key, const TomlValue& given,
                  const std::string& type, const Scope& scope) {
    const Option* row = FindOption(table.section, key, type);
    const Option* any = row != nullptr ? row : AnyRow(table.section, key);
    if (any == nullptr) {
      Unknown(table, key, given);
      return;
    }
    TomlValue value = given;
    const std::optional<std::string> unset = ExpandAll(value);
    document_.NoteOption(table, any->key, given.line, ShownValue(*any, unset ? given : value));
    if (unset) {
      document_.Error(table, key, *unset);
      return;
    }
    // The options of another store are judged too: a template may choose the store by ${VAR}.
    const std::optional<std::string> wrong = Assign(*any, value, scope);
    if (row == nullptr && !type.empty()) {
      Inapplicable(table, *any, type);
    } else if (wrong) {
      document_.Error(table, key, *wrong);
    }
  }

  static const Option* AnyRow(std::string_view section, std::string_view key) {
    for (const Option& option : Options()) {
      if (option.section == section && option.key == key) return &option;
    }
    return nullptr;
  }

  void Inapplicable(const TableId& table, const Option& option, const std::string& type) {
    const std::string of = TypesOf(option, " or ");
    if (table.section == "store") {
      document_.Warn(table, option.key,
                     "has no effect with type = \"" + type + "\"; it is for " + of);
    } else {
      document_.Error(
          table, option.key,
          "has no effect on a gate of type = \"" + type + "\"; it is for " + of + "; leave it out");
    }
  }

  void Unknown(const TableId& table, const std::string& key, const TomlValue& value) {
    std::vector<std::string_view> keys;
    for (const Option& option : Options()) {
      if (option.section == table.section) keys.push_back(option.key);
    }
    std::string sentence = "is no option of [" + std::string(table.section) + "]";
    const std::string_view near = Nearest(key, keys);
    if (!near.empty()) {
      sentence += "; did you mean " + Quoted(near) + "?";
    } else if (const std::string home = SectionsWith(key); !home.empty()) {
      sentence += "; it belongs under " + home;
    } else {
      sentence += "; `leasehold check --reference` lists them all";
    }
    // The value is not shown: it may be a mistyped secret.
    document_.ErrorAt(value.line, std::string(table.section) + "." + base::Printable(key), "",
                      sentence);
  }

  // Replaces ${VAR} in a string and in the strings of a list. A sentence if that fails.
  std::optional<std::string> ExpandAll(TomlValue& value) {
    if (value.kind == TomlValue::Kind::kString) {
      const base::Result<std::string> text = Expand(value.text, environment_);
      if (!text) return text.error().message;
      value.text = *text;
    }
    for (TomlValue& element : value.elements) {
      if (std::optional<std::string> wrong = ExpandAll(element)) return wrong;
    }
    return std::nullopt;
  }

  void Default(const TableId& table, const Option& option, const Scope& scope) {
    if (option.default_text.empty()) {
      document_.Error(table, option.key,
                      "is missing; " + std::string(option.why) + ", and it has no default");
      return;
    }
    TomlValue value = DefaultValue(option);
    std::optional<std::string> wrong = ExpandAll(value);
    if (!wrong) wrong = Assign(option, value, scope);
    if (wrong) document_.Error(table, option.key, *wrong, ShownValue(option, value));
  }

  Document document_;
  const Environment& environment_;
};

// The error is what follows the file's name.
base::Result<std::string> ReadWhole(const std::string& path, size_t bytes_max) {
  std::FILE* file = std::fopen(path.c_str(), "rbe");
  std::string content;
  char block[4096];
  size_t got = 0;
  while (file != nullptr && (got = std::fread(block, 1, sizeof block, file)) > 0) {
    content.append(block, got);
    if (content.size() > bytes_max) break;
  }
  const int failure = file == nullptr || std::ferror(file) != 0 ? errno : 0;
  if (file != nullptr) std::fclose(file);
  if (failure != 0) {
    return base::Error{base::ErrorCode::kUnavailable,
                       std::string("cannot be read: ") + std::strerror(failure)};
  }
  if (content.size() > bytes_max) {
    return base::Error{base::ErrorCode::kLimit,
                       "is larger than " + base::FormatSize(bytes_max) + ", the most it may be"};
  }
  return content;
}

}  // namespace

LoadResult LoadText(std::string_view text, const std::string& file_name,
                    const std::function<const char*(const char*)>& environment) {
  return Loader(file_name, environment).Load(text);
}

LoadResult LoadFile(const std::string& path) {
  const base::Result<std::string> text = ReadWhole(path, kFileBytesMax);
  if (!text) {
    LoadResult result;
    result.errors.push_back(
        {path, 0, "", "",
         text.error().message + "; name the configuration with -c, or make it readable"});
    return result;
  }
  const auto environment = [](const char* name) -> const char* { return std::getenv(name); };
  return LoadText(*text, path, environment);
}

base::Result<std::string> ReadSecretFile(const std::string& path) {
  base::Result<std::string> read = ReadWhole(path, kSecretBytesMax);
  if (!read) return base::Error{read.error().code, path + " " + read.error().message};
  std::string content = std::move(read).value();
  while (!content.empty() && (content.back() == '\n' || content.back() == '\r')) {
    content.pop_back();
  }
  if (content.empty()) {
    return base::Error{base::ErrorCode::kInvalid, path + " is empty; it should hold one secret"};
  }
  return content;
}

}  // namespace leasehold::config
