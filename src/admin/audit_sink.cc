#include "admin/audit_sink.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "admin/audit_file.h"
#include "loop/timer.h"

namespace leasehold::admin {
namespace {

// A line has some 600 bytes and comes with a change of a holder: a thousand that wait are a disk
// that has hung for long, and half a MiB.
constexpr size_t kQueueMax = 1024;
// One line a minute about a condition that lasts: enough to be found, too little to fill a disk.
constexpr base::Duration kLogInterval = base::Duration::Seconds(60);

class AuditSinkImpl final : public AuditSink {
 public:
  AuditSinkImpl(loop::Loop& loop, std::shared_ptr<AuditFile> file,
                std::map<std::string, AuditedTerm> remembered, observe::Metrics& metrics,
                observe::Log& log)
      : loop_(loop),
        log_(log),
        file_(std::move(file)),
        remembered_(std::move(remembered)),
        dropped_(metrics.AddCounter("leasehold_audit_dropped_total",
                                    "Entries of the audit that did not reach its file.", {})),
        trouble_limit_(kLogInterval),
        close_limit_(loop, [this] { Closed(); }) {}

  ~AuditSinkImpl() override { *alive_ = false; }

  void Write(std::string line) override {
    if (closed_) return;
    if (queue_.size() >= kQueueMax) {
      return Dropped(1, std::to_string(kQueueMax) + " lines wait for it already");
    }
    queue_.push_back(std::move(line) + '\n');
    Pump();
  }

  const std::map<std::string, AuditedTerm>& remembered() const override { return remembered_; }

  void Close(base::Duration limit, std::function<void()> done) override {
    on_closed_ = std::move(done);
    if (queue_.empty() && !writing_) return Closed();
    close_limit_.StartAfter(limit);
  }

 private:
  // One batch at a time: the order is kept, and a hung disk takes one thread.
  void Pump() {
    if (writing_ || queue_.empty()) return;
    writing_ = true;
    struct Batch {
      std::vector<std::string> lines;
      AuditFile::Written written;
    };
    auto batch = std::make_shared<Batch>();
    batch->lines.assign(std::make_move_iterator(queue_.begin()),
                        std::make_move_iterator(queue_.end()));
    queue_.clear();
    loop_.Work([batch, file = file_] { batch->written = file->Write(batch->lines); },
               [this, batch, alive = alive_] {
                 if (*alive) Wrote(batch->written);
               });
  }

  void Wrote(const AuditFile::Written& written) {
    writing_ = false;
    if (written.failed > 0) Dropped(written.failed, written.error);
    Pump();
    if (!writing_ && on_closed_) Closed();
  }

  void Dropped(size_t lines, const std::string& why) {
    dropped_.Add(lines);
    uint64_t suppressed = 0;
    if (!trouble_limit_.Allow(loop::Loop::Now(), &suppressed)) return;
    log_.Warn("audit.dropped",
              "entries of the audit are not in audit.file = \"" + file_->name() + "\": " + why +
                  "; GET /v1/audit still has the newest",
              {{"entries", static_cast<uint64_t>(lines)}, {"suppressed", suppressed}});
  }

  void Closed() {
    closed_ = true;
    close_limit_.Stop();
    if (!queue_.empty() || writing_) {
      Dropped(std::max<size_t>(queue_.size(), 1), "it had not taken them when the process ended");
    }
    queue_.clear();
    if (on_closed_) loop_.Post(std::exchange(on_closed_, nullptr));
  }

  loop::Loop& loop_;
  observe::Log& log_;
  std::shared_ptr<AuditFile> file_;  // a worker that hangs keeps its own
  const std::map<std::string, AuditedTerm> remembered_;
  observe::Counter& dropped_;
  observe::RateLimit trouble_limit_;
  loop::Timer close_limit_;
  std::deque<std::string> queue_;
  std::function<void()> on_closed_;
  bool writing_ = false;
  bool closed_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

base::Result<std::unique_ptr<AuditSink>> AuditSink::Open(loop::Loop& loop, const std::string& file,
                                                         std::string_view node_id,
                                                         observe::Metrics& metrics,
                                                         observe::Log& log) {
  base::Result<std::shared_ptr<AuditFile>> opened = AuditFile::Open(file);
  if (!opened) return opened.error();
  std::map<std::string, AuditedTerm> remembered = LastTerms((*opened)->Tail(), node_id);
  return std::unique_ptr<AuditSink>(std::make_unique<AuditSinkImpl>(
      loop, std::move(*opened), std::move(remembered), metrics, log));
}

}  // namespace leasehold::admin
