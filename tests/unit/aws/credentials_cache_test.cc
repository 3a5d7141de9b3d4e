// CredentialsCache over a source that the test plays, with a wall clock that the test sets.
#include "aws/credentials_cache.h"

#include <gtest/gtest.h>

#include "source_fixture.h"

namespace leasehold::aws {
namespace {

using base::Duration;
using base::ErrorCode;

// Fetches wait until the test answers them.
class PlayedSource final : public CredentialsSource {
 public:
  std::unique_ptr<Fetching> Fetch(FetchDone done) override {
    ++fetches;
    waiting = std::move(done);
    struct Handle final : Fetching {
      explicit Handle(PlayedSource& the_source) : source(the_source) {}
      ~Handle() override { source.waiting = nullptr; }
      PlayedSource& source;
    };
    return std::make_unique<Handle>(*this);
  }
  std::string Describe() const override { return "played"; }

  int fetches = 0;
  FetchDone waiting;
};

class CredentialsCacheTest : public SourceFixture {
 protected:
  void SetUp() override {
    SourceFixture::SetUp();
    times_.retry_first = times_.retry_last_without = times_.retry_last_with = Duration::Millis(20);
    times_.reread_min = Duration::Millis(50);
    Make();
  }
  void TearDown() override {
    cache_.reset();
    SourceFixture::TearDown();
  }
  void Make() {
    auto source = std::make_unique<PlayedSource>();
    source_ = source.get();
    cache_ = std::make_unique<CredentialsCache>(loop_, std::move(source), 1, *log_, times_,
                                                [this] { return base::WallTime{now_ms_}; });
  }
  void Get() {
    const size_t mine = got_.size();
    got_.emplace_back();
    cache_->Get([this, mine](base::Result<SharedCredentials> result) {
      got_[mine].emplace(std::move(result));
    });
  }
  // The key's id, or the error's sentence, of the n-th Get.
  std::string Got(size_t n) {
    EXPECT_TRUE(Eventually([&] { return got_[n].has_value(); }));
    if (!got_[n].has_value()) return "<nothing>";
    return got_[n]->ok() ? got_[n]->value()->key.access_key_id : got_[n]->error().message;
  }
  std::string GetNow() {
    Get();
    return Got(got_.size() - 1);
  }
  void Answer(const std::string& id, std::optional<int64_t> lifetime_seconds) {
    Fetched fetched;
    fetched.credentials.key = {id, kSecret, kToken};
    fetched.credentials.source = "played";
    if (lifetime_seconds) {
      fetched.credentials.expires_unix_ms = now_ms_ + *lifetime_seconds * 1000;
    }
    const FetchDone done = source_->waiting;
    ASSERT_TRUE(done) << "nobody asked";
    done(std::move(fetched));
  }
  void Fail(const std::string& why = "broken") {
    const FetchDone done = source_->waiting;
    ASSERT_TRUE(done) << "nobody asked";
    done(base::Error{ErrorCode::kUnavailable, why});
  }
  bool Asked() {
    return Eventually([&] { return static_cast<bool>(source_->waiting); });
  }
  size_t Lines(const std::string& event) const {
    size_t n = 0;
    const std::string logged = Logged();
    for (size_t at = 0; (at = logged.find("event=" + event, at)) != std::string::npos; ++at) ++n;
    return n;
  }

  int64_t now_ms_ = 1000000000000;
  CacheTimes times_;
  PlayedSource* source_ = nullptr;
  std::unique_ptr<CredentialsCache> cache_;
  std::vector<std::optional<base::Result<SharedCredentials>>> got_{};
};

TEST_F(CredentialsCacheTest, OneFetchServesAllWhoWaitAndAllWhoComeLater) {
  got_.reserve(8);
  Get();
  Get();
  EXPECT_EQ(source_->fetches, 1);
  Answer("A", std::nullopt);
  EXPECT_EQ(Got(0), "A");
  EXPECT_EQ(Got(1), "A");
  EXPECT_EQ(GetNow(), "A");
  EXPECT_EQ(source_->fetches, 1);
}

TEST_F(CredentialsCacheTest, NothingIsToldFromInsideACall) {
  got_.reserve(8);
  Get();
  Answer("A", 3600);
  Get();
  EXPECT_FALSE(got_[1].has_value());
  EXPECT_EQ(Got(1), "A");
}

TEST_F(CredentialsCacheTest, TheyAreFetchedAgainBeforeTheyExpireAndTheOldOnesServeMeanwhile) {
  got_.reserve(8);
  Get();
  Answer("A", 3600);
  now_ms_ += 3600 * 1000 - 16 * 60 * 1000;  // 16 minutes are left
  EXPECT_EQ(GetNow(), "A");
  EXPECT_EQ(source_->fetches, 1);
  now_ms_ += 6 * 60 * 1000;  // 10 minutes
  EXPECT_EQ(GetNow(), "A");
  EXPECT_EQ(source_->fetches, 2);
  EXPECT_EQ(GetNow(), "A");
  EXPECT_EQ(source_->fetches, 2);
  Answer("B", 3600);
  EXPECT_EQ(GetNow(), "B");
}

TEST_F(CredentialsCacheTest, TheRefreshComesByItselfWhenNobodyAsks) {
  Get();
  Answer("A", 1);  // a quarter of a second before
  EXPECT_TRUE(Eventually([&] {
    now_ms_ += 2;
    return source_->fetches == 2;
  }));
}

TEST_F(CredentialsCacheTest, JitterMovesTheRefreshButNeverBehindItsWindow) {
  got_.reserve(64);
  Get();
  Answer("A", 3600);
  now_ms_ += 3600 * 1000 - 12 * 60 * 1000 + 1000;  // behind 80 % of 15 minutes
  EXPECT_EQ(GetNow(), "A");
  EXPECT_EQ(source_->fetches, 2);
}

TEST_F(CredentialsCacheTest, OldOnesServeWhileTheRefreshFailsUntilTheyExpire) {
  got_.reserve(64);
  Get();
  Answer("A", 3600);
  now_ms_ += 3000 * 1000;
  EXPECT_EQ(GetNow(), "A");
  Fail();
  EXPECT_EQ(GetNow(), "A");
  ASSERT_TRUE(Asked());  // again, by itself, after a pause
  Fail();
  EXPECT_EQ(GetNow(), "A");
  EXPECT_EQ(Lines("aws.credentials_failing"), 1u) << Logged();
  ASSERT_TRUE(Asked());
  now_ms_ += 600 * 1000;
  Get();
  Fail("still broken");
  EXPECT_EQ(Got(got_.size() - 1), "still broken");
  EXPECT_EQ(Lines("aws.credentials_failing"), 1u) << Logged();
  EXPECT_TRUE(Eventually([&] {
    Get();
    return source_->waiting != nullptr;
  }));
  Answer("B", 3600);
  EXPECT_EQ(GetNow(), "B");
  EXPECT_EQ(Lines("aws.credentials_refreshed"), 2u) << Logged();
}

TEST_F(CredentialsCacheTest, ShortlyBeforeTheExpiryANewFetchIsWaitedFor) {
  got_.reserve(8);
  Get();
  Answer("A", 3600);
  now_ms_ += 3595 * 1000;
  Get();
  RunFor(Duration::Millis(20));
  EXPECT_FALSE(got_[1].has_value());
  Fail();
  EXPECT_EQ(Got(1), "A");  // they have not expired yet
}

TEST_F(CredentialsCacheTest, AFailureIsTriedAgainOnlyAfterAPause) {
  got_.reserve(64);
  times_.retry_first = times_.retry_last_without = Duration::Seconds(60);
  Make();
  Get();
  Fail("why");
  EXPECT_EQ(Got(0), "why");
  EXPECT_EQ(GetNow(), "why");
  EXPECT_EQ(GetNow(), "why");
  EXPECT_EQ(source_->fetches, 1);
}

TEST_F(CredentialsCacheTest, ARefusalCausesAFetchButAtMostOneInAWhile) {
  got_.reserve(4096);
  Get();
  Answer("A", std::nullopt);
  EXPECT_EQ(Got(0), "A");
  const SharedCredentials old = got_[0]->value();
  cache_->NoteRefused(old);
  EXPECT_EQ(GetNow(), "A");  // too soon after the first fetch: the old ones are all there is
  EXPECT_EQ(source_->fetches, 1);
  RunFor(Duration::Millis(60));
  Get();
  ASSERT_TRUE(source_->waiting);
  Answer("B", std::nullopt);
  EXPECT_EQ(Got(got_.size() - 1), "B");
  cache_->NoteRefused(old);  // said late: nothing happens
  RunFor(Duration::Millis(60));
  EXPECT_EQ(GetNow(), "B");
  EXPECT_EQ(source_->fetches, 2);
}

TEST_F(CredentialsCacheTest, RefusedOnesThatTheSourceStillGivesStayTheSameObject) {
  got_.reserve(8);
  times_.reread_min = Duration::Zero();
  Make();
  Get();
  Answer("A", std::nullopt);
  EXPECT_EQ(Got(0), "A");
  cache_->NoteRefused(got_[0]->value());
  Get();
  Answer("A", std::nullopt);
  EXPECT_EQ(Got(1), "A");
  EXPECT_EQ(got_[0]->value(), got_[1]->value());
  EXPECT_EQ(Lines("aws.credentials_refreshed"), 1u) << Logged();
}

TEST_F(CredentialsCacheTest, WhatHadExpiredWhenItCameIsUsedWithOneWarning) {
  got_.reserve(64);
  times_.extension = Duration::Millis(100);
  Make();
  Get();
  Answer("A", -60);
  EXPECT_EQ(Got(0), "A");
  EXPECT_EQ(GetNow(), "A");
  ASSERT_TRUE(Asked());  // again, in the middle of the extension
  Answer("A", -60);
  EXPECT_EQ(GetNow(), "A");
  EXPECT_GE(source_->fetches, 2);
  EXPECT_EQ(Lines("aws.credentials_expired"), 1u) << Logged();
  ASSERT_TRUE(Asked());
  Answer("B", 3600);
  EXPECT_EQ(GetNow(), "B");
}

TEST_F(CredentialsCacheTest, AWallClockThatStepsIsNoticedAtTheNextCall) {
  got_.reserve(8);
  Get();
  Answer("A", 3600);
  now_ms_ += int64_t{10} * 365 * 24 * 3600 * 1000;
  Get();
  EXPECT_EQ(source_->fetches, 2);
  Answer("B", 3600);
  EXPECT_EQ(Got(1), "B");
  now_ms_ = 0;
  EXPECT_EQ(GetNow(), "B");
}

TEST_F(CredentialsCacheTest, AFetchThatHangsIsGivenUpAndTriedAgain) {
  got_.reserve(64);
  times_.fetch_max = Duration::Millis(50);
  Make();
  Get();
  EXPECT_EQ(Got(0), "played gave no credentials within 50ms");
  EXPECT_FALSE(source_->waiting);
  EXPECT_TRUE(Eventually([&] {
    Get();
    return source_->waiting != nullptr;
  }));
}

TEST_F(CredentialsCacheTest, ACallbackMayAskAgainOrDestroyTheCache) {
  int told = 0;
  cache_->Get([&](base::Result<SharedCredentials>) {
    ++told;
    cache_->Get([&](base::Result<SharedCredentials>) {
      ++told;
      cache_.reset();
    });
    cache_->Get([&](base::Result<SharedCredentials>) { ++told; });
  });
  Answer("A", std::nullopt);
  RunFor(Duration::Millis(20));
  EXPECT_EQ(told, 2);
}

TEST_F(CredentialsCacheTest, NobodyIsToldAfterTheCacheIsGone) {
  Get();
  Get();
  cache_.reset();
  RunFor(Duration::Millis(20));
  EXPECT_FALSE(got_[0].has_value());
}

}  // namespace
}  // namespace leasehold::aws
