// Values of options: from TOML into the field a row names, with type and range checked, and back
// into text for JSON and messages. Sentences only; who the option is and where it stands is the
// caller's.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "config/option_table.h"
#include "config/toml.h"

namespace leasehold::config {

// Sets the field. nullopt: done; else a sentence that says what would be right, the field as it
// was.
std::optional<std::string> Assign(const Option& option, const TomlValue& value, const Scope& scope);

// The row's default as if it stood in the file. The row must have one.
TomlValue DefaultValue(const Option& option);

// The field's value for JSON: secrets "***", passwords inside URLs too, "auto" where left to
// derive.
void WriteValue(const Option& option, const Scope& scope, base::JsonWriter& out);

// `value` as written, fit to be shown: secrets and passwords inside URLs are "***".
std::string ShownValue(const Option& option, const TomlValue& value);

// "redis://user:***@host/0"
std::string MaskUrlPassword(std::string_view text);

}  // namespace leasehold::config
