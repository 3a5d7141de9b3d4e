// SqsInFlight: the messages that the application has received through an sqs gate and has not
// finished, by queue and receipt handle, and for a while the handles of terms that are over. Pure:
// no I/O, no clock; owned by one gate. Not here: who may delete, which is the gate's; giving back.
//
// A message leaves when it was deleted, made visible, or becomes visible by itself; each holds a
// Ticket, so that a drain waits for it. A queue is known by its URL's path, as names of hosts
// differ.
//
// Invariants: a message is taken for giving back once; never while an acknowledgement of it is
// unanswered; and from then on its handle is a former one. Both tables are bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/time.h"
#include "gate/admission.h"

namespace leasehold::gate {

class SqsInFlight {
 public:
  // `former_max`: beyond it the former handle that would be forgotten first is forgotten now.
  explicit SqsInFlight(size_t former_max) : former_max_(former_max) {}
  SqsInFlight(const SqsInFlight&) = delete;
  SqsInFlight& operator=(const SqsInFlight&) = delete;

  struct Place {
    std::string queue;
    std::string handle;
    bool operator==(const Place&) const = default;
  };

  // The application gets it; without anybody's doing it is visible again at `visible_at`. The same
  // handle again (a FIFO queue repeats an answer) counts once.
  void Add(std::string_view queue, std::string_view handle, base::MonoTime visible_at,
           Ticket ticket);
  size_t size() const { return messages_.size(); }
  size_t former() const { return former_.size(); }
  bool Contains(std::string_view queue, std::string_view handle) const;

  // Is this a handle of a term that is over, or given back: one that the application may not
  // acknowledge any more? Until the time it would have been visible at.
  bool IsFormer(std::string_view queue, std::string_view handle, base::MonoTime now) const;

  // A delete, or a change of its visibility, is on its way. Nothing happens to what is not known.
  void BeginAcknowledge(std::string_view queue, std::string_view handle);
  // It is answered, or never will be: the message is as it was.
  void AcknowledgeFailed(std::string_view queue, std::string_view handle);
  // It is answered: deleted, made visible, or not received any more.
  void Gone(std::string_view queue, std::string_view handle);
  // It is answered: invisible until then.
  void Extended(std::string_view queue, std::string_view handle, base::MonoTime visible_at);

  // What has become visible by itself leaves, and former handles are forgotten.
  void Expire(base::MonoTime now);
  base::MonoTime NextExpiry() const;  // of messages and former handles; Never(): there are none

  // Everything that may be given back now, sorted by queue; each once. Stays in flight until
  // GivenBack.
  std::vector<Place> TakeToGiveBack();
  // The giving back was answered, whatever the answer was.
  void GivenBack(std::string_view queue, std::string_view handle);
  // The term is over: what is in flight is former. Returns how many messages that were.
  size_t EndTerm();

 private:
  // The first 16 bytes of the SHA-256 of both: handles have hundreds of bytes, and a former one is
  // only asked for, never said.
  struct Key {
    uint64_t high = 0;
    uint64_t low = 0;
    auto operator<=>(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const { return static_cast<size_t>(key.high); }
  };
  struct Message {
    Place place;
    base::MonoTime visible_at;
    uint32_t unanswered = 0;
    bool given = false;
    Ticket ticket;
  };
  using Order = std::set<std::pair<base::MonoTime, Key>>;

  static Key KeyOf(std::string_view queue, std::string_view handle);
  Message* Find(const Key& key);
  void Remove(const Key& key);
  void MakeFormer(const Key& key, base::MonoTime until);
  void ForgetFormer(const Key& key);

  const size_t former_max_;
  std::unordered_map<Key, Message, KeyHash> messages_;
  Order order_;  // of messages_
  std::unordered_map<Key, base::MonoTime, KeyHash> former_;
  Order former_order_;
};

}  // namespace leasehold::gate
