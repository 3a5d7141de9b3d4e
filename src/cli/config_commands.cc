// run, check and version: what needs no running sidecar.
#include <ostream>

#include "app/run.h"
#include "base/json_writer.h"
#include "cli/commands.h"
#include "config/config.h"

namespace leasehold::cli {
namespace {

void WriteProblems(base::JsonWriter& json, std::string_view key,
                   const std::vector<config::Problem>& problems) {
  json.Key(key).BeginArray();
  for (const config::Problem& problem : problems) {
    json.BeginObject().Member("file", problem.file).Key("line").Int(problem.line);
    json.Member("key", problem.key).Member("value", problem.value);
    json.Member("message", problem.message).EndObject();
  }
  json.EndArray();
}

int CheckJson(const config::LoadResult& loaded, Console& console) {
  const bool good = loaded.errors.empty();
  std::string text;
  base::JsonWriter json(text);
  json.BeginObject().Member("ok", good);
  WriteProblems(json, "errors", loaded.errors);
  WriteProblems(json, "warnings", loaded.warnings);
  json.Key("config");
  if (good) {
    json.Raw(config::ToJson(loaded.config));
  } else {
    json.Null();
  }
  json.EndObject();
  console.out << text << "\n";
  return good ? kOk : kUsage;
}

}  // namespace

bool TellProblems(const config::LoadResult& loaded, Console& console) {
  for (const config::Problem& problem : loaded.errors) {
    console.err << "error: " << problem.ToString() << "\n";
  }
  for (const config::Problem& problem : loaded.warnings) {
    console.err << "warning: " << problem.ToString() << "\n";
  }
  return loaded.errors.empty();
}

int RunCommand(const CommandLine& command, Console& console) {
  config::LoadResult loaded = config::LoadFile(command.config);
  if (!TellProblems(loaded, console)) return kUsage;
  console.err.flush();
  return app::Run(std::move(loaded.config));
}

int CheckCommand(const CommandLine& command, Console& console) {
  if (command.reference) {
    console.out << config::DescribeOptions();
    return kOk;
  }
  const config::LoadResult loaded = config::LoadFile(command.config);
  if (command.json) return CheckJson(loaded, console);
  if (!TellProblems(loaded, console)) {
    console.err << loaded.errors.size() << (loaded.errors.size() == 1 ? " error" : " errors")
                << " in " << command.config << "\n";
    return kUsage;
  }
  console.out << config::DescribeTimings(loaded.config);
  console.out << "\n" << command.config << ": good";
  if (const size_t count = loaded.warnings.size(); count > 0) {
    console.out << ", with " << count << (count == 1 ? " warning" : " warnings");
  }
  console.out << "\n";
  return kOk;
}

int VersionCommand(const CommandLine& command, Console& console) {
  if (command.json) {
    console.out << "{\"version\":\"" LEASEHOLD_VERSION "\"}\n";
  } else {
    console.out << "leasehold " LEASEHOLD_VERSION "\n";
  }
  return kOk;
}

}  // namespace leasehold::cli
