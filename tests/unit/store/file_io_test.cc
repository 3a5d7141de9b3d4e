#include "store/file_io.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <set>

namespace leasehold::store {
namespace {

class FileNamesTest : public ::testing::Test {
 protected:
  void SetUp() override {}

  bool FitsADirectory(const std::string& lease_file) {
    const std::string name = lease_file + ".json";
    return name.size() <= 255 && name.find('/') == std::string::npos &&
           name.find('\0') == std::string::npos && name != "." && name != "..";
  }
};

TEST_F(FileNamesTest, PlainNamesStayReadable) {
  EXPECT_EQ(LeaseFileName("leasehold", "orders-eu_1"), "leasehold.orders-eu_1");
}

TEST_F(FileNamesTest, EveryOtherByteIsEscaped) {
  EXPECT_EQ(EncodeFileName("a/b.c%d e"), "a%2Fb%2Ec%25d%20e");
  EXPECT_EQ(EncodeFileName("\xc3\xa4"), "%C3%A4");
  EXPECT_EQ(EncodeFileName(std::string("\0", 1)), "%00");
}

TEST_F(FileNamesTest, NoTwoNamesMeet) {
  const std::vector<std::string> parts = {"",
                                          "a",
                                          "a.b",
                                          ".",
                                          "..",
                                          "%2E",
                                          "a/b",
                                          "a%2Fb",
                                          "A",
                                          std::string(300, 'x'),
                                          std::string(299, 'x') + "y",
                                          std::string(300, '/'),
                                          std::string(60, '/')};
  std::set<std::string> seen;
  for (const std::string& prefix : parts) {
    for (const std::string& lease : parts) {
      const std::string name = LeaseFileName(prefix, lease);
      EXPECT_TRUE(FitsADirectory(name)) << name;
      EXPECT_TRUE(seen.insert(name).second) << prefix << " and " << lease << " meet another";
    }
  }
}

TEST_F(FileNamesTest, ACutNameCannotLookLikeAWholeOne) {
  const std::string cut = LeaseFileName("p", std::string(300, 'x'));
  EXPECT_EQ(std::count(cut.begin(), cut.end(), '.'), 2);
}

TEST_F(FileNamesTest, WhatStaysUntilRepairedIsRefusedAndWhatMayPassIsNot) {
  EXPECT_EQ(FileError("x", EACCES).code, base::ErrorCode::kRefused);
  EXPECT_EQ(FileError("x", ENOSPC).code, base::ErrorCode::kRefused);
  EXPECT_EQ(FileError("x", EROFS).code, base::ErrorCode::kRefused);
  EXPECT_EQ(FileError("x", EIO).code, base::ErrorCode::kUnavailable);
  EXPECT_EQ(FileError("x", EMFILE).code, base::ErrorCode::kUnavailable);
  EXPECT_EQ(FileError("write /d/a", ENOSPC).message,
            "cannot write /d/a: No space left on device; free some space there");
}

}  // namespace
}  // namespace leasehold::store
