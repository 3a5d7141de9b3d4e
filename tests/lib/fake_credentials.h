// FakeCredentials: a provider of credentials that gives what the test says, when it says, and
// remembers what it was told. For tests of whatever signs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aws/credentials.h"
#include "base/time.h"
#include "loop/loop.h"
#include "loop/timer.h"

namespace leasehold::testing {

class FakeCredentials final : public aws::CredentialsProvider {
 public:
  explicit FakeCredentials(loop::Loop& loop)
      : given(Make("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")),
        timer_(loop, [this] { AnswerAll(); }) {}

  static aws::SharedCredentials Make(const std::string& id, const std::string& secret,
                                     const std::string& token = "") {
    return std::make_shared<const aws::Credentials>(
        aws::Credentials{{id, secret, token}, std::nullopt, "test"});
  }

  void Get(Callback done) override {
    ++gets;
    waiting_.push_back(std::move(done));
    if (!held && !timer_.armed()) timer_.StartAfter(base::Duration::Zero());
  }
  void NoteRefused(const aws::SharedCredentials& used) override { refused.push_back(used); }
  std::string Describe() const override { return "the test's own"; }

  // To all who wait, now.
  void AnswerAll() {
    const std::vector<Callback> callbacks = std::exchange(waiting_, {});
    for (const Callback& done : callbacks) {
      if (error) {
        done(*error);
      } else {
        done(given);
      }
    }
  }

  aws::SharedCredentials given;
  std::optional<base::Error> error;  // given instead
  bool held = false;                 // nobody is answered until AnswerAll
  int gets = 0;
  std::vector<aws::SharedCredentials> refused;

 private:
  std::vector<Callback> waiting_;
  loop::Timer timer_;
};

}  // namespace leasehold::testing
