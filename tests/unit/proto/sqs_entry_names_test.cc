// Batches of SQS's Query protocol: whose entry a parameter is must be beyond doubt, or a receipt
// handle goes on that nobody looked at.
#include <gtest/gtest.h>

#include "proto/sqs.h"

namespace leasehold::proto::sqs {
namespace {

std::variant<ClientRequest, Fault> Parse(const std::string& more) {
  RequestText text;
  text.method = "POST";
  text.path = "/";
  text.content_type = "application/x-www-form-urlencoded";
  text.body =
      "Action=DeleteMessageBatch&QueueUrl=/1/q&DeleteMessageBatchRequestEntry.1.Id=a"
      "&DeleteMessageBatchRequestEntry.1.ReceiptHandle=r1" +
      more;
  return ParseRequest(std::move(text));
}

TEST(SqsEntryNamesTest, AnEntryWithALeadingZeroOrASignIsRefused) {
  for (const std::string number : {"01", "+1", "", " 1", "-1", "1x", "99999999999999999999999"}) {
    std::string name = "&DeleteMessageBatchRequestEntry." + number + ".ReceiptHandle=r2";
    const auto parsed = Parse(name);
    const auto* fault = std::get_if<Fault>(&parsed);
    ASSERT_NE(fault, nullptr) << number;
    EXPECT_EQ(fault->code, "InvalidParameterValue") << number;
    EXPECT_NE(fault->message.find("Entries are counted 1, 2, ..."), std::string::npos);
  }
}

TEST(SqsEntryNamesTest, EntriesInAnyOrderWithGapsAreRead) {
  const auto parsed = Parse(
      "&DeleteMessageBatchRequestEntry.7.ReceiptHandle=r7&DeleteMessageBatchRequestEntry.7.Id=g");
  const auto* request = std::get_if<ClientRequest>(&parsed);
  ASSERT_NE(request, nullptr);
  ASSERT_EQ(request->entries.size(), 2u);
  EXPECT_EQ(request->entries[1].id, "g");
  EXPECT_EQ(request->entries[1].receipt_handle, "r7");
}

TEST(SqsEntryNamesTest, AnothersPrefixIsNoEntry) {
  const auto parsed = Parse("&DeleteMessageBatchRequestEntryX.01.Id=b&Else.01.Id=c");
  ASSERT_TRUE(std::holds_alternative<ClientRequest>(parsed));
  EXPECT_EQ(std::get<ClientRequest>(parsed).entries.size(), 1u);
}

}  // namespace
}  // namespace leasehold::proto::sqs
