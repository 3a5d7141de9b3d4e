#include "observe/event.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace leasehold::observe {
namespace {

class EventBusTest : public ::testing::Test {
 protected:
  static Event Named(const std::string& name) {
    Event event;
    event.name = name;
    return event;
  }
  EventBus::Subscriber Into(std::vector<std::string>& seen, const std::string& who = "") {
    return [&seen, who](const Event& event) {
      seen.push_back(who + std::to_string(event.id) + event.name);
    };
  }

  EventBus bus_{3};
  std::vector<std::string> seen_;
};

TEST_F(EventBusTest, IdsRiseByOneAndSubscribersAreCalledInOrder) {
  bus_.Subscribe(Into(seen_, "a"));
  bus_.Subscribe(Into(seen_, "b"));
  bus_.Publish(Named("x"));
  bus_.Publish(Named("y"));
  EXPECT_EQ(seen_, (std::vector<std::string>{"a1x", "b1x", "a2y", "b2y"}));
}

TEST_F(EventBusTest, HistoryKeepsTheLastOnes) {
  for (const char* name : {"1", "2", "3", "4", "5"}) bus_.Publish(Named(name));
  ASSERT_EQ(bus_.history().size(), 3U);
  EXPECT_EQ(bus_.history().front().id, 3U);
  EXPECT_EQ(bus_.history().back().name, "5");
}

TEST_F(EventBusTest, AnEventPublishedByASubscriberComesAfterForEverybody) {
  bus_.Subscribe([this](const Event& event) {
    if (event.name == "first") bus_.Publish(Named("second"));
  });
  bus_.Subscribe(Into(seen_));
  bus_.Publish(Named("first"));
  EXPECT_EQ(seen_, (std::vector<std::string>{"1first", "2second"}));
}

TEST_F(EventBusTest, ASubscriberMayLeaveFromInsideItsOwnCall) {
  uint64_t mine = 0;
  const std::string kept(100, 'k');  // on the heap, so that a sanitizer sees a call outlive it
  mine = bus_.Subscribe([this, &mine, kept](const Event&) {
    bus_.Unsubscribe(mine);
    seen_.push_back(kept);
  });
  bus_.Publish(Named("x"));
  bus_.Publish(Named("y"));
  EXPECT_EQ(seen_, std::vector<std::string>{kept});
}

TEST_F(EventBusTest, ASubscriberRemovedByAnEarlierOneIsNotCalledAnyMore) {
  uint64_t other = 0;
  bus_.Subscribe([this, &other](const Event&) { bus_.Unsubscribe(other); });
  other = bus_.Subscribe(Into(seen_));
  bus_.Publish(Named("x"));
  EXPECT_TRUE(seen_.empty());
}

TEST_F(EventBusTest, ASubscriberAddedInsideACallStartsWithTheNextEvent) {
  bool added = false;
  bus_.Subscribe([this, &added](const Event&) {
    if (!added) bus_.Subscribe(Into(seen_));
    added = true;
  });
  bus_.Publish(Named("x"));
  bus_.Publish(Named("y"));
  EXPECT_EQ(seen_, std::vector<std::string>{"2y"});
}

TEST_F(EventBusTest, AnUnknownSubscriptionIsNoMatter) {
  bus_.Subscribe(Into(seen_));
  bus_.Unsubscribe(0);
  bus_.Unsubscribe(77);
  bus_.Publish(Named("x"));
  EXPECT_EQ(seen_.size(), 1U);
}

TEST(EventHistory, IsFoundByIdUntilItIsNotKeptAnyMore) {
  EventBus bus(2);
  EXPECT_EQ(bus.Find(1), nullptr);
  EXPECT_EQ(bus.first_kept(), 1U);
  EXPECT_EQ(bus.last_told(), 0U);
  for (const char* name : {"a.1", "a.2", "a.3"}) {
    Event event;
    event.name = name;
    bus.Publish(event);
  }
  EXPECT_EQ(bus.first_kept(), 2U);
  EXPECT_EQ(bus.last_told(), 3U);
  EXPECT_EQ(bus.Find(1), nullptr);
  EXPECT_EQ(bus.Find(2)->name, "a.2");
  EXPECT_EQ(bus.Find(3)->name, "a.3");
  EXPECT_EQ(bus.Find(4), nullptr);
}

TEST(EventHistory, EndsWithTheEventBeingToldForASubscriberThatLooks) {
  EventBus bus;
  std::vector<uint64_t> last;
  bus.Subscribe([&](const Event& event) {
    last.push_back(bus.last_told());
    if (event.id == 1) bus.Publish(Event{});  // told later
  });
  bus.Publish(Event{});
  EXPECT_EQ(last, (std::vector<uint64_t>{1, 2}));
}

TEST(EventJson, NamesTheProcessWhereAnIdMustOutliveIt) {
  Event event;
  event.id = 7;
  event.name = "app.ready";
  EXPECT_NE(EventJson(event, "ab12").find("\"id\":7,\"event_id\":\"ab12.7\","), std::string::npos);
  EXPECT_EQ(EventJson(event).find("event_id"), std::string::npos);
}

TEST(EventJson, CarriesLeaseTokenHolderReasonAndTime) {
  Event event;
  event.id = 7;
  event.name = "lease.lost";
  event.lease = "orders";
  event.token = 18446744073709551615U;
  event.holder_node_id = "pod-1";
  event.holder_process_id = "ab12";
  event.reason = "superseded";
  event.at = base::WallTime{1764514915123};
  EXPECT_EQ(EventJson(event),
            "{\"event\":\"lease.lost\",\"id\":7,\"at\":\"2025-11-30T15:01:55.123Z\","
            "\"lease\":\"orders\",\"token\":\"18446744073709551615\","
            "\"holder\":{\"node_id\":\"pod-1\",\"process_id\":\"ab12\"},"
            "\"reason\":\"superseded\"}");
}

TEST(EventJson, ADrainTellsItsGraceEvenWhenThereIsNone) {
  Event event;
  event.name = "lease.draining";
  EXPECT_NE(EventJson(event).find("\"grace_ms\":0"), std::string::npos);
  event.grace = base::Duration::Millis(2500);
  EXPECT_NE(EventJson(event).find("\"grace_ms\":2500"), std::string::npos);
}

TEST(EventJson, IsOneLineWhateverTheDetailHolds) {
  Event event;
  event.name = "store.degraded";
  event.detail = "line one\nline \"two\"";
  const std::string json = EventJson(event);
  EXPECT_EQ(json.find('\n'), std::string::npos);
  EXPECT_NE(json.find("\"detail\":\"line one\\u000aline \\\"two\\\"\""), std::string::npos);
}

}  // namespace
}  // namespace leasehold::observe
