// credential_process: real commands, well-behaved and not.
#include "aws/source_process.h"

#include <gtest/gtest.h>

#include "source_fixture.h"

namespace leasehold::aws {
namespace {

using base::ErrorCode;

class SourceProcessTest : public SourceFixture {
 protected:
  void Run(const std::string& command) {
    Fetch([&](FetchDone done) {
      return FetchFromProcess(context_, command, "profile \"p\"", std::move(done));
    });
  }
  std::string Script(const std::string& text) {
    const std::string path = WriteFile("script", "#!/bin/sh\n" + text + "\n");
    chmod(path.c_str(), 0700);
    return path;
  }
  static std::string Printed(const std::string& json) { return "cat <<'END'\n" + json + "\nEND"; }
  static std::string Json(const std::string& version, const std::string& more) {
    return "{\"Version\":" + version + ",\"AccessKeyId\":\"AKIAP\",\"SecretAccessKey\":\"" +
           kSecret + "\"" + more + "}";
  }
};

TEST_F(SourceProcessTest, WhatItPrintsIsTakenWithAndWithoutTokenAndExpiry) {
  Run(Script(Printed(Json("1", ""))));
  ExpectKey("AKIAP");
  EXPECT_FALSE((*result_)->credentials.expires_unix_ms.has_value());
  EXPECT_EQ((*result_)->credentials.source, "credential_process of profile \"p\"");
  Run(Script(Printed(Json("1",
                          ",\"SessionToken\":\"T\",\"Expiration\":\"2099-01-01T01:00:00.5"
                          "+01:00\""))));
  ExpectKey("AKIAP");
  EXPECT_EQ((*result_)->credentials.key.session_token, "T");
  EXPECT_EQ((*result_)->credentials.expires_unix_ms, 4070908800500);
}

TEST_F(SourceProcessTest, ArgumentsAreSplitAsAShellDoesAndStandardErrorIsNoneOfOurs) {
  const std::string script = Script("echo " + std::string(kSecret) +
                                    " >&2\n[ \"$1\" = 'a b' ] && [ \"$#\" = 2 ] || exit "
                                    "9\n" +
                                    Printed(Json("1", "")));
  Run(script + "  \"a b\" c");
  ExpectKey("AKIAP");
}

TEST_F(SourceProcessTest, AFailureTellsTheExitCodeAndNothingOfWhatWasSaid) {
  Run(Script(std::string("echo ") + kSecret + "; echo " + kSecret + " >&2; exit 3"));
  ExpectError(ErrorCode::kRefused, "profile \"p\": credential_process ended with exit code 3");
  Run(Script("kill -9 $$"));
  ExpectError(ErrorCode::kRefused, "was ended by signal 9");
  Run(dir_.File("gone") + " " + kSecret);
  ExpectError(ErrorCode::kRefused, "cannot start");
  Run(std::string("echo '") + kSecret);
  ExpectError(ErrorCode::kRefused, "the quote ' is not closed");
}

TEST_F(SourceProcessTest, OutputThatIsWrongOrEndlessIsRefused) {
  Run(Script(std::string("echo ") + kSecret));
  ExpectError(ErrorCode::kRefused, "no JSON object");
  Run(Script(Printed(Json("2", ""))));
  ExpectError(ErrorCode::kRefused, "Version is not 1");
  Run(Script(Printed(std::string(R"({"Version":1,"SecretAccessKey":")") + kSecret + "\"}")));
  ExpectError(ErrorCode::kInvalid, "without AccessKeyId");
  Run(Script(Printed(Json("1", ",\"Expiration\":\"soon\""))));
  ExpectError(ErrorCode::kInvalid, "an Expiration that is no time");
  Run(Script("head -c 100000 /dev/zero | tr '\\0' x"));
  ExpectError(ErrorCode::kRefused, "printed more than 64KiB");
}

TEST_F(SourceProcessTest, ACommandThatHangsIsKilled) {
  context_.process_timeout = base::Duration::Millis(100);
  Run("sleep 100");
  ExpectError(ErrorCode::kTimeout, "did not end within 100ms and was killed");
}

}  // namespace
}  // namespace leasehold::aws
