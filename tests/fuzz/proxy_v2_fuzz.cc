// The PROXY protocol reader on the peer listener, which a stranger can reach. Asserted of any
// bytes: the verdict on them is the verdict on their pieces, with no word taken back once said (a
// reader that has seen enough of a header to refuse it goes on refusing, and a header found is
// found at the same length however it arrived); kMore is never said beyond the bound; kBad has a
// sentence; the hello lies inside the header; and what a good header says is written and read back
// the same.
#include <string>

#include "fuzz/fuzz_target.h"
#include "proto/proxy_protocol.h"

namespace leasehold::fuzz {
namespace {

using proto::ProxyHeader;
using proto::ProxyRead;

struct Verdict {
  ProxyRead read = ProxyRead::kMore;
  size_t size = 0;
  ProxyHeader header;
};

Verdict Read(std::string_view bytes) {
  Verdict verdict;
  std::string_view why;
  verdict.read = proto::ReadProxyHeader(bytes, &verdict.header, &verdict.size, &why);
  switch (verdict.read) {
    case ProxyRead::kMore:
      CHECK(bytes.size() < proto::kProxyHeaderBytesMax, "waits for more than the bound allows");
      break;
    case ProxyRead::kBad: CHECK(!why.empty(), "refused without a sentence"); break;
    case ProxyRead::kDone:
      CHECK(verdict.size <= bytes.size(), "the header is longer than its bytes");
      CHECK(verdict.size <= proto::kProxyHeaderBytesMax, "the header is longer than the bound");
      if (verdict.header.hello.empty()) break;
      CHECK(verdict.header.hello.data() >= bytes.data() &&
                verdict.header.hello.data() + verdict.header.hello.size() <=
                    bytes.data() + verdict.size,
            "the hello lies outside of the header");
  }
  return verdict;
}

void CheckSame(const ProxyHeader& a, const ProxyHeader& b) {
  CHECK(a.local == b.local, "LOCAL is not the same");
  CHECK(a.source == b.source, "the source is not the same");
  CHECK(a.destination == b.destination, "the destination is not the same");
  CHECK(a.hello == b.hello, "the hello is not the same");
}

// Fronts of the input, as if it had arrived in pieces: all of the fixed part and around the end,
// some between.
void CheckFronts(std::string_view input, const Verdict& whole) {
  bool decided = false;
  base::Random random(Hash(input));
  for (size_t n = 0; n < input.size();
       n += n < 20 || n + 4 > input.size() ? 1 : 1 + random.Below(64)) {
    const std::string exact(input.substr(0, n));
    const Verdict front = Read(exact);
    if (front.read == ProxyRead::kMore) {
      CHECK(!decided, "a verdict was taken back");
      continue;
    }
    decided = true;
    CHECK(front.read == whole.read, "the verdict on a front is not the verdict on the whole");
    if (front.read == ProxyRead::kBad) continue;
    CHECK(front.size == whole.size, "the header's length depends on how it arrived");
    CheckSame(front.header, whole.header);
  }
}

void CheckRoundTrip(const ProxyHeader& header) {
  const std::string written = proto::WriteProxyHeader(header);
  // Another's header without a checksum can be so full that ours with one does not fit.
  if (written.empty()) {
    CHECK(header.hello.size() > proto::kProxyHeaderBytesMax / 2, "a short header is not written");
    return;
  }
  const Verdict again = Read(written);
  CHECK(again.read == ProxyRead::kDone && again.size == written.size(), "ours is not read whole");
  CheckSame(again.header, header);
}

}  // namespace
}  // namespace leasehold::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leasehold::fuzz;  // NOLINT(google-build-using-namespace): this file's own
  const std::string_view input = View(data, size);
  const Verdict whole = Read(input);
  CheckFronts(input, whole);
  if (whole.read == leasehold::proto::ProxyRead::kDone) CheckRoundTrip(whole.header);
  return 0;
}
