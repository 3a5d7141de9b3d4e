#include "moves/load.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "moves/load_connection.h"

namespace leasehold::moves {
namespace {

constexpr base::Duration kSweepInterval = base::Duration::Seconds(1);

}  // namespace

Load::Load(loop::Loop& loop, LoadOptions options)
    : loop_(loop),
      options_(std::move(options)),
      tick_(loop, [this] { Tick(); }),
      sweep_(loop, [this] { Sweep(); }),
      idle_(options_.targets.size()),
      open_(options_.targets.size()),
      spare_at_(options_.targets.size()) {}
Load::~Load() = default;

void Load::Start() {
  begin_ = loop::Loop::Now();
  sweep_.StartAfter(kSweepInterval);
  Tick();
}

// Everything that is due goes; the next wake-up is when the next one is.
void Load::Tick() {
  const base::MonoTime now = loop::Loop::Now();
  const auto at = [&](uint64_t number) {
    return begin_ +
           base::Duration::Nanos(static_cast<int64_t>(number * 1'000'000'000ULL / options_.rate));
  };
  while (!finishing_ && at(next_) <= now) {
    Sent& request = record_.emplace_back();
    request.id = options_.first_id + next_;
    request.scheduled = at(next_).nanos();
    Send(&request, next_ % options_.targets.size());
    ++next_;
  }
  if (!finishing_) tick_.StartAt(at(next_));
}

void Load::Send(Sent* request, size_t target) {
  request->target = target;
  auto& idle = idle_[target];
  const bool spare = open_[target] < kKept && loop_.CachedNow() >= spare_at_[target];
  if (idle.empty() || spare) {
    ++open_[target];
    connections_.push_back(std::make_unique<LoadConnection>(*this, target, request));
    return;
  }
  LoadConnection* connection = idle.front();
  idle.pop_front();
  connection->Send(request);
}

void Load::Refused(LoadConnection* connection, Sent* request) {
  Bury(connection, connection->target());
  spare_at_[connection->target()] = loop_.CachedNow() + kRefusedPause;
  ++request->refused;
  if (request->refused >= options_.targets.size()) return Done(request, "refused");
  Send(request, (request->target + 1) % options_.targets.size());
}

void Load::Done(Sent* request, std::string_view result) {
  request->done = loop::Loop::Now().nanos();
  request->result = result;
  ++(result == "ok" ? answered_ : failed_);
  CheckFinished();
}

void Load::Idle(LoadConnection* connection, size_t target) {
  idle_[target].push_back(connection);
  if (open_[target] <= kKept) return;
  LoadConnection* spare = idle_[target].front();
  idle_[target].pop_front();
  spare->End();
}

void Load::Bury(LoadConnection* connection, size_t target) {
  std::erase(idle_[target], connection);
  --open_[target];
  loop_.Post([this, connection] {
    std::erase_if(connections_, [&](const auto& each) { return each.get() == connection; });
  });
}

void Load::Sweep() {
  const base::MonoTime now = loop::Loop::Now();
  // By number: ending one may add others at the end.
  for (size_t i = 0; i < connections_.size(); ++i) connections_[i]->OnSweep(now);
  std::printf("scheduled %llu answered %llu failed %llu connections %zu\n",
              static_cast<unsigned long long>(next_), static_cast<unsigned long long>(answered_),
              static_cast<unsigned long long>(failed_), connections_.size());
  std::fflush(stdout);
  sweep_.StartAfter(kSweepInterval);
}

void Load::Finish(std::function<void()> done) {
  finishing_ = true;
  tick_.Stop();
  finished_ = std::move(done);
  CheckFinished();
}

void Load::CheckFinished() {
  if (!finishing_ || answered_ + failed_ < next_ || !finished_) return;
  loop_.Post(std::exchange(finished_, nullptr));
}

bool Load::WriteRecord() const {
  std::FILE* out = std::fopen(options_.out.c_str(), "w");
  if (out == nullptr) {
    std::perror(options_.out.c_str());
    return false;
  }
  for (const Sent& each : record_) {
    const Work work = WorkOf(each.id);
    std::fprintf(out, "%llu %s/%zu%s %zu %lld %lld %lld %s %s %s %u\n",
                 static_cast<unsigned long long>(each.id), work.post ? "POST" : "GET", work.body,
                 work.chunked ? "/chunked" : "", each.target,
                 static_cast<long long>(each.scheduled), static_cast<long long>(each.sent),
                 static_cast<long long>(each.done), each.result.c_str(),
                 each.app.empty() ? "-" : each.app.c_str(),
                 each.token.empty() ? "0" : each.token.c_str(), each.refused);
  }
  return std::fclose(out) == 0;
}

}  // namespace leasehold::moves
