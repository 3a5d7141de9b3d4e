#include "config/aws_checks.h"

#include <string>
#include <string_view>

#include "base/text.h"
#include "proto/url.h"
#include "store/dynamodb_store.h"

namespace leasehold::config {
namespace {

constexpr TableId kStore{"store", 0};

bool IsRegion(std::string_view text) {
  for (const char c : text) {
    if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-') return false;
  }
  return text.size() <= 64 && !text.starts_with('-');  // the longest today has 16 letters
}

void CheckRegion(Document& document, const TableId& table, std::string_view key,
                 const std::string& region) {
  if (IsRegion(region)) return;  // it becomes a part of a host's name
  document.Error(table, key, "is no AWS region, like \"eu-central-1\"");
}

void CheckEndpoint(Document& document, const TableId& table, std::string_view key,
                   const std::string& endpoint) {
  if (endpoint.empty()) return;
  const base::Result<proto::Url> url = proto::ParseUrl(endpoint);
  if (!url) {
    document.Error(table, key, url.error().message);
  } else if (url->scheme != "http" && url->scheme != "https") {
    document.Error(table, key, "must begin with http:// or https://");
  } else if (!url->user.empty() || url->has_password) {
    document.Error(table, key,
                   "takes no user and password; AWS' credentials have sources of their own");
  } else if (url->path.find_first_of("?#") != std::string::npos) {
    document.Error(table, key, "takes no query; write scheme, host and port");
  } else if (url->scheme == "http" && !url->address().IsLoopback()) {
    document.Warn(table, key,
                  "is not encrypted: what goes there can be read and altered on the way; https:// "
                  "is not");
  }
}

}  // namespace

void CheckDynamoDb(Document& document) {
  const store::DynamoDbOptions& dynamodb = document.config().store.dynamodb;
  if (const base::Status valid = store::ValidateDynamoDbOptions(dynamodb); !valid) {
    // "<key> = "<value>" <sentence>"; key and value are shown anyway.
    const std::string& message = valid.error().message;
    document.Error(kStore, message.substr(0, message.find(' ')),
                   message.substr(message.rfind("\" must") + 2));
  }
  CheckRegion(document, kStore, "dynamodb.region", dynamodb.region);
  CheckEndpoint(document, kStore, "dynamodb.endpoint", dynamodb.endpoint);
}

void CheckSqsGate(Document& document, size_t gate_index) {
  const TableId table{"gate", gate_index};
  gate::Options& gate = document.config().gates[gate_index];
  gate.outbound = true;
  CheckRegion(document, table, "region", gate.sqs.region);
  CheckEndpoint(document, table, "upstream", gate.sqs.endpoint);
  if (gate.sqs.standby_send == gate::StandbySend::kPass) {
    document.Warn(table, "standby_send",
                  "what the application sends while another instance holds the lease goes out too");
  }
  const base::Result<proto::Url> url = proto::ParseUrl(gate.sqs.endpoint);
  if (url && url->address().IsLoopback() && gate.listen.kind == base::Address::Kind::kTcp &&
      gate.listen.port != 0 && url->port == gate.listen.port) {
    document.Error(table, "upstream",
                   "is where the gate itself listens; write SQS' own endpoint, or leave it out");
  }
}

}  // namespace leasehold::config
