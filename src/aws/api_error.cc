#include "aws/api_error.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "proto/json.h"
#include "proto/xml.h"

namespace leasehold::aws {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

constexpr size_t kCodeBytesMax = 128;      // the longest of AWS's own has about 60
constexpr size_t kMessageBytesMax = 1024;  // header: "bounded (1 KiB)"
// Of a body whose form is unknown (a proxy's page): enough to recognise who answered.
constexpr size_t kExcerptBytesMax = 200;
constexpr size_t kXmlTextBytesMax = 4096;  // before secrets are cut out and it is bounded

struct Known {
  std::string_view code;
  Trouble trouble;
};

// Sorted by code (checked below). Sources: "Common Errors" and the errors of each action in the API
// references of DynamoDB, SQS and STS; codes of SQS in both its protocols' spelling.
constexpr auto kKnown = std::to_array<Known>({
    {"AWS.SimpleQueueService.BatchEntryIdsNotDistinct", Trouble::kInvalid},
    {"AWS.SimpleQueueService.BatchRequestTooLong", Trouble::kInvalid},
    {"AWS.SimpleQueueService.EmptyBatchRequest", Trouble::kInvalid},
    {"AWS.SimpleQueueService.InvalidBatchEntryId", Trouble::kInvalid},
    {"AWS.SimpleQueueService.MessageNotInflight", Trouble::kConflict},
    {"AWS.SimpleQueueService.NonExistentQueue", Trouble::kNotFound},
    {"AWS.SimpleQueueService.PurgeQueueInProgress", Trouble::kThrottled},
    {"AWS.SimpleQueueService.QueueDeletedRecently", Trouble::kConflict},
    {"AWS.SimpleQueueService.TooManyEntriesInBatchRequest", Trouble::kInvalid},
    {"AWS.SimpleQueueService.UnsupportedOperation", Trouble::kInvalid},
    {"AccessDenied", Trouble::kDenied},
    {"AccessDeniedException", Trouble::kDenied},
    {"AuthFailure", Trouble::kBadCredentials},
    {"BandwidthLimitExceeded", Trouble::kThrottled},
    {"BatchEntryIdsNotDistinct", Trouble::kInvalid},
    {"BatchRequestTooLong", Trouble::kInvalid},
    {"ConditionalCheckFailedException", Trouble::kConflict},
    {"DuplicateItemException", Trouble::kConflict},
    {"EmptyBatchRequest", Trouble::kInvalid},
    {"ExpiredToken", Trouble::kExpired},
    {"ExpiredTokenException", Trouble::kExpired},
    {"IDPCommunicationError", Trouble::kServer},
    {"IDPRejectedClaim", Trouble::kDenied},
    {"IdempotentParameterMismatchException", Trouble::kConflict},
    {"IncompleteSignature", Trouble::kBadCredentials},
    {"IncompleteSignatureException", Trouble::kBadCredentials},
    {"InternalError", Trouble::kServer},
    {"InternalFailure", Trouble::kServer},
    {"InternalServerError", Trouble::kServer},
    {"InvalidAccessKeyId", Trouble::kBadCredentials},
    {"InvalidAction", Trouble::kInvalid},
    {"InvalidAddress", Trouble::kInvalid},
    {"InvalidAttributeName", Trouble::kInvalid},
    {"InvalidAttributeValue", Trouble::kInvalid},
    {"InvalidBatchEntryId", Trouble::kInvalid},
    {"InvalidClientTokenId", Trouble::kBadCredentials},
    {"InvalidIdFormat", Trouble::kInvalid},
    {"InvalidIdentityToken", Trouble::kBadCredentials},
    {"InvalidMessageContents", Trouble::kInvalid},
    {"InvalidParameterCombination", Trouble::kInvalid},
    {"InvalidParameterValue", Trouble::kInvalid},
    {"InvalidQueryParameter", Trouble::kInvalid},
    {"InvalidSecurity", Trouble::kBadCredentials},
    {"InvalidSignature", Trouble::kBadCredentials},
    {"InvalidSignatureException", Trouble::kBadCredentials},
    {"InvalidToken", Trouble::kBadCredentials},
    {"InvalidTokenException", Trouble::kBadCredentials},
    {"ItemCollectionSizeLimitExceededException", Trouble::kInvalid},
    {"KMS.AccessDeniedException", Trouble::kDenied},
    {"KMS.DisabledException", Trouble::kInvalid},
    {"KMS.InvalidKeyUsageException", Trouble::kInvalid},
    {"KMS.InvalidStateException", Trouble::kInvalid},
    {"KMS.NotFoundException", Trouble::kNotFound},
    {"KMS.OptInRequired", Trouble::kDenied},
    {"KMS.ThrottlingException", Trouble::kThrottled},
    {"KmsAccessDenied", Trouble::kDenied},
    {"KmsDisabled", Trouble::kInvalid},
    {"KmsInvalidKeyUsage", Trouble::kInvalid},
    {"KmsInvalidState", Trouble::kInvalid},
    {"KmsNotFound", Trouble::kNotFound},
    {"KmsOptInRequired", Trouble::kDenied},
    {"KmsThrottled", Trouble::kThrottled},
    {"LimitExceededException", Trouble::kThrottled},
    {"MalformedPolicyDocument", Trouble::kInvalid},
    {"MalformedQueryString", Trouble::kInvalid},
    {"MessageNotInflight", Trouble::kConflict},
    {"MissingAction", Trouble::kInvalid},
    {"MissingAuthenticationToken", Trouble::kBadCredentials},
    {"MissingAuthenticationTokenException", Trouble::kBadCredentials},
    {"MissingParameter", Trouble::kInvalid},
    {"NotAuthorized", Trouble::kDenied},
    {"OptInRequired", Trouble::kDenied},
    {"OverLimit", Trouble::kThrottled},
    {"PackedPolicyTooLarge", Trouble::kInvalid},
    {"PriorRequestNotComplete", Trouble::kThrottled},
    {"ProvisionedThroughputExceededException", Trouble::kThrottled},
    {"PurgeQueueInProgress", Trouble::kThrottled},
    {"QueueAlreadyExists", Trouble::kConflict},
    {"QueueDeletedRecently", Trouble::kConflict},
    {"QueueDoesNotExist", Trouble::kNotFound},
    {"QueueNameExists", Trouble::kConflict},
    {"ReceiptHandleIsInvalid", Trouble::kInvalid},
    {"RegionDisabledException", Trouble::kDenied},
    {"ReplicatedWriteConflictException", Trouble::kServer},
    {"RequestEntityTooLarge", Trouble::kInvalid},
    {"RequestExpired", Trouble::kClockSkew},
    {"RequestInTheFuture", Trouble::kClockSkew},
    {"RequestLimitExceeded", Trouble::kThrottled},
    {"RequestThrottled", Trouble::kThrottled},
    {"RequestThrottledException", Trouble::kThrottled},
    {"RequestTimeTooSkewed", Trouble::kClockSkew},
    {"ResourceInUseException", Trouble::kConflict},
    {"ResourceNotFoundException", Trouble::kNotFound},
    {"SerializationException", Trouble::kInvalid},
    {"ServiceUnavailable", Trouble::kServer},
    {"ServiceUnavailableException", Trouble::kServer},
    {"SignatureDoesNotMatch", Trouble::kBadCredentials},
    {"SlowDown", Trouble::kThrottled},
    {"TableAlreadyExistsException", Trouble::kConflict},
    {"TableNotFoundException", Trouble::kNotFound},
    {"ThrottledException", Trouble::kThrottled},
    {"Throttling", Trouble::kThrottled},
    {"ThrottlingException", Trouble::kThrottled},
    {"TokenRefreshRequired", Trouble::kExpired},
    {"TooManyEntriesInBatchRequest", Trouble::kInvalid},
    {"TooManyRequests", Trouble::kThrottled},
    {"TooManyRequestsException", Trouble::kThrottled},
    // Another transaction had the item: an SDK asks again, as after a fault of the service's own.
    {"TransactionCanceledException", Trouble::kConflict},
    {"TransactionConflictException", Trouble::kServer},
    {"TransactionInProgressException", Trouble::kServer},
    {"UnauthorizedOperation", Trouble::kDenied},
    {"UnknownOperation", Trouble::kInvalid},
    {"UnknownOperationException", Trouble::kInvalid},
    {"UnrecognizedClientException", Trouble::kBadCredentials},
    {"UnsupportedOperation", Trouble::kInvalid},
    {"ValidationError", Trouble::kInvalid},
    {"ValidationException", Trouble::kInvalid},
});
static_assert(std::is_sorted(kKnown.begin(), kKnown.end(),
                             [](const Known& a, const Known& b) { return a.code < b.code; }));

std::string_view Header(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (base::EqualsIgnoreCase(key, name)) return value;
  }
  return {};
}

// "com.amazonaws.dynamodb.v20120810#Throttled:http://internal/..." -> "Throttled"; ";Sender" goes
// too. What is no identifier is no code.
std::string BareCode(std::string_view text) {
  text = base::Trim(text.substr(0, text.find_first_of(":;")));
  const size_t hash = text.rfind('#');
  if (hash != std::string_view::npos) text.remove_prefix(hash + 1);
  const bool sound = std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' ||
           c == '_' || c == '-';
  });
  return sound && text.size() <= kCodeBytesMax ? std::string(text) : std::string();
}

void TakeJson(std::string_view body, ApiError& error) {
  const base::Result<proto::Json> json = proto::Json::Parse(body);
  if (!json || !json->is_object()) return;
  for (const std::string_view key : {"__type", "code", "Code"}) {
    if (error.code.empty()) error.code = BareCode(json->String(key).value_or(""));
  }
  for (const std::string_view key : {"message", "Message", "errorMessage"}) {
    if (error.message.empty()) error.message = json->String(key).value_or("");
  }
}

// The first <Code> and <Message> of a document, wherever they stand.
class ErrorVisitor final : public proto::XmlVisitor {
 public:
  void OnStart(std::string_view name, size_t) override { into_ = Target(name); }
  void OnText(std::string_view piece) override {
    if (into_ != nullptr) into_->append(piece.substr(0, kXmlTextBytesMax - into_->size()));
  }
  void OnEnd(std::string_view name, size_t) override {
    if (into_ == nullptr) return;
    (name == "Code" ? has_code_ : has_message_) = true;
    into_ = nullptr;
  }
  std::string code;
  std::string message;

 private:
  std::string* Target(std::string_view name) {
    if (name == "Code" && !has_code_) return &code;
    return name == "Message" && !has_message_ ? &message : nullptr;
  }
  std::string* into_ = nullptr;
  bool has_code_ = false;
  bool has_message_ = false;
};

void TakeXml(std::string_view body, ApiError& error) {
  ErrorVisitor visitor;
  // A declaration must come first, but not every proxy knows.
  const std::string_view document = body.substr(body.find('<'));
  if (!proto::ReadXml(document, visitor).ok()) return;
  if (error.code.empty()) error.code = BareCode(visitor.code);
  error.message = std::move(visitor.message);
}

// Some services repeat what they would have signed, the session token among it.
void CutSecrets(std::string& message) {
  const size_t canonical = message.find("The Canonical String");
  if (canonical != std::string::npos) message.resize(canonical);
  constexpr std::string_view kToken = "x-amz-security-token";
  const std::string lower = base::ToLower(message);
  const size_t token = lower.find(kToken);
  if (token != std::string::npos) message.resize(token + kToken.size());
}

// One line of printable ASCII.
std::string OneLine(std::string_view text, size_t bytes_max) {
  std::string line;
  for (const char c : text.substr(0, bytes_max)) {
    const bool blank = c == ' ' || c == '\n' || c == '\r' || c == '\t';
    if (!blank) {
      line.push_back(c);
    } else if (!line.empty() && line.back() != ' ') {
      line.push_back(' ');
    }
  }
  return base::Printable(base::Trim(line), bytes_max);
}

bool SpeaksOfTime(std::string_view message) {
  for (const std::string_view words : {"Signature expired", "Signature not yet current",
                                       "is now earlier than", "is still later than"}) {
    if (message.find(words) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

Trouble ClassifyTrouble(int status, std::string_view code) {
  const auto* const found =
      std::lower_bound(kKnown.begin(), kKnown.end(), code,
                       [](const Known& known, std::string_view c) { return known.code < c; });
  const bool known = found != kKnown.end() && found->code == code;
  if (known && found->trouble == Trouble::kThrottled) return Trouble::kThrottled;
  if (status >= 500) return Trouble::kServer;
  if (known) return found->trouble;
  return status == 429 ? Trouble::kThrottled : Trouble::kUnknown;
}

ApiError ParseApiError(int status, const Headers& headers, std::string_view body) {
  ApiError error;
  error.status = status;
  error.code = BareCode(Header(headers, "X-Amzn-ErrorType"));
  const size_t start = body.find_first_not_of(" \t\r\n");
  const char first = start == std::string_view::npos ? '\0' : body[start];
  if (first == '{') {
    TakeJson(body, error);
  } else if (first == '<') {
    TakeXml(body, error);
  }
  if (error.code.empty()) error.code = BareCode(Header(headers, "x-amzn-query-error"));
  if (error.code.empty() && error.message.empty()) {
    error.message = std::string(body.substr(0, kExcerptBytesMax));
  }
  CutSecrets(error.message);
  error.message = OneLine(error.message, kMessageBytesMax);
  error.trouble = ClassifyTrouble(status, error.code);
  if (error.trouble == Trouble::kBadCredentials && SpeaksOfTime(error.message)) {
    error.trouble = Trouble::kClockSkew;
  }
  return error;
}

}  // namespace leasehold::aws
