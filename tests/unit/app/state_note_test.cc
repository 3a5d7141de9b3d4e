// The note of node.state_dir as text: read whole, or not at all.
#include "app/state_note.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace leasehold::app {
namespace {

std::string Why(const std::string& text) {
  const base::Result<StateNote> note = ParseStateNote(text);
  return note.ok() ? "" : note.error().message;
}

// A note whose "leases" are as given.
std::string NoteOf(const std::string& leases) {
  return R"({"format":1,"process_id":"p1","former":[],"leases":)" + leases + "}";
}

TEST(StateNoteTest, ANoteComesBackAsItWent) {
  StateNote note;
  note.process_id = "p3";
  note.former = {"p2", "p1"};
  note.leases["orders"] = {std::numeric_limits<uint64_t>::max(), base::Duration::Seconds(10)};
  note.leases["billing"] = {0, base::Duration::Zero()};
  base::Result<StateNote> back = ParseStateNote(StateNoteText(note));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->process_id, "p3");
  EXPECT_EQ(back->former, note.former);
  ASSERT_EQ(back->leases.size(), 2U);
  EXPECT_EQ(back->leases["orders"].highest_token, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(back->leases["orders"].last_ttl, base::Duration::Seconds(10));
}

// They were taken for no leases at all, and every token was forgotten.
TEST(StateNoteTest, LeasesOfAnotherTypeAreNotTakenForNone) {
  for (const std::string leases : {"[]", "null", R"("")", "0", R"([{"orders":1}])"}) {
    EXPECT_NE(Why(NoteOf(leases)).find("\"leases\" must be an object"), std::string::npos)
        << leases;
  }
}

TEST(StateNoteTest, ALeaseWithoutTokenOrTtlIsAnError) {
  for (const std::string lease :
       {"{}", "7", R"({"highest_token":"7"})", R"({"ttl_ms":10000})",
        R"({"highest_token":"-7","ttl_ms":10000})", R"({"highest_token":7.5,"ttl_ms":10000})",
        R"({"highest_token":"18446744073709551616","ttl_ms":10000})"}) {
    EXPECT_NE(Why(NoteOf("{\"orders\":" + lease + "}")), "") << lease;
  }
}

// A TTL of 292 years and more overflowed.
TEST(StateNoteTest, ATtlThatNoRecordMayHaveIsAnError) {
  for (const std::string ttl_ms : {"-1", "86400001", "9223372036854775807"}) {
    const std::string why =
        Why(NoteOf(R"({"orders":{"highest_token":"7","ttl_ms":)" + ttl_ms + "}}"));
    EXPECT_NE(why.find("ttl_ms " + ttl_ms), std::string::npos) << why;
  }
}

TEST(StateNoteTest, WhoWroteItMustBeNamedAndFormerMustBeNames) {
  EXPECT_NE(Why(R"({"format":1,"former":[],"leases":{}})"), "");
  EXPECT_NE(Why(R"({"format":1,"process_id":"","leases":{}})"), "");
  EXPECT_NE(Why(R"({"format":1,"process_id":"p1","former":"p0","leases":{}})"), "");
  EXPECT_NE(Why(R"({"format":1,"process_id":"p1","former":[7],"leases":{}})"), "");
  EXPECT_EQ(Why(R"({"format":1,"process_id":"p1","leases":{}})"), "");
}

TEST(StateNoteTest, AnotherFormatIsRefused) {
  for (const std::string format : {"0", "2", R"("1")", "1.0"}) {
    EXPECT_NE(Why(R"({"format":)" + format + R"(,"process_id":"p1","leases":{}})"), "") << format;
  }
}

TEST(StateNoteTest, ANameIsShownPrintable) {
  const std::string why = Why(NoteOf(R"({"a\nb":{}})"));
  EXPECT_NE(why.find("a\\x0ab"), std::string::npos) << why;
}

}  // namespace
}  // namespace leasehold::app
