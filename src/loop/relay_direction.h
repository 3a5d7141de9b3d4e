// RelayDirection: moves bytes from one descriptor to another, for relay.cc. Small chunks are copied
// through the loop's scratch buffer; a direction that moves bulk gets a pipe and splices, and gives
// the pipe back when it goes quiet. Owns no descriptor but that pipe. Invariant: it reads only when
// nothing is pending, so what it holds is at most one chunk (copying) or one pipe (splicing).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "loop/loop.h"

namespace leasehold::loop {

class RelayDirection {
 public:
  enum class Step {
    kNothing,      // the descriptor had nothing, or no room
    kMoved,        // some bytes went through; `pending()` tells whether all
    kEnded,        // the source's last byte was read
    kReadFailed,   // error_number()
    kWriteFailed,  // error_number()
    kRefused,      // may_pass, or who looked at the first bytes, said no: nothing was sent
  };

  // `look_at_first`: as in RelayOptions.
  RelayDirection(Loop& loop, size_t chunk_bytes, std::string_view first,
                 std::function<bool(std::string_view)> look_at_first = nullptr);
  ~RelayDirection() { ClosePipe(); }
  RelayDirection(const RelayDirection&) = delete;
  RelayDirection& operator=(const RelayDirection&) = delete;

  // Reads one chunk and sends what `to` takes. Only while nothing is pending.
  Step Move(int from, int to, const std::function<bool()>& may_pass);
  // Sends what is pending.
  Step Flush(int to, const std::function<bool()>& may_pass);
  void Drop();  // forgets what is pending: it can no longer be sent
  bool pending() const { return pipe_bytes_ > 0 || buffer_head_ < buffer_.size(); }
  uint64_t sent() const { return sent_; }
  int error_number() const { return error_number_; }

 private:
  Step Copy(int from, int to, const std::function<bool()>& may_pass);
  Step Splice(int from, int to, const std::function<bool()>& may_pass);
  Step FlushPipe(int to);
  Step Send(int to, std::string_view bytes, size_t* taken);
  Step Fail(Step step, int error_number);
  void ChooseWay(size_t chunk);
  void OpenPipe();
  void ClosePipe();
  bool splicing() const { return pipe_[0] >= 0; }

  Loop& loop_;
  size_t chunk_bytes_;
  std::function<bool(std::string_view)> look_at_first_;  // null once it has looked
  std::string buffer_;  // from buffer_head_ on: read (or given as first bytes), not yet sent
  size_t buffer_head_ = 0;
  int pipe_[2] = {-1, -1};
  size_t pipe_capacity_ = 0;
  size_t pipe_bytes_ = 0;
  int streak_ = 0;             // chunks in a row that speak for the other way
  bool pipe_refused_ = false;  // no pipe of a useful size to be had: copy for good
  uint64_t sent_ = 0;
  int error_number_ = 0;
};

}  // namespace leasehold::loop
