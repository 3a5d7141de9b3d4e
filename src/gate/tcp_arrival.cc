#include "gate/tcp_arrival.h"

#include <utility>

#include "loop/socket_facts.h"

namespace leasehold::gate {

TcpArrival::TcpArrival(Owner& owner, loop::Loop& loop, int fd, std::string sidecar)
    : owner_(owner),
      stream_(loop::AdoptSocket(loop, fd, std::move(sidecar))),
      deadline_(loop, [this] { owner_.OnArrival(*this, End::kSilent, {}); }) {
  stream_->SetListener(this);
  stream_->SetKeepAlive(kPeerProbePeriod);
  stream_->StartReading();
  deadline_.StartAfter(kPeerTimeout);
}

void TcpArrival::OnData(std::span<const char> bytes) {
  received_.append(bytes.data(), bytes.size());
  std::string_view why;
  switch (proto::ReadProxyHeader(received_, &header_, &header_bytes_, &why)) {
    case proto::ProxyRead::kMore: return;
    case proto::ProxyRead::kBad: return owner_.OnArrival(*this, End::kStranger, why);
    case proto::ProxyRead::kDone: break;
  }
  stream_->StopReading();
  deadline_.Stop();
  owner_.OnArrival(*this, End::kHeader, {});
}

std::string TcpArrival::Client() const { return loop::EndpointText(header_.source); }

int TcpArrival::Detach() { return stream_->queued() > 0 ? -1 : stream_->Detach(); }

}  // namespace leasehold::gate
