// The dynamodb adapter against a service that misbehaves as no emulator does: throttling, garbage,
// cut and late answers, expired credentials, wrong clocks, doubled requests.
#include "store/dynamodb_store.h"

#include "dynamodb_fixture.h"

namespace leasehold::store {
namespace {

using base::Duration;
using Request = FakeDynamoDb::Request;

class DynamoDbStoreTest : public DynamoDbFixture {
 protected:
  void Always(const FakeAnswer& what) {
    fake_->answer = [what](const Request&) { return what; };
  }
  void Then(const std::vector<FakeAnswer>& first, const FakeAnswer& after) {
    fake_->answer = [first, after, n = size_t{0}](const Request&) mutable {
      return n < first.size() ? first[n++] : after;
    };
  }
};

// ---- writes ----

TEST_F(DynamoDbStoreTest, AWriteIsSentOnceOverAKeptConnection) {
  LeaseStore* store = Opened();
  for (uint64_t beat = 2; beat < 12; ++beat) {
    Always(Applied(Beat(beat)));
    EXPECT_EQ(CasNow(store, lease::MakeVersion(Beat(beat - 1)), Beat(beat)).outcome, Cas::kApplied);
  }
  EXPECT_EQ(fake_->Count("UpdateItem"), 10U);
  EXPECT_EQ(fake_->requests.size(), 10U);
  EXPECT_EQ(fake_->accepted(), 1);
}

TEST_F(DynamoDbStoreTest, AWriteWhoseAnswerIsCutIsAmbiguousAndNotRepeated) {
  LeaseStore* store = Opened();
  FakeAnswer cut = Applied(Beat(2));
  cut.cut = true;
  Always(cut);
  const CasResult result = CasNow(store, "p-1/1/1", Beat(2));
  EXPECT_EQ(result.outcome, Cas::kAmbiguous);
  EXPECT_NE(result.error.find("leases"), std::string::npos) << result.error;
  EXPECT_EQ(fake_->requests.size(), 1U) << "no adapter repeats a compare-and-set";
}

TEST_F(DynamoDbStoreTest, AnAnswerThatIsLateIsDroppedAndTheCallAmbiguousInTime) {
  LeaseStore* store = Opened();
  FakeAnswer silent;
  silent.silent = true;
  Always(silent);
  const base::MonoTime start = loop::Loop::Now();
  EXPECT_EQ(CasNow(store, "p-1/1/1", Beat(2), Duration::Millis(100)).outcome, Cas::kAmbiguous);
  EXPECT_EQ(ReadNow(store, Duration::Millis(100)).outcome, Read::kAmbiguous);
  EXPECT_LT((loop::Loop::Now() - start).millis(), 1000);
  EXPECT_FALSE(store->stats().connected);
}

TEST_F(DynamoDbStoreTest, AFailedConditionThatShowsTheItemTakesNoSecondCall) {
  LeaseStore* store = Opened();
  FakeAnswer failed = Error("ConditionalCheckFailedException", "The conditional request failed");
  failed.body.insert(failed.body.size() - 1, R"(,"Item":)" + Item(Beat(7, "p-2")));
  Always(failed);
  const CasResult result = CasNow(store, "p-1/1/1", Beat(2));
  ASSERT_EQ(result.outcome, Cas::kConflict) << result.error;
  EXPECT_EQ(result.version, "p-2/1/7");
  EXPECT_EQ(fake_->requests.size(), 1U);
}

TEST_F(DynamoDbStoreTest, AFailedConditionThatShowsNothingIsLookedAtInTheSameTime) {
  LeaseStore* store = Opened();
  fake_->answer = [](const Request& request) {
    return request.operation == "GetItem" ? Shown(Beat(7, "p-2"))
                                          : Error("ConditionalCheckFailedException");
  };
  const CasResult result = CasNow(store, "p-1/1/1", Beat(2));
  ASSERT_EQ(result.outcome, Cas::kConflict) << result.error;
  EXPECT_EQ(result.record, Beat(7, "p-2"));
  EXPECT_EQ(fake_->requests.size(), 2U);
  fake_->answer = [](const Request& request) {
    FakeAnswer silent;
    silent.silent = true;
    return request.operation == "GetItem" ? silent : Error("ConditionalCheckFailedException");
  };
  const base::MonoTime start = loop::Loop::Now();
  const CasResult unknown = CasNow(store, "p-1/1/1", Beat(2), Duration::Millis(200));
  EXPECT_EQ(unknown.outcome, Cas::kAmbiguous) << "not a conflict on a guess";
  EXPECT_LT((loop::Loop::Now() - start).millis(), 1000);
}

// A proxy on the way sends the request again: the first took, the second is what is answered.
TEST_F(DynamoDbStoreTest, AWriteThatWasDoubledOnTheWayIsAppliedAndNoConflict) {
  LeaseStore* store = Opened();
  fake_->answer = [](const Request& request) {
    return request.operation == "GetItem" ? Shown(Beat(2))
                                          : Error("ConditionalCheckFailedException");
  };
  const CasResult result = CasNow(store, "p-1/1/1", Beat(2));
  EXPECT_EQ(result.outcome, Cas::kApplied) << result.error;
  EXPECT_EQ(result.version, "p-1/1/2");
}

TEST_F(DynamoDbStoreTest, AYesOfSomethingThatIsNotDynamoDbIsNoLease) {
  LeaseStore* store = Opened();
  Always(FakeAnswer{});  // 200 {}: what a stub or a wrong endpoint says to everything
  EXPECT_EQ(CasNow(store, std::nullopt, Beat(1)).outcome, Cas::kAmbiguous);
}

TEST_F(DynamoDbStoreTest, ARecordThatCannotBeKeptIsRefusedAndNothingIsSent) {
  LeaseStore* store = Opened();
  lease::Record record = Beat(2);
  record.node_id = "\xff\xfe";
  const CasResult result = CasNow(store, "p-1/1/1", record);
  EXPECT_EQ(result.outcome, Cas::kRefused);
  EXPECT_NE(result.error.find("UTF-8"), std::string::npos) << result.error;
  EXPECT_TRUE(fake_->requests.empty());
}

// ---- what the service may say ----

TEST_F(DynamoDbStoreTest, AServerErrorWithAnUnknownBodyTwiceIsAmbiguousTwice) {
  LeaseStore* store = Opened();
  FakeAnswer odd;
  odd.status = 500;
  odd.body = "<html>nobody knows this error</html>";
  Then({odd, odd}, Applied(Beat(4)));
  EXPECT_EQ(CasNow(store, "p-1/1/1", Beat(2)).outcome, Cas::kAmbiguous);
  EXPECT_EQ(CasNow(store, "p-1/1/1", Beat(3)).outcome, Cas::kAmbiguous);
  EXPECT_EQ(CasNow(store, "p-1/1/1", Beat(4)).outcome, Cas::kApplied);
}

TEST_F(DynamoDbStoreTest, ThrottlingIsAmbiguousCountedAndNotRepeated) {
  LeaseStore* store = Opened();
  Always(Error("ProvisionedThroughputExceededException", "exceeded"));
  EXPECT_EQ(CasNow(store, "p-1/1/1", Beat(2)).outcome, Cas::kAmbiguous);
  EXPECT_EQ(ReadNow(store).outcome, Read::kAmbiguous);
  EXPECT_EQ(fake_->requests.size(), 2U);
  EXPECT_EQ(store->stats().operations.at({"cas", "throttled"}), 1U);
  EXPECT_EQ(store->stats().operations.at({"read", "throttled"}), 1U);
  EXPECT_TRUE(troubles_.empty()) << "one or two are everybody's lot";
}

TEST_F(DynamoDbStoreTest, ThrottlingThatLastsIsTroubleUntilAWindowWithout) {
  tuning_.throttle_window = Duration::Millis(150);
  LeaseStore* store = Opened();
  Then({Error("ThrottlingException"), Error("ThrottlingException"), Error("ThrottlingException")},
       FakeAnswer{});
  for (int i = 0; i < 4; ++i) ReadNow(store);
  ASSERT_EQ(troubles_.size(), 1U);
  EXPECT_EQ(std::get<0>(troubles_[0]), "throttled");
  EXPECT_TRUE(std::get<1>(troubles_[0]));
  EXPECT_NE(std::get<2>(troubles_[0]).find("on-demand"), std::string::npos);
  ASSERT_TRUE(RunUntil([&] { return troubles_.size() == 2; }));
  EXPECT_FALSE(std::get<1>(troubles_[1]));
}

TEST_F(DynamoDbStoreTest, ExpiredCredentialsAreRefusedAskedForAgainAndHealed) {
  LeaseStore* store = Opened();
  Then({Error("ExpiredTokenException", "The security token included in the request is expired")},
       Applied(Beat(3)));
  const CasResult expired = CasNow(store, "p-1/1/1", Beat(2));
  EXPECT_EQ(expired.outcome, Cas::kRefused);
  EXPECT_NE(expired.error.find("expired"), std::string::npos) << expired.error;
  EXPECT_EQ(credentials_->refused.size(), 1u);
  EXPECT_EQ(CasNow(store, "p-1/1/1", Beat(3)).outcome, Cas::kApplied);
}

TEST_F(DynamoDbStoreTest, WithoutCredentialsNothingIsSentAndItIsRefused) {
  LeaseStore* store = Opened();
  credentials_->error = base::Error{base::ErrorCode::kRefused, "none in any file"};
  const CasResult result = CasNow(store, "p-1/1/1", Beat(2));
  EXPECT_EQ(result.outcome, Cas::kRefused);
  EXPECT_NE(result.error.find("none in any file"), std::string::npos) << result.error;
  EXPECT_TRUE(fake_->requests.empty());
  credentials_->error.reset();
  Always(Applied(Beat(3)));
  EXPECT_EQ(CasNow(store, "p-1/1/1", Beat(3)).outcome, Cas::kApplied);
}

TEST_F(DynamoDbStoreTest, AWrongClockIsRefusedOnceAndRightInTheNextCall) {
  LeaseStore* store = Opened();
  FakeAnswer skew = Error("InvalidSignatureException",
                          "Signature expired: 20261201T013000Z is now earlier than "
                          "20310101T001500Z (20310101T003000Z - 15 min.)");
  skew.date = "Wed, 01 Jan 2031 00:30:00 GMT";
  FakeAnswer applied = Applied(Beat(3));
  applied.date = skew.date;
  Then({skew}, applied);
  const CasResult refused = CasNow(store, "p-1/1/1", Beat(2));
  EXPECT_EQ(refused.outcome, Cas::kRefused) << "it did not happen, and that is known";
  EXPECT_NE(refused.error.find("clock"), std::string::npos) << refused.error;
  EXPECT_TRUE(credentials_->refused.empty()) << "the credentials are not to blame";
  EXPECT_EQ(CasNow(store, "p-1/1/1", Beat(3)).outcome, Cas::kApplied);
  EXPECT_NE(fake_->requests.back().head.find("20310101T0030"), std::string::npos);
}

TEST_F(DynamoDbStoreTest, ASecretIsInNoRequestAndNoError) {
  LeaseStore* store = Opened();
  const std::string secret = credentials_->given->key.secret_access_key;
  Always(Error("UnrecognizedClientException", secret + " is no secret"));
  const CasResult result = CasNow(store, "p-1/1/1", Beat(2));
  EXPECT_EQ(result.error.find(secret), std::string::npos) << result.error;
  for (const Request& request : fake_->requests) {
    EXPECT_EQ((request.head + request.body).find(secret), std::string::npos);
  }
}

// ---- the start ----

TEST_F(DynamoDbStoreTest, TheStartAsksForNothingThatALeaseDoesNotNeed) {
  LeaseStore* store = Make();
  ASSERT_TRUE(OpenNow(store).ok());
  ASSERT_EQ(fake_->requests.size(), 1U);
  EXPECT_EQ(fake_->requests[0].operation, "GetItem");
  EXPECT_NE(fake_->requests[0].body.find("t:check"), std::string::npos);
}

TEST_F(DynamoDbStoreTest, AMissingPermissionAMissingTableOrAnotherKeyStopsTheStart) {
  for (const auto& [code, text] : std::vector<std::pair<std::string, std::string>>{
           {"AccessDeniedException", "User: x is not authorized to perform: dynamodb:GetItem"},
           {"ResourceNotFoundException", "Requested resource not found"},
           {"ValidationException", "The provided key element does not match the schema"}}) {
    Always(Error(code, text));
    const base::Status opened = OpenNow(Make());
    ASSERT_FALSE(opened.ok()) << code;
    EXPECT_EQ(opened.error().code, base::ErrorCode::kRefused);
    EXPECT_NE(opened.error().message.find(text), std::string::npos) << opened.error().message;
  }
  EXPECT_EQ(fake_->Count("CreateTable"), 0U);
}

TEST_F(DynamoDbStoreTest, WhatMayPassDoesNotStopTheStart) {
  FakeAnswer odd;
  odd.status = 503;
  odd.body = "no upstream";
  for (const FakeAnswer& answer :
       {odd, Error("ThrottlingException"), Error("ExpiredTokenException", "is expired"),
        Error("UnrecognizedClientException"), Error("InternalServerError", "", 500)}) {
    Always(answer);
    EXPECT_TRUE(OpenNow(Make()).ok()) << answer.body;
  }
  credentials_->error = base::Error{base::ErrorCode::kRefused, "not yet"};
  EXPECT_TRUE(OpenNow(Make()).ok());
}

TEST_F(DynamoDbStoreTest, AWrongClockAtTheStartIsCorrectedAndAskedOnceMore) {
  FakeAnswer skew = Error("InvalidSignatureException", "Signature expired: is now earlier than");
  skew.date = "Wed, 01 Jan 2031 00:30:00 GMT";
  FakeAnswer missing = Error("ResourceNotFoundException", "Requested resource not found");
  missing.date = skew.date;
  Then({skew}, missing);
  EXPECT_FALSE(OpenNow(Make()).ok()) << "the second answer counts";
  EXPECT_EQ(fake_->requests.size(), 2U);
}

TEST_F(DynamoDbStoreTest, ATableIsMadeAndWaitedForThroughThrottlingAndAnotherCreator) {
  options_.create_table = true;
  tuning_.create_poll = Duration::Millis(2);
  const FakeAnswer missing = Error("ResourceNotFoundException", "Requested resource not found");
  Then({missing, Error("LimitExceededException", "too many"), missing,
        Error("ResourceInUseException", "Table already exists"), missing, missing,
        Error("InternalServerError", "", 500)},
       FakeAnswer{});
  EXPECT_TRUE(OpenNow(Make()).ok());
  EXPECT_EQ(fake_->Count("CreateTable"), 2U) << "not again once it is being made";
  EXPECT_NE(fake_->requests[1].body.find("PAY_PER_REQUEST"), std::string::npos);
}

TEST_F(DynamoDbStoreTest, ATableIsMadeAlsoWhereTheServiceCameAfterTheStart) {
  options_.create_table = true;
  FakeAnswer down;
  down.status = 503;
  bool up = false;
  bool made = false;
  fake_->answer = [&](const Request& request) {
    if (!up) return down;
    made = made || request.operation == "CreateTable";
    return made ? FakeAnswer{} : Error("ResourceNotFoundException", "Requested resource not found");
  };
  LeaseStore* store = Make();
  ASSERT_TRUE(OpenNow(store).ok()) << "a service that is down is waited for";
  up = true;
  EXPECT_EQ(ReadNow(store).outcome, Read::kRefused);
  ASSERT_TRUE(RunUntil([&] { return made; })) << "nobody asked for the table";
  EXPECT_EQ(ReadNow(store).outcome, Read::kAbsent);
  EXPECT_EQ(fake_->Count("CreateTable"), 1U);
}

TEST_F(DynamoDbStoreTest, ATableThatDoesNotComeStopsTheStartAfterAWhile) {
  options_.create_table = true;
  tuning_.create_poll = Duration::Millis(2);
  tuning_.create_patience = Duration::Millis(50);
  fake_->answer = [](const Request& request) {
    return request.operation == "GetItem" ? Error("ResourceNotFoundException") : FakeAnswer{};
  };
  const base::Status opened = OpenNow(Make());
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.error().message.find("is not there after 50ms"), std::string::npos)
      << opened.error().message;
}

TEST_F(DynamoDbStoreTest, ATableThatMayNotBeMadeStopsTheStart) {
  options_.create_table = true;
  fake_->answer = [](const Request& request) {
    return request.operation == "GetItem"
               ? Error("ResourceNotFoundException")
               : Error("AccessDeniedException", "not authorized to perform: dynamodb:CreateTable");
  };
  const base::Status opened = OpenNow(Make());
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.error().message.find("allow dynamodb:CreateTable"), std::string::npos)
      << opened.error().message;
}

TEST_F(DynamoDbStoreTest, AStoreThatIsClosedWhileItOpensSaysSo) {
  FakeAnswer silent;
  silent.silent = true;
  Always(silent);
  LeaseStore* store = Make();
  std::optional<base::Status> opened;
  store->Open([](std::string_view, bool, const std::string&) {},
              [&opened](base::Status status) { opened = std::move(status); });
  ASSERT_TRUE(RunUntil([&] { return !fake_->requests.empty(); }));
  Close(store);
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ(opened->error().code, base::ErrorCode::kClosed);
}

// ---- probes ----

TEST_F(DynamoDbStoreTest, AProbeIsWellWhenItsConditionFailsAndRefusedWhenItMayNotWrite) {
  LeaseStore* store = Opened();
  Always(Error("ConditionalCheckFailedException"));
  EXPECT_TRUE(ProbeNow(store).ok());
  Always(Error("AccessDeniedException", "not authorized to perform: dynamodb:UpdateItem"));
  const base::Status denied = ProbeNow(store);
  ASSERT_FALSE(denied.ok());
  EXPECT_EQ(denied.error().code, base::ErrorCode::kRefused);
  EXPECT_NE(denied.error().message.find("allow dynamodb:UpdateItem"), std::string::npos);
  Always(FakeAnswer{});
  const base::Status odd = ProbeNow(store);
  ASSERT_FALSE(odd.ok()) << "a write that cannot take was said to have taken";
  EXPECT_EQ(odd.error().code, base::ErrorCode::kUnavailable);
}

// ---- options ----

TEST_F(DynamoDbStoreTest, OptionsThatCannotBeAreNamed) {
  const auto error = [](const DynamoDbOptions& options) {
    const base::Status status = ValidateDynamoDbOptions(options);
    return status.ok() ? std::string() : status.error().message;
  };
  EXPECT_EQ(error({}), "");
  DynamoDbOptions options;
  for (const char* table : {"", "ab", "a table", "arn:aws:dynamodb:eu-central-1:1:table/x"}) {
    options.table = table;
    EXPECT_NE(error(options).find("not its ARN"), std::string::npos) << table;
  }
  options = {};
  options.command_timeout = Duration::Millis(1);
  EXPECT_NE(error(options).find("dynamodb.command_timeout = \"1ms\""), std::string::npos);
  options = {};
  options.connect_timeout = Duration::Seconds(61);
  EXPECT_NE(error(options).find("dynamodb.connect_timeout"), std::string::npos);
}

}  // namespace
}  // namespace leasehold::store
