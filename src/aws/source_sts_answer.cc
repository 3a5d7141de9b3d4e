#include <map>
#include <string>
#include <vector>

#include "aws/source_json.h"
#include "aws/source_sts.h"
#include "proto/xml.h"

namespace leasehold::aws {
namespace {

// The texts of the elements right below Credentials, wherever that stands.
class CredentialsVisitor final : public proto::XmlVisitor {
 public:
  void OnStart(std::string_view name, size_t /*at*/) override { path_.emplace_back(name); }
  void OnText(std::string_view piece) override {
    if (path_.size() >= 2 && path_[path_.size() - 2] == "Credentials") {
      found_[path_.back()].append(piece);
    }
  }
  void OnEnd(std::string_view /*name*/, size_t /*at*/) override { path_.pop_back(); }

  std::string Take(const std::string& name) { return std::move(found_[name]); }

 private:
  std::vector<std::string> path_;
  std::map<std::string, std::string> found_;
};

}  // namespace

base::Result<Credentials> ParseStsAnswer(std::string_view xml, const std::string& who) {
  const auto bad = [&](const std::string& what) {
    return base::Error{base::ErrorCode::kInvalid, who + " gave " + what};
  };
  CredentialsVisitor visitor;
  // The parser's own sentence is not repeated: the text around its place may be a secret's.
  if (!proto::ReadXml(xml, visitor)) return bad("an answer that is not the XML it should be");
  Credentials credentials;
  credentials.key = {visitor.Take("AccessKeyId"), visitor.Take("SecretAccessKey"),
                     visitor.Take("SessionToken")};
  if (credentials.key.access_key_id.empty() || credentials.key.secret_access_key.empty() ||
      credentials.key.session_token.empty()) {
    return bad("an answer without AccessKeyId, SecretAccessKey or SessionToken");
  }
  if (base::Status status = CheckKey(credentials.key, who); !status) return status.error();
  credentials.expires_unix_ms = ParseInstantMs(visitor.Take("Expiration"));
  if (!credentials.expires_unix_ms) {
    return bad("an Expiration that is no time, like \"2026-11-30T14:41:55Z\"");
  }
  credentials.source = who;
  return credentials;
}

}  // namespace leasehold::aws
