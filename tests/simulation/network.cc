#include "simulation/network.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "simulation/node.h"
#include "simulation/world.h"

namespace leasehold::simulation {
namespace {

constexpr uint64_t kStream = 0x6e657477;  // this part's own stream of random numbers

bool ChangedHands(const Register::Entry* before, const lease::Record& after) {
  return before == nullptr || before->record.token != after.token ||
         before->record.state != after.state || before->record.process_id != after.process_id;
}

}  // namespace

Network::Network(World& world)
    : world_(world),
      random_(world.scenario().seed ^ (kStream << 32)),
      cut_off_until_(world.scenario().nodes.size(), 0),
      replies_to_lose_(cut_off_until_.size(), 0),
      unclear_(cut_off_until_.size(), 0) {}

TrueNs Network::Leg() {
  const StorePlan& plan = world_.scenario().store;
  if (!world_.faults_over() && random_.Unit() < plan.tail) {
    return static_cast<TrueNs>(random_.Unit() * static_cast<double>(plan.tail_max));
  }
  if (plan.steady) return plan.typical;
  const double scale = static_cast<double>(plan.typical);
  return 1 + static_cast<TrueNs>(std::min(-std::log(1 - random_.Unit()), 8.0) * scale);
}

// Nothing sent before the faults end arrives later than that: after it the world is at rest.
TrueNs Network::Capped(TrueNs at) const {
  if (world_.faults_over()) return at;
  return std::max(world_.now() + 1, std::min(at, world_.scenario().faults_end));
}

bool Network::Refusing() const { return world_.now() < refuses_until_; }

Network::Way Network::Draw(int node) {
  const StorePlan& plan = world_.scenario().store;
  const TrueNs now = world_.now();
  Way way;
  way.arrives = Capped(now + Leg());
  const TrueNs cut_off = cut_off_until_[static_cast<size_t>(node)];
  if (now < cut_off) {
    way.fate = random_.Below(2) == 0 ? Fate::kLost : Fate::kResets;
    return way;
  }
  if (now < away_until_) {
    if (away_ == Away::kUnreachable) {
      way.fate = Fate::kResets;
    } else {  // a frozen store takes requests in and serves them when it wakes
      way.arrives = Capped(away_until_ + Leg());
      if (random_.Below(4) == 0) way.fate = Fate::kLost;
    }
    return way;
  }
  if (world_.faults_over()) return way;
  if (random_.Unit() < plan.lost_request) way.fate = Fate::kLost;
  if (random_.Unit() < plan.lost_reply) way.reply_lost = true;
  if (random_.Unit() < plan.reset) {
    way.resets = true;
    if (random_.Below(2) == 0) way.fate = Fate::kResets;
  }
  return way;
}

std::shared_ptr<const lease::ReadAnswer> Network::Look(uint64_t op) {
  auto answer = std::make_shared<lease::ReadAnswer>();
  answer->op = op;
  if (Refusing()) {
    answer->outcome = lease::ReadAnswer::Outcome::kRefused;
    answer->error = "the store refuses user \"orders\": NOPERM";
    return answer;
  }
  const Register::Entry* entry = world_.store().current();
  if (entry == nullptr) {
    answer->outcome = lease::ReadAnswer::Outcome::kAbsent;
    return answer;
  }
  answer->outcome = lease::ReadAnswer::Outcome::kRecord;
  answer->record = entry->record;
  answer->version = entry->version;
  const Process* named = world_.FindProcess(entry->record.process_id);
  const bool dead = named != nullptr && !named->alive;
  answer->holder_dead = dead && world_.scenario().store.proves_death;
  return answer;
}

void Network::Read(const Process& from, uint64_t op, ReadDone done) {
  const Way way = Draw(from.node);
  if (way.fate == Fate::kResets || way.resets) {
    auto reset = std::make_shared<lease::ReadAnswer>();
    reset->op = op;
    reset->error = "connection to the store was reset";
    world_.At(way.arrives, [done = std::move(done), reset] { done(reset); });
    return;
  }
  if (way.fate == Fate::kLost) return;
  world_.At(way.arrives, [this, op, done = std::move(done), way]() mutable {
    auto answer = Look(op);
    if (way.reply_lost) return;
    world_.At(Capped(world_.now() + Leg()),
              [done = std::move(done), answer = std::move(answer)] { done(answer); });
  });
}

void Network::CompareAndSet(const Process& from, const lease::CasEffect& effect,
                            base::MonoTime decided, CasDone done) {
  const auto node = static_cast<size_t>(from.node);
  Way way = Draw(from.node);
  if (unclear_[node] > 0) {
    --unclear_[node];
    way.fate = Fate::kResets;
  } else if (replies_to_lose_[node] > 0) {
    --replies_to_lose_[node];
    way.reply_lost = true;
  }
  const bool seen_as_reset = way.fate == Fate::kResets || way.resets;
  if (seen_as_reset) {
    auto reset = std::make_shared<lease::CasAnswer>();
    reset->op = effect.op;
    reset->error = "connection to the store was reset";
    world_.At(Capped(world_.now() + Leg()), [done, reset] { done(reset); });
  }
  if (way.fate != Fate::kArrives) return;
  const TrueNs sent_at = world_.now();
  const bool told = !seen_as_reset && !way.reply_lost;
  world_.At(way.arrives, [this, &from, effect = std::make_shared<const lease::CasEffect>(effect),
                          done = std::move(done), told, sent_at, decided]() mutable {
    auto answer = std::make_shared<lease::CasAnswer>();
    answer->op = effect->op;
    Serve(from, *effect, sent_at, decided, *answer);
    if (!told) return;
    world_.At(Capped(world_.now() + Leg()),
              [done = std::move(done), answer = std::move(answer)] { done(answer); });
  });
}

void Network::Serve(const Process& from, const lease::CasEffect& effect, TrueNs sent_at,
                    base::MonoTime sent, lease::CasAnswer& answer) {
  const StorePlan& plan = world_.scenario().store;
  if (Refusing()) {
    answer.outcome = lease::CasAnswer::Outcome::kRefused;
    answer.error = "the store refuses user \"orders\": NOPERM";
    return;
  }
  const Register::Entry* before = world_.store().current();
  std::optional<lease::Record> replaced;
  if (before != nullptr) replaced = before->record;
  const bool changed_hands = ChangedHands(before, effect.record);
  if (!world_.store().CompareAndSet(world_.now(), effect.expected, effect.record)) {
    answer.outcome = lease::CasAnswer::Outcome::kConflict;
    FillConflict(answer);
    return;
  }
  answer.outcome = lease::CasAnswer::Outcome::kApplied;
  answer.version = world_.store().current()->version;
  if (world_.tracing()) world_.Trace("store", "took [" + answer.version + "]");
  world_.Tell(&Checker::Applied,
              {from, world_.now(), effect, answer.version, replaced, sent, sent_at});
  if (!world_.faults_over() && random_.Unit() < plan.replicas_missing) {
    answer.outcome = lease::CasAnswer::Outcome::kAmbiguous;
    answer.version.clear();
    answer.error = "0 of 1 replicas confirmed the write";
  }
  ScheduleHints(changed_hands);
}

void Network::FillConflict(lease::CasAnswer& answer) {
  if (random_.Unit() < world_.scenario().store.conflict_bare) return;
  const Register::Entry* entry = world_.store().current();
  answer.absent = entry == nullptr;
  if (entry == nullptr) return;
  answer.record = entry->record;
  answer.version = entry->version;
}

void Network::ScheduleHints(bool changed_hands) {
  const bool lossy = !world_.faults_over() && world_.scenario().kind == Kind::kStorm;
  for (const auto& node : world_.nodes()) {
    if (!node->plan().push || !node->push_up()) continue;
    if (lossy && random_.Below(20) == 0) continue;  // lost, unnoticed
    Node* to = node.get();
    world_.After(Leg(), [to, changed_hands] { to->Hint(changed_hands); });
  }
}

void Network::StoreAway(TrueNs until, Away how) {
  away_until_ = std::max(away_until_, until);
  away_ = how;
}
void Network::CutOff(int node, TrueNs until) { cut_off_until_[static_cast<size_t>(node)] = until; }
void Network::StoreRefuses(TrueNs until) { refuses_until_ = until; }
void Network::LoseReplies(int node, int count) {
  replies_to_lose_[static_cast<size_t>(node)] = count;
}
void Network::AnswerUnclear(int node, int count) { unclear_[static_cast<size_t>(node)] = count; }
void Network::EndSpells() {
  away_until_ = refuses_until_ = 0;
  cut_off_until_.assign(cut_off_until_.size(), 0);
}

void Network::LoseWrites(size_t count) {
  const TrueNs restored_from = world_.store().LoseWrites(count);
  LossFact fact{world_.now(), restored_from, std::nullopt};
  const Register::Entry* entry = world_.store().current();
  if (entry != nullptr) fact.restored = entry->record;
  if (world_.tracing()) {
    world_.Trace("store", "restarted from an older state: " +
                              (entry == nullptr ? std::string("absent") : entry->version));
  }
  world_.Tell(&Checker::LostWrites, fact);
}

}  // namespace leasehold::simulation
