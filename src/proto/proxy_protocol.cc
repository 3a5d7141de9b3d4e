#include "proto/proxy_protocol.h"

#include <algorithm>
#include <array>

namespace leasehold::proto {
namespace {

using base::IpEndpoint;
using Family = base::IpEndpoint::Family;

// Section 2.2: signature, version and command, family and transport, length of what follows.
constexpr std::string_view kSignature("\x0D\x0A\x0D\x0A\x00\x0D\x0A\x51\x55\x49\x54\x0A", 12);
constexpr size_t kFixedBytes = 16;
constexpr uint8_t kVersion = 0x20;
constexpr uint8_t kLocal = 0x0;
constexpr uint8_t kProxy = 0x1;
constexpr uint8_t kUnspecified = 0x00;
constexpr uint8_t kTcp4 = 0x11;
constexpr uint8_t kTcp6 = 0x21;
constexpr uint8_t kUnixStream = 0x31;
constexpr size_t kUnixBytes = 216;
// A field: type, length (two bytes), value.
constexpr size_t kFieldHeadBytes = 3;
constexpr uint8_t kCrcField = 0x03;  // PP2_TYPE_CRC32C
constexpr size_t kCrcBytes = 4;
constexpr uint8_t kHelloField = 0xEA;  // of PP2_TYPE_MIN_CUSTOM (0xE0) to _MAX_CUSTOM (0xEF)

uint8_t Byte(std::string_view bytes, size_t at) { return static_cast<uint8_t>(bytes[at]); }

size_t Number(std::string_view bytes, size_t at) {
  return static_cast<size_t>(Byte(bytes, at)) << 8 | Byte(bytes, at + 1);
}

void Append(std::string& to, size_t number) {
  to.push_back(static_cast<char>(number >> 8 & 0xFF));
  to.push_back(static_cast<char>(number & 0xFF));
}

constexpr std::array<uint32_t, 256> CrcTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) {
      value =
          (value & 1) != 0 ? value >> 1 ^ 0x82F63B78U : value >> 1;  // the polynomial, reflected
    }
    table[i] = value;
  }
  return table;
}

constexpr size_t AddressBytes(Family family) {
  return family == Family::kIPv4 ? 4 : family == Family::kIPv6 ? 16 : 0;
}

// Of the address block at the front of `rest`; -1: not a family that a stream can have.
int BlockBytes(uint8_t family) {
  switch (family) {
    case kUnspecified: return 0;
    case kTcp4: return 12;
    case kTcp6: return 36;
    case kUnixStream: return kUnixBytes;
    default: return -1;
  }
}

void TakeAddresses(std::string_view block, Family family, ProxyHeader* header) {
  const size_t size = AddressBytes(family);
  header->source.family = header->destination.family = family;
  std::copy_n(block.begin(), size, header->source.bytes.begin());
  std::copy_n(block.begin() + static_cast<std::ptrdiff_t>(size), size,
              header->destination.bytes.begin());
  header->source.port = static_cast<uint16_t>(Number(block, 2 * size));
  header->destination.port = static_cast<uint16_t>(Number(block, 2 * size + 2));
}

// The checksum is that of the header with the checksum's own bytes zero.
bool CrcIsRight(std::string_view whole, size_t value_at) {
  std::string zeroed(whole);
  std::fill_n(zeroed.begin() + static_cast<std::ptrdiff_t>(value_at), kCrcBytes, '\0');
  const size_t said = Number(whole, value_at) << 16 | Number(whole, value_at + 2);
  return Crc32c(zeroed) == said;
}

// The fields from `at` to the end of `whole`. Empty: all is well; otherwise what is not.
std::string_view ReadFields(std::string_view whole, size_t at, ProxyHeader* header) {
  bool crc_seen = false;
  while (at < whole.size()) {
    if (whole.size() - at < kFieldHeadBytes) return "its last field is cut";
    const uint8_t type = Byte(whole, at);
    const size_t size = Number(whole, at + 1);
    at += kFieldHeadBytes;
    if (whole.size() - at < size) return "a field is longer than the header";
    if (type == kCrcField) {
      if (crc_seen || size != kCrcBytes)
        return "its CRC32C field has no four bytes, or is there twice";
      crc_seen = true;
      if (!CrcIsRight(whole, at)) return "its CRC32C is wrong";
    } else if (type == kHelloField) {
      if (!header->hello.empty() || size == 0) return "its hello is empty, or is there twice";
      header->hello = whole.substr(at, size);
    }
    at += size;
  }
  return {};
}

// What follows the sixteen fixed bytes of `whole`.
std::string_view ReadRest(std::string_view whole, ProxyHeader* header) {
  const uint8_t family = Byte(whole, 13);
  const int block = BlockBytes(family);
  if (block < 0) return "its address family is none of a stream";
  if (whole.size() - kFixedBytes < static_cast<size_t>(block)) return "its addresses are cut";
  // Section 2.2: the addresses of a LOCAL header are to be skipped.
  if (!header->local && family == kTcp4) {
    TakeAddresses(whole.substr(kFixedBytes), Family::kIPv4, header);
  } else if (!header->local && family == kTcp6) {
    TakeAddresses(whole.substr(kFixedBytes), Family::kIPv6, header);
  }
  return ReadFields(whole, kFixedBytes + static_cast<size_t>(block), header);
}

ProxyRead Bad(std::string_view sentence, std::string_view* why) {
  *why = sentence;
  return ProxyRead::kBad;
}

}  // namespace

ProxyRead ReadProxyHeader(std::string_view bytes, ProxyHeader* header, size_t* size,
                          std::string_view* why) {
  *header = {};
  if (bytes.substr(0, kSignature.size()) != kSignature.substr(0, bytes.size())) {
    return Bad("it does not begin with a PROXY protocol v2 header", why);
  }
  if (bytes.size() > 12 && (Byte(bytes, 12) & 0xF0) != kVersion) {
    return Bad("its PROXY protocol header is not of version 2", why);
  }
  if (bytes.size() > 12 && (Byte(bytes, 12) & 0x0F) > kProxy) {
    return Bad("its PROXY protocol command is neither LOCAL nor PROXY", why);
  }
  if (bytes.size() < kFixedBytes) return ProxyRead::kMore;
  const size_t whole = kFixedBytes + Number(bytes, 14);
  if (whole > kProxyHeaderBytesMax) {
    return Bad("its PROXY protocol header is longer than 1024 bytes", why);
  }
  if (bytes.size() < whole) return ProxyRead::kMore;
  header->local = (Byte(bytes, 12) & 0x0F) == kLocal;
  const std::string_view trouble = ReadRest(bytes.substr(0, whole), header);
  if (!trouble.empty()) return Bad(trouble, why);
  *size = whole;
  return ProxyRead::kDone;
}

std::string WriteProxyHeader(const ProxyHeader& header) {
  const Family family = header.source.family == header.destination.family && !header.local
                            ? header.source.family
                            : Family::kNone;
  const uint8_t family_byte = family == Family::kIPv4   ? kTcp4
                              : family == Family::kIPv6 ? kTcp6
                                                        : kUnspecified;
  const size_t address = AddressBytes(family);
  const size_t block = family == Family::kNone ? 0 : 2 * address + 4;
  const size_t hello = header.hello.empty() ? 0 : kFieldHeadBytes + header.hello.size();
  const size_t rest = block + kFieldHeadBytes + kCrcBytes + hello;
  if (kFixedBytes + rest > kProxyHeaderBytesMax) return {};
  std::string bytes(kSignature);
  bytes.push_back(static_cast<char>(kVersion | (header.local ? kLocal : kProxy)));
  bytes.push_back(static_cast<char>(family_byte));
  Append(bytes, rest);
  if (block > 0) {
    for (const IpEndpoint* each : {&header.source, &header.destination}) {
      bytes.append(each->bytes.begin(), each->bytes.begin() + static_cast<std::ptrdiff_t>(address));
    }
    Append(bytes, header.source.port);
    Append(bytes, header.destination.port);
  }
  if (hello > 0) {
    bytes.push_back(static_cast<char>(kHelloField));
    Append(bytes, header.hello.size());
    bytes.append(header.hello);
  }
  bytes.push_back(static_cast<char>(kCrcField));
  Append(bytes, kCrcBytes);
  const size_t crc_at = bytes.size();
  bytes.append(kCrcBytes, '\0');
  const uint32_t crc = Crc32c(bytes);
  for (size_t i = 0; i < kCrcBytes; ++i) {
    bytes[crc_at + i] = static_cast<char>(crc >> (24 - 8 * i) & 0xFF);
  }
  return bytes;
}

uint32_t Crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = CrcTable();
  uint32_t crc = 0xFFFFFFFFU;
  for (const char c : bytes) {
    crc = crc >> 8 ^ kTable[(crc ^ static_cast<uint8_t>(c)) & 0xFF];
  }
  return crc ^ 0xFFFFFFFFU;
}

}  // namespace leasehold::proto
