// SqsGiveBack: makes messages visible again (visibility 0) that this instance will not see through:
// in batches of 10, a bounded number of calls at a time. Owned by its gate. Not here: which
// messages, and whether they may be (asked before every call).
//
// Two sorts. Unseen: the application never saw them, so that nobody can be acting on them; they may
// go back at any time, also after the release. Seen: the application has them; within the permit
// alone. Nothing is repeated: a message that could not be given back comes back by itself at its
// visibility time-out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "aws/sqs_client.h"
#include "gate/sqs_in_flight.h"
#include "loop/loop.h"

namespace leasehold::gate {

// How long before a drain's end what is still in flight is given back: time for that many messages
// in calls of 10, kGiveBackCallsMax at a time, of which each may take a slow round trip; at most a
// quarter of the drain.
base::Duration GiveBackLead(size_t messages, base::Duration drain);
inline constexpr size_t kGiveBackCallsMax = 32;

class SqsGiveBack {
 public:
  struct Batch {
    std::string queue_url;  // the service's
    std::vector<SqsInFlight::Place> messages;
    bool seen = false;
    std::string reason;  // for log and metrics
  };
  struct Result {
    size_t ok = 0;
    size_t failed = 0;
    std::string error;  // the last one
  };
  struct Host {
    // May a batch of seen ones go now?
    std::function<bool()> may_give_seen;
    // Once for every batch of Add that was not dropped.
    std::function<void(const Batch&, const Result&)> on_done;
  };

  SqsGiveBack(loop::Loop& loop, aws::SqsClient& client, Host host);
  ~SqsGiveBack();
  SqsGiveBack(const SqsGiveBack&) = delete;
  SqsGiveBack& operator=(const SqsGiveBack&) = delete;

  // Messages of one queue, any number.
  void Add(Batch batch);
  // The permit is over: seen ones that are not answered are not waited for, and sent no more.
  void DropSeen();
  bool idle() const { return waiting_.empty() && running_.empty(); }

 private:
  struct Running {
    Batch batch;
    std::unique_ptr<aws::Call> call;
    bool over = false;
  };
  void Next();
  void Start(Batch batch);
  void OnDone(Running& running,
              const std::variant<std::vector<aws::EntryResult>, aws::SqsFailure>& answer);
  void BuryOver();

  loop::Loop& loop_;
  aws::SqsClient& client_;
  const Host host_;
  std::deque<Batch> waiting_;
  std::list<Running> running_;
  size_t active_ = 0;  // of running_, not over
  std::shared_ptr<SqsGiveBack*> self_;
};

}  // namespace leasehold::gate
