// PROXY protocol v2: what is written is what the format says, byte for byte; what is read is
// exactly one header, in whatever pieces, and nothing past the end.
#include "proto/proxy_protocol.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/random.h"

namespace leasehold::proto {
namespace {

using Family = base::IpEndpoint::Family;

class ProxyProtocolTest : public ::testing::Test {
 protected:
  static base::IpEndpoint V4(uint8_t last, uint16_t port) {
    return {Family::kIPv4, {192, 0, 2, last}, port};
  }
  static base::IpEndpoint V6(uint8_t last, uint16_t port) {
    return {Family::kIPv6, {0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last}, port};
  }
  static ProxyHeader Header(const base::IpEndpoint& from, const base::IpEndpoint& to,
                            std::string_view hello) {
    ProxyHeader header;
    header.source = from;
    header.destination = to;
    header.hello = hello;
    return header;
  }
  // The sixteen fixed bytes, and what follows with its true length.
  static std::string Raw(uint8_t command, uint8_t family, const std::string& rest) {
    std::string bytes("\r\n\r\n\0\r\nQUIT\n", 12);
    bytes += static_cast<char>(command);
    bytes += static_cast<char>(family);
    bytes += static_cast<char>(rest.size() >> 8);
    bytes += static_cast<char>(rest.size() & 0xFF);
    return bytes + rest;
  }
  // Reads from a buffer of exactly that size, so that the sanitizers see a byte read past it.
  ProxyRead Read(const std::string& bytes) {
    copy_ = std::make_unique<char[]>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), copy_.get());
    return ReadProxyHeader({copy_.get(), bytes.size()}, &header_, &size_, &why_);
  }

  std::unique_ptr<char[]> copy_;
  ProxyHeader header_;
  size_t size_ = 0;
  std::string_view why_;
};

TEST_F(ProxyProtocolTest, TheChecksumIsThatOfTheStandard) {
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAU) << "RFC 3720, B.4";
  EXPECT_EQ(Crc32c(""), 0U);
}

TEST_F(ProxyProtocolTest, AnIPv4HeaderIsByteForByteWhatTheFormatSays) {
  const std::string bytes = WriteProxyHeader(Header(V4(7, 51234), V4(1, 443), "hi"));
  const std::string front = Raw(0x21, 0x11,
                                std::string("\xC0\x00\x02\x07\xC0\x00\x02\x01\xC8\x22\x01\xBB"
                                            "\xEA\x00\x02hi\x03\x00\x04",
                                            20) +
                                    std::string(4, '\0'));
  ASSERT_EQ(bytes.size(), front.size());
  EXPECT_EQ(bytes.substr(0, bytes.size() - 4), front.substr(0, front.size() - 4));
  const uint32_t crc = Crc32c(front);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(static_cast<uint8_t>(bytes[bytes.size() - 4 + i]), crc >> (24 - 8 * i) & 0xFF);
  }
}

TEST_F(ProxyProtocolTest, WhatIsWrittenIsReadAgainForEveryKindOfAddress) {
  const base::IpEndpoint pairs[][2] = {
      {V4(7, 51234), V4(1, 443)}, {V6(7, 1), V6(1, 65535)}, {{}, {}}};
  for (const auto& pair : pairs) {
    const std::string bytes = WriteProxyHeader(Header(pair[0], pair[1], "hello"));
    ASSERT_EQ(Read(bytes + "client"), ProxyRead::kDone) << why_;
    EXPECT_EQ(size_, bytes.size());
    EXPECT_EQ(header_.source, pair[0]);
    EXPECT_EQ(header_.destination, pair[1]);
    EXPECT_EQ(header_.hello, "hello");
    EXPECT_FALSE(header_.local);
  }
}

TEST_F(ProxyProtocolTest, LocalCarriesTheHelloAndNoAddress) {
  ProxyHeader header = Header(V4(7, 1), V4(1, 2), "hello");
  header.local = true;
  ASSERT_EQ(Read(WriteProxyHeader(header)), ProxyRead::kDone);
  EXPECT_TRUE(header_.local);
  EXPECT_EQ(header_.source.family, Family::kNone);
  EXPECT_EQ(header_.hello, "hello");
}

TEST_F(ProxyProtocolTest, AddressesOfTwoFamiliesAreNotSaid) {
  ASSERT_EQ(Read(WriteProxyHeader(Header(V4(7, 1), V6(1, 2), "hello"))), ProxyRead::kDone);
  EXPECT_EQ(header_.source.family, Family::kNone);
}

TEST_F(ProxyProtocolTest, EveryFrontOfAHeaderAsksForMore) {
  const std::string bytes = WriteProxyHeader(Header(V6(7, 51234), V6(1, 443), "hello"));
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_EQ(Read(bytes.substr(0, n)), ProxyRead::kMore) << n << " bytes: " << why_;
  }
  EXPECT_EQ(Read(bytes), ProxyRead::kDone);
}

TEST_F(ProxyProtocolTest, AnythingElseIsRefusedAtItsFirstWrongByte) {
  EXPECT_EQ(Read("G"), ProxyRead::kBad);
  EXPECT_EQ(Read("PROXY TCP4 192.0.2.7 192.0.2.1 1 2\r\n"), ProxyRead::kBad);
  EXPECT_EQ(Read(std::string("\r\n\r\n\0\r\nQUIT\n\x11", 13)), ProxyRead::kBad) << "version 1";
  EXPECT_EQ(Read(std::string("\r\n\r\n\0\r\nQUIT\n\x22", 13)), ProxyRead::kBad) << "command 2";
  EXPECT_NE(why_.find("command"), std::string_view::npos) << why_;
}

TEST_F(ProxyProtocolTest, AHeaderLongerThanTheLimitIsRefusedFromItsLengthAlone) {
  std::string bytes = Raw(0x21, 0x00, std::string(kProxyHeaderBytesMax - 16 + 1, '\x04'));
  EXPECT_EQ(Read(bytes.substr(0, 16)), ProxyRead::kBad);
  EXPECT_NE(why_.find("1024"), std::string_view::npos) << why_;
}

TEST_F(ProxyProtocolTest, AHelloThatDoesNotFitIsNotWritten) {
  const std::string most(kProxyHeaderBytesMax - 16 - 12 - 3 - 7, 'x');
  const std::string bytes = WriteProxyHeader(Header(V4(1, 1), V4(2, 2), most));
  EXPECT_EQ(bytes.size(), kProxyHeaderBytesMax);
  EXPECT_EQ(Read(bytes), ProxyRead::kDone);
  EXPECT_EQ(WriteProxyHeader(Header(V4(1, 1), V4(2, 2), most + "x")), "");
}

TEST_F(ProxyProtocolTest, AByteThatChangedOnTheWayIsNoticed) {
  const std::string whole = WriteProxyHeader(Header(V4(7, 51234), V4(1, 443), "hello"));
  for (size_t i = 16; i < whole.size(); ++i) {
    std::string bytes = whole;
    bytes[i] = static_cast<char>(bytes[i] ^ 0x10);
    const ProxyRead read = Read(bytes);
    // A type that changed may hide the checksum or the hello, and is then a field nobody knows.
    EXPECT_TRUE(read == ProxyRead::kBad || header_.hello.empty() || i == whole.size() - 7) << i;
  }
}

TEST_F(ProxyProtocolTest, FieldsOfOthersArePassedOver) {
  const std::string noop("\x04\x00\x00", 3);
  const std::string alpn("\x01\x00\x02h2", 5);
  const std::string hello("\xEA\x00\x05hello", 8);
  ASSERT_EQ(Read(Raw(0x20, 0x00, alpn + noop + hello + noop)), ProxyRead::kDone) << why_;
  EXPECT_EQ(header_.hello, "hello");
}

TEST_F(ProxyProtocolTest, AUnixSocketOfAnotherSenderHasNoAddressForUs) {
  ASSERT_EQ(Read(Raw(0x21, 0x31, std::string(216, 'p'))), ProxyRead::kDone) << why_;
  EXPECT_EQ(header_.source.family, Family::kNone);
  EXPECT_EQ(header_.hello, "");
}

TEST_F(ProxyProtocolTest, AddressesOfALocalHeaderAreSkippedAsTheFormatSays) {
  const std::string hello("\xEA\x00\x02hi", 5);
  ASSERT_EQ(Read(Raw(0x20, 0x11, std::string(12, '\x01') + hello)), ProxyRead::kDone) << why_;
  EXPECT_EQ(header_.source.family, Family::kNone);
  EXPECT_EQ(header_.hello, "hi");
}

TEST_F(ProxyProtocolTest, WhatIsCutOrDoubledInsideIsRefused) {
  const std::string hello("\xEA\x00\x02hi", 5);
  const std::string bad[] = {
      Raw(0x21, 0x11, std::string(11, '\0')),              // an address too short
      Raw(0x21, 0x21, std::string(35, '\0')),              //
      Raw(0x21, 0x12, std::string(12, '\0')),              // datagrams
      Raw(0x21, 0x41, std::string(12, '\0')),              // no such family
      Raw(0x21, 0x00, std::string("\xEA\x00", 2)),         // a field's head
      Raw(0x21, 0x00, std::string("\xEA\x00\x03hi", 5)),   // a field's value
      Raw(0x21, 0x00, std::string("\xEA\x00\x00", 3)),     // an empty hello
      Raw(0x21, 0x00, hello + hello),                      // two
      Raw(0x21, 0x00, std::string("\x03\x00\x02xx", 5)),   // a checksum of two bytes
      Raw(0x21, 0x00, std::string("\x03\x00\x04xxxx", 7))  // a wrong one
  };
  for (const std::string& bytes : bad) {
    EXPECT_EQ(Read(bytes), ProxyRead::kBad) << &bytes - bad;
    EXPECT_NE(why_, "");
  }
}

TEST_F(ProxyProtocolTest, DamagedHeadersEndInAnOrderlyWayWhateverTheirPieces) {
  const std::string whole = WriteProxyHeader(Header(V4(7, 51234), V4(1, 443), "1 gate=a to=b"));
  base::Random random(4711);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = whole + "client";
    for (uint64_t hits = 1 + random.Below(4); hits > 0; --hits) {
      const size_t at = static_cast<size_t>(random.Below(bytes.size()));
      bytes[at] = static_cast<char>(random.Below(256));
    }
    bytes.resize(static_cast<size_t>(random.Below(bytes.size() + 1)));
    const ProxyRead all = Read(bytes);
    if (all == ProxyRead::kDone) {
      EXPECT_LE(size_, bytes.size());
    }
    // Once it is done or bad, it was so for every longer piece, and asked for more before.
    const size_t cut = static_cast<size_t>(random.Below(bytes.size() + 1));
    const ProxyRead front = Read(bytes.substr(0, cut));
    if (front != ProxyRead::kMore) {
      EXPECT_EQ(front, all) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace leasehold::proto
