#include "store/dynamodb_store.h"

#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "store/dynamodb_adapter.h"
#include "store/dynamodb_record.h"
#include "store/dynamodb_requests.h"

namespace leasehold::store {
namespace {

using base::Duration;
using base::Error;
using base::ErrorCode;
using base::Status;
using Cause = DynamoDbFailure::Cause;

// A flapping service must not fill the log: one line per direction in this time.
constexpr Duration kLogInterval = Duration::Seconds(5);

constexpr Duration kTimeoutMin = Duration::Millis(10);
constexpr Duration kTimeoutMax = Duration::Seconds(60);

aws::ServiceLimits LimitsOf(const DynamoDbOptions& options) {
  aws::ServiceLimits limits;
  limits.connect_timeout = options.connect_timeout;
  return limits;
}

Status CheckTimeout(std::string_view key, Duration value) {
  if (value >= kTimeoutMin && value <= kTimeoutMax) return {};
  return Error{ErrorCode::kInvalid, "dynamodb." + std::string(key) + " = \"" +
                                        base::FormatDuration(value) +
                                        "\" must be from 10ms to 60s"};
}

bool IsTableByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

}  // namespace

DynamoDbStore::DynamoDbStore(loop::Loop& loop, const DynamoDbOptions& options,
                             const DynamoDbTuning& tuning,
                             std::shared_ptr<aws::CredentialsProvider> credentials,
                             aws::Endpoint endpoint, std::string prefix, observe::Log& log)
    : options_(options),
      tuning_(tuning),
      place_(DynamoDbPlace::Of(options.table, endpoint)),
      prefix_(std::move(prefix)),
      log_(log),
      up_lines_(kLogInterval),
      down_lines_(kLogInterval),
      poster_(loop),
      create_timer_(loop, [this] { Check(); }),
      throttle_timer_(loop, [this] { EndThrottled(); }),
      service_(loop, std::move(endpoint), std::move(credentials), LimitsOf(options), log) {}

// ---- calls ----

// `operation` is one of our own literals: it outlives the call.
void DynamoDbStore::Send(std::string_view operation, std::string body, Duration timeout,
                         Answered done) {
  timeout = base::Min(timeout, options_.command_timeout);
  if (closed_ || timeout <= Duration::Zero()) {
    const char* const why = closed_ ? ": the store is closed" : ": no time is left";
    return AnswerUnsent(NotSent(place_.ToString() + why + "; nothing was sent", false),
                        std::move(done));
  }
  const uint64_t id = next_call_++;
  // Only what changes nothing may go out twice.
  const bool repeatable = operation == kGetItem;
  std::unique_ptr<aws::Call> call =
      service_.Start(DynamoDbRequest(operation, std::move(body), repeatable, timeout),
                     [this, id, operation](const base::Result<aws::Response>& response) {
                       const DynamoDbAnswer answer = TakeApart(place_, operation, response);
                       loop::CallGuard guard(gone_);
                       Note(answer);
                       if (!guard.gone()) Finish(id, answer);
                     });
  calls_.emplace(id, Outstanding{std::move(call), std::move(done)});
}

void DynamoDbStore::AnswerUnsent(DynamoDbAnswer answer, Answered done) {
  const uint64_t id = next_call_++;
  calls_.emplace(id, Outstanding{nullptr, std::move(done)});
  if (closed_) return;  // Close answers it with the others
  poster_.Post([this, id, answer = std::move(answer)] { Finish(id, answer); });
}

void DynamoDbStore::Finish(uint64_t id, const DynamoDbAnswer& answer) {
  const auto outstanding = calls_.extract(id);
  if (!outstanding.empty()) outstanding.mapped().done(answer);
}

// Whether the service can be reached, and whether it has enough of us.
void DynamoDbStore::Note(const DynamoDbAnswer& answer) {
  const Cause cause = answer.failure ? answer.failure->cause : Cause::kConditionFailed;
  uint64_t swallowed = 0;
  if (cause == Cause::kNoAnswer) {
    if (std::exchange(stats_.connected, false) &&
        down_lines_.Allow(loop::Loop::Now(), &swallowed)) {
      log_.Warn("store.disconnected", answer.failure->sentence, {{"not_logged", swallowed}});
    }
    return;
  }
  // No credentials: nobody was asked.
  if (cause == Cause::kCredentials && !answer.store_unix_ms) return;
  if (!std::exchange(stats_.connected, true) && up_lines_.Allow(loop::Loop::Now(), &swallowed)) {
    log_.Info("store.connected", "connected to " + place_.ToString(), {{"not_logged", swallowed}});
  }
  if (cause == Cause::kThrottled) NoteThrottled(answer.failure->sentence);
  if (cause == Cause::kNoTable && !open_done_) CreateLate();
}

// One throttled call is what AWS does; several in a minute are a table or account that is too
// small, though each lease still gets through.
void DynamoDbStore::NoteThrottled(const std::string& sentence) {
  const base::MonoTime now = loop::Loop::Now();
  throttled_.push_back(now);
  const auto enough = static_cast<size_t>(tuning_.throttles_for_trouble);
  if (throttled_.size() > enough) throttled_.pop_front();
  throttle_timer_.StartAfter(tuning_.throttle_window);
  if (throttled_.size() < enough || now - throttled_.front() > tuning_.throttle_window) return;
  if (!std::exchange(in_throttle_trouble_, true) && trouble_) {
    trouble_("throttled", true, "requests are throttled again and again: " + sentence);
  }
}

void DynamoDbStore::EndThrottled() {
  throttled_.clear();
  if (std::exchange(in_throttle_trouble_, false) && trouble_) trouble_("throttled", false, "");
}

void DynamoDbStore::Count(std::string_view operation, std::string_view result,
                          base::MonoTime started) {
  ++stats_.operations[{std::string(operation), std::string(result)}];
  stats_.last_latency = loop::Loop::Now() - started;
}

// ---- the start ----

void DynamoDbStore::Open(TroubleCallback trouble, std::function<void(Status)> done) {
  trouble_ = std::move(trouble);
  open_done_ = std::move(done);
  Check();
}

// A GetItem of an item that there is not: it needs no permission that a lease does not need
// (DescribeTable would), and its answer tells of table, key schema, permission and credentials.
void DynamoDbStore::Check() {
  Send(kGetItem, GetItemBody(place_.table, DynamoDbCheckKey(prefix_)), options_.command_timeout,
       [this](const DynamoDbAnswer& answer) { OnChecked(answer); });
}

void DynamoDbStore::OnChecked(const DynamoDbAnswer& answer) {
  if (!open_done_) return;
  if (!answer.failure) {
    if (table_asked_for_) log_.Info("store.table_created", place_.ToString() + " is there", {});
    return FinishOpen({});
  }
  const DynamoDbFailure& failure = *answer.failure;
  switch (failure.cause) {
    case Cause::kClockSkew:
      if (!std::exchange(skew_corrected_, true)) return Check();
      break;
    case Cause::kNoTable:
      if (!options_.create_table) break;
      return table_asked_for_ ? CheckAgain(failure.sentence) : CreateTable();
    // May come or be renewed later; each lease tells of it meanwhile.
    case Cause::kCredentials:
    case Cause::kConditionFailed: return FinishOpen({});
    default:
      if (table_asked_for_ && !failure.refused) return CheckAgain(failure.sentence);
      break;
  }
  const bool never = failure.refused && failure.cause != Cause::kClockSkew;
  FinishOpen(never ? Status(Error{ErrorCode::kRefused, failure.sentence}) : Status());
}

void DynamoDbStore::CreateTable() {
  if (create_until_ == base::MonoTime()) {
    create_until_ = loop::Loop::Now() + tuning_.create_patience;
    log_.Info("store.creating_table",
              place_.ToString() + " is not there and is made, billed per request", {});
  }
  Send(kCreateTable, CreateTableBody(place_.table), options_.command_timeout,
       [this](const DynamoDbAnswer& answer) { OnCreated(answer); });
}

void DynamoDbStore::OnCreated(const DynamoDbAnswer& answer) {
  if (!open_done_) return;
  if (!answer.failure || answer.failure->cause == Cause::kTableExists) {
    table_asked_for_ = true;
    return Check();
  }
  if (!answer.failure->refused) return CheckAgain(answer.failure->sentence);
  FinishOpen(Error{ErrorCode::kRefused, answer.failure->sentence});
}

// A service that could not be reached at the start says only now that it has no such table.
void DynamoDbStore::CreateLate() {
  if (!options_.create_table || closed_ || std::exchange(creating_late_, true)) return;
  uint64_t swallowed = 0;
  if (up_lines_.Allow(loop::Loop::Now(), &swallowed)) {
    log_.Info("store.creating_table",
              place_.ToString() + " is not there and is made, billed per request", {});
  }
  Send(kCreateTable, CreateTableBody(place_.table), options_.command_timeout,
       [this](const DynamoDbAnswer& answer) {
         creating_late_ = false;
         const bool made = !answer.failure || answer.failure->cause == Cause::kTableExists;
         uint64_t not_logged = 0;
         if (made || !down_lines_.Allow(loop::Loop::Now(), &not_logged)) return;
         log_.Warn("store.create_failed", answer.failure->sentence, {{"not_logged", not_logged}});
       });
}

void DynamoDbStore::CheckAgain(const std::string& why) {
  if (loop::Loop::Now() < create_until_) return create_timer_.StartAfter(tuning_.create_poll);
  FinishOpen(Error{ErrorCode::kRefused,
                   place_.ToString() + " was to be created and is not there " + "after " +
                       base::FormatDuration(tuning_.create_patience) + ": " + why});
}

void DynamoDbStore::FinishOpen(Status status) {
  if (!open_done_) return;
  const std::function<void(Status)> done = std::exchange(open_done_, nullptr);
  done(std::move(status));
}

// ---- the end ----

void DynamoDbStore::Close(std::function<void()> done) {
  closed_ = true;
  create_timer_.Stop();
  throttle_timer_.Stop();
  poster_.Post([this, done = std::move(done)] {
    const std::string why = "the store was closed before " + place_.ToString() + " answered";
    loop::CallGuard guard(gone_);
    FinishOpen(Error{ErrorCode::kClosed, why});
    while (!guard.gone() && !calls_.empty()) Finish(calls_.begin()->first, NotSent(why, false));
    if (!guard.gone()) done();
  });
}

std::unique_ptr<LeaseStore> MakeDynamoDbStore(loop::Loop& loop, const DynamoDbOptions& options,
                                              const DynamoDbTuning& tuning,
                                              std::shared_ptr<aws::CredentialsProvider> credentials,
                                              aws::Endpoint endpoint, std::string prefix,
                                              observe::Log& log) {
  CHECK(ValidateDynamoDbOptions(options).ok(),
        "MakeDynamoDbStore needs options that passed ValidateDynamoDbOptions");
  return std::make_unique<DynamoDbStore>(loop, options, tuning, std::move(credentials),
                                         std::move(endpoint), std::move(prefix), log);
}

std::unique_ptr<LeaseStore> MakeDynamoDbStore(loop::Loop& loop, const DynamoDbOptions& options,
                                              std::shared_ptr<aws::CredentialsProvider> credentials,
                                              aws::Endpoint endpoint, std::string prefix,
                                              observe::Log& log) {
  return MakeDynamoDbStore(loop, options, DynamoDbTuning(), std::move(credentials),
                           std::move(endpoint), std::move(prefix), log);
}

Status ValidateDynamoDbOptions(const DynamoDbOptions& options) {
  // DynamoDB's own rule for table names ("Naming rules" of its Developer Guide).
  bool good = options.table.size() >= 3 && options.table.size() <= 255;
  for (const char c : options.table) good = good && IsTableByte(c);
  if (!good) {
    return Error{ErrorCode::kInvalid,
                 "dynamodb.table = \"" + base::Printable(options.table) +
                     "\" must be 3 to 255 letters, digits, '.', '_' or '-': a table's name, not "
                     "its ARN"};
  }
  if (Status status = CheckTimeout("connect_timeout", options.connect_timeout); !status) {
    return status;
  }
  return CheckTimeout("command_timeout", options.command_timeout);
}

}  // namespace leasehold::store
