#include "client/http_connection.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/check.h"

namespace leasehold::client {
namespace {

using base::Error;
using base::ErrorCode;
using Progress = AnswerReader::Progress;

// Of a body that are given to the stream at once: what a kernel's send buffer on loopback takes
// without waiting, and little to have queued twice when it does not.
constexpr size_t kPieceBytes = size_t{64} * 1024;

}  // namespace

HttpConnection::HttpConnection(std::unique_ptr<loop::Stream> stream, Keeper& keeper)
    : keeper_(keeper), stream_(std::move(stream)) {
  stream_->SetListener(this);
  stream_->StartReading();
}

void HttpConnection::Send(std::string_view head, const HttpRequest& request, User& user) {
  CHECK(user_ == nullptr, "one call at a time uses a connection");
  user_ = &user;
  reusable_ = false;
  untouched_ = true;
  reader_.Expect(request);
  unsent_ = request.body;
  const std::array<std::string_view, 2> pieces = {head, unsent_.substr(0, kPieceBytes)};
  unsent_.remove_prefix(pieces[1].size());
  stream_->Writev(pieces);
  SendMore();
}

void HttpConnection::SendMore() {
  while (!unsent_.empty() && stream_->queued() == 0) {
    const std::string_view piece = unsent_.substr(0, kPieceBytes);
    unsent_.remove_prefix(piece.size());
    stream_->Write(piece);
  }
}

void HttpConnection::OnData(std::span<const char> bytes) {
  if (user_ == nullptr) return keeper_.OnIdleOver(*this);
  untouched_ = false;
  std::string_view input(bytes.data(), bytes.size());
  while (true) {
    switch (reader_.Next(input)) {
      case Progress::kMore: return;
      case Progress::kHead:
      case Progress::kBody: break;
      // Bytes behind the answer are an answer to nothing; of a request that is not sent whole the
      // rest would be taken for the next one.
      case Progress::kComplete: return Answer(input.empty());
      case Progress::kFailed: return Fail(reader_.error());
    }
  }
}

void HttpConnection::OnEnd() {
  if (user_ == nullptr) return keeper_.OnIdleOver(*this);
  if (reader_.Finish() == Progress::kComplete) return Answer(false);
  Fail(reader_.error());
}

void HttpConnection::OnClosed(const Error& error) {
  if (user_ == nullptr) return keeper_.OnIdleOver(*this);
  Fail({error.code == ErrorCode::kTimeout ? ErrorCode::kTimeout : ErrorCode::kClosed,
        error.message});
}

void HttpConnection::Answer(bool in_order) {
  reusable_ = in_order && reader_.keeps_connection() && unsent_.empty() && stream_->queued() == 0;
  unsent_ = {};
  std::exchange(user_, nullptr)->OnAnswer(std::move(reader_.response()));
}

void HttpConnection::Fail(Error why) {
  unsent_ = {};
  std::exchange(user_, nullptr)->OnFailure(std::move(why));
}

}  // namespace leasehold::client
