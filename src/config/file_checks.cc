#include "config/file_checks.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/json_writer.h"
#include "base/text.h"
#include "config/config.h"
#include "config/find_program.h"

namespace leasehold::config {
namespace {

constexpr TableId kStore{"store", 0};
constexpr TableId kAdmin{"admin", 0};
constexpr TableId kHooks{"hooks", 0};
constexpr TableId kAudit{"audit", 0};

void CheckSecretFile(Document& document, const TableId& table, std::string_view key,
                     const std::string& path) {
  if (path.empty()) return;
  const base::Result<std::string> content = ReadSecretFile(path);
  if (content) return;
  std::string_view why = content.error().message;
  if (why.starts_with(path + " ")) why.remove_prefix(path.size() + 1);  // shown as the value
  document.Warn(table, key,
                std::string(why) +
                    "; name a file that holds the secret and that `leasehold run` "
                    "may read, or it refuses to start",
                base::JsonQuote(base::Printable(path)));
}

void CheckSecrets(Document& document) {
  const Config& config = document.config();
  if (config.store.type == "redis") {
    CheckSecretFile(document, kStore, "redis.password_file", config.store.redis.password_file);
  }
  CheckSecretFile(document, kAdmin, "token_file", config.admin.token_file);
  for (size_t i = 0; i < config.gates.size(); ++i) {
    CheckSecretFile(document, {"gate", i}, "peer_secret_file", config.gates[i].peer_secret_file);
  }
}

bool IsShell(std::string_view program) {
  constexpr std::array<std::string_view, 6> kShells = {"sh", "bash", "dash", "ash", "ksh", "zsh"};
  const std::string_view name = program.substr(program.rfind('/') + 1);
  return std::find(kShells.begin(), kShells.end(), name) != kShells.end();
}

// The first sign outside of quotes that only a shell understands; empty if there is none.
std::string_view ShellSign(std::string_view command) {
  constexpr std::array<std::string_view, 7> kSigns = {"$(", "&&", "|", ">", "<", ";", "`"};
  char quote = 0;
  for (size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (c == '\\' && quote != '\'') {
      ++i;
    } else if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else {
      for (const std::string_view sign : kSigns) {
        if (command.substr(i).starts_with(sign)) return sign;
      }
    }
  }
  return "";
}

void CheckHook(Document& document, std::string_view key, const std::string& command) {
  const auto words = base::SplitCommand(command);
  if (!words) {
    document.Error(kHooks, key,
                   words.error().message + "; write a program and its arguments, like " +
                       "\"/etc/leasehold/" + std::string(key) + " --fast\"");
    return;
  }
  const std::string& program = words->front();
  if (const FoundProgram found = FindProgram(program); !found.why.empty()) {
    document.Warn(kHooks, key,
                  "cannot be run: " + found.why +
                      "; give the path of an executable file, or a command found in PATH");
  } else if (program[0] != '/' && program.find('/') != std::string::npos) {
    document.Warn(kHooks, key, "depends on where leasehold is started; write an absolute path");
  }
  if (IsShell(program)) return;
  if (const std::string_view sign = ShellSign(command); !sign.empty()) {
    document.Warn(kHooks, key,
                  "there is no shell, so \"" + std::string(sign) +
                      "\" is an argument like any other; write sh -c '...'");
  }
}

void CheckHooks(Document& document) {
  const admin::HookOptions& hooks = document.config().hooks;
  const std::pair<std::string_view, const std::string&> commands[] = {
      {"on_active", hooks.on_active},
      {"on_draining", hooks.on_draining},
      {"on_standby", hooks.on_standby}};
  for (const auto& [key, command] : commands) {
    if (!command.empty()) CheckHook(document, key, command);
  }
}

bool IsDirectory(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

void CheckAudit(Document& document) {
  const std::string& file = document.config().audit.file;
  if (file.empty() || file == "stdout") return;
  if (file == "-" || file == "stderr") {
    document.Error(kAudit, "file", "is no file; write \"stdout\" (the log has standard error)");
  } else if (file.ends_with('/')) {
    document.Error(kAudit, "file", "is a directory; write the path of a file");
  } else if (file[0] != '/') {
    document.Warn(kAudit, "file", "depends on where leasehold is started; write an absolute path");
  } else if (IsDirectory(file)) {
    document.Warn(kAudit, "file",
                  "is a directory here, and `leasehold run` refuses to start; write the path of a "
                  "file in it, like \"" +
                      base::Printable(file) + "/audit.jsonl\"");
  } else if (const std::string directory = file.substr(0, file.rfind('/') + 1);
             !IsDirectory(directory)) {
    document.Warn(kAudit, "file",
                  "there is no directory " + base::Printable(directory) +
                      " here, and `leasehold run` refuses to start without it; make it, or name a "
                      "file in one that is there");
  }
}

}  // namespace

void CheckFiles(Document& document) {
  CheckSecrets(document);
  CheckHooks(document);
  CheckAudit(document);
}

}  // namespace leasehold::config
