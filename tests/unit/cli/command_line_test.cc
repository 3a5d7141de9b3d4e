// Arguments become values; what is wrong is a usage error before anything is tried; help suffices.
#include "cli/command_line.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/exit_code.h"

namespace leasehold::cli {
namespace {

using Arguments = std::vector<std::string>;

class CommandLineTest : public ::testing::Test {
 protected:
  static CommandLine Good(const Arguments& arguments) {
    const ParsedCommandLine parsed = ParseCommandLine(arguments);
    EXPECT_TRUE(parsed.command.has_value()) << parsed.err;
    return parsed.command.value_or(CommandLine{});
  }
  static void Bad(const Arguments& arguments, const std::string& part) {
    const ParsedCommandLine parsed = ParseCommandLine(arguments);
    EXPECT_FALSE(parsed.command.has_value());
    EXPECT_EQ(parsed.exit_code, kUsage);
    EXPECT_NE(parsed.err.find(part), std::string::npos) << parsed.err;
  }
};

TEST_F(CommandLineTest, RunTakesSidecarConfUnlessToldOtherwise) {
  EXPECT_EQ(Good({"run"}).config, "sidecar.conf");
  EXPECT_FALSE(Good({"run"}).config_given);
  const CommandLine command = Good({"run", "-c", "/etc/x.conf"});
  EXPECT_EQ(command.verb, Verb::kRun);
  EXPECT_EQ(command.config, "/etc/x.conf");
  EXPECT_TRUE(command.config_given);
}

TEST_F(CommandLineTest, StepDownWaitsAndTakesBackUnlessToldOtherwise) {
  const CommandLine plain = Good({"step-down"});
  EXPECT_EQ(plain.verb, Verb::kStepDown);
  EXPECT_TRUE(plain.wait_for_outcome);
  EXPECT_TRUE(plain.take_back);
  EXPECT_FALSE(plain.yes);
  EXPECT_EQ(plain.timeout, base::Duration::Seconds(120));
  EXPECT_FALSE(plain.expected_node_id.has_value());
  const CommandLine full =
      Good({"step-down", "orders", "--expected-node-id", "node-a", "--expected-token", "7",
            "--no-wait", "--no-take-back", "--yes", "--timeout", "3m", "--json"});
  EXPECT_EQ(full.lease, "orders");
  EXPECT_EQ(full.expected_node_id, "node-a");
  EXPECT_EQ(full.expected_token, 7u);
  EXPECT_FALSE(full.wait_for_outcome);
  EXPECT_FALSE(full.take_back);
  EXPECT_TRUE(full.yes);
  EXPECT_TRUE(full.json);
  EXPECT_EQ(full.timeout, base::Duration::Seconds(180));
  EXPECT_TRUE(Good({"step-down", "--wait"}).wait_for_outcome);
}

TEST_F(CommandLineTest, ATokenAloneIsAUsageError) {
  Bad({"step-down", "--expected-token", "7"}, "--expected-token needs --expected-node-id");
}

TEST_F(CommandLineTest, AnEmptyVariableNeverWeakensThePrecondition) {
  Bad({"step-down", "--yes", "--expected-node-id", ""}, "--expected-node-id is given, but empty");
  Bad({"step-down", "--yes", "--expected-node-id", "a", "--expected-token", ""},
      "--expected-token is given, but empty");
  Bad({"step-down", "--yes", ""}, "LEASE is given, but empty");
  Bad({"drained", "--token", ""}, "--token is given, but empty");
}

TEST_F(CommandLineTest, TokensAreWholeNumbersFromOneOn) {
  const Arguments head = {"step-down", "--expected-node-id", "a", "--expected-token"};
  for (const std::string bad : {"0", "-1", "x", "1.0", "007", "18446744073709551616"}) {
    Arguments arguments = head;
    arguments.push_back(bad);
    Bad(arguments, "--expected-token");
  }
  Arguments largest = head;
  largest.push_back("18446744073709551615");
  EXPECT_EQ(Good(largest).expected_token, 18446744073709551615u);
}

TEST_F(CommandLineTest, WaitNeedsAStateItKnows) {
  Bad({"wait"}, "--for is required");
  Bad({"wait", "--for", "ready"}, "ready not in");
  EXPECT_EQ(Good({"wait", "--for", "draining", "--timeout", "250ms"}).timeout,
            base::Duration::Millis(250));
  Bad({"wait", "--for", "active", "--timeout", "30"}, "is not a duration");
  Bad({"wait", "--for", "active", "--timeout", "0s"}, "must be longer than nothing");
}

TEST_F(CommandLineTest, EventsTakesFiltersAPlaceAndFollowsUnlessToldOtherwise) {
  const CommandLine plain = Good({"events"});
  EXPECT_EQ(plain.verb, Verb::kEvents);
  EXPECT_TRUE(plain.follow);
  EXPECT_TRUE(plain.events.empty());
  const CommandLine command = Good({"events", "--lease", "a", "--event", "lease.", "--event",
                                    "gate.opened", "--since", "p.7", "--no-follow", "--json"});
  EXPECT_EQ(command.lease, "a");
  EXPECT_EQ(command.events, (std::vector<std::string>{"lease.", "gate.opened"}));
  EXPECT_EQ(command.since, "p.7");
  EXPECT_FALSE(command.follow);
  EXPECT_TRUE(command.json);
  Bad({"events", "--since", ""}, "empty");
  Bad({"events", "--event", "lease.", "--event", ""}, "empty");
  Bad({"events", "--event", "lease.", "gate."}, "gate.");
}

TEST_F(CommandLineTest, UnknownCommandsAndFlagsAreUsageErrors) {
  Bad({}, "A subcommand is required");
  Bad({"launch"}, "there is no command \"launch\"; `leasehold --help` lists them");
  Bad({"setp-down"}, "did you mean \"step-down\"?");
  Bad({"step-down", "--wait", "--no-wait"}, "excludes");
  Bad({"status", "--colour"}, "--colour");
  Bad({"status", "orders"}, "orders");
}

TEST_F(CommandLineTest, HelpTellsExitCodesAndEachCommandShowsAnExample) {
  const ParsedCommandLine top = ParseCommandLine({"--help"});
  EXPECT_EQ(top.exit_code, kOk);
  EXPECT_NE(top.out.find("Exit codes:"), std::string::npos) << top.out;
  for (const std::string verb :
       {"run", "exec", "check", "status", "describe", "step-down", "wait", "drained", "events"}) {
    EXPECT_NE(top.out.find("\n  " + verb + " "), std::string::npos) << verb;
    const ParsedCommandLine help = ParseCommandLine({verb, "--help"});
    EXPECT_EQ(help.exit_code, kOk);
    EXPECT_NE(help.out.find("Example"), std::string::npos) << help.out;
    EXPECT_NE(help.out.find("  leasehold " + verb), std::string::npos) << help.out;
  }
}

TEST_F(CommandLineTest, WhatStandsBehindTheDashesIsTheCommandsFlagsAndAll) {
  const CommandLine exec =
      Good({"exec", "-c", "a.conf", "--", "worker", "--json", "-c", "b.conf", "--", "x"});
  EXPECT_EQ(exec.verb, Verb::kExec);
  EXPECT_EQ(exec.config, "a.conf");
  EXPECT_FALSE(exec.json);
  EXPECT_EQ(exec.command,
            (std::vector<std::string>{"worker", "--json", "-c", "b.conf", "--", "x"}));
  Bad({"exec"}, "behind \"--\"");
  Bad({"exec", "--"}, "behind \"--\"");
  Bad({"exec", "worker"}, "worker");
  EXPECT_TRUE(Good({"run"}).command.empty());
}

TEST_F(CommandLineTest, ACommandWithoutTheDashesIsToldWhereItStands) {
  Bad({"exec", "-c", "exec.conf", "sh", "-c", "echo hi"},
      "the command stands behind \"--\", like: leasehold exec -c exec.conf -- sh -c 'echo hi'");
  Bad({"exec", "--config=exec.conf", "./worker", "--queue", "x"},
      "leasehold exec --config=exec.conf -- ./worker --queue x");
  Bad({"exec", "echo", "it's"}, R"(exec -- echo 'it'\''s')");
  Bad({"exec", "worker", "--", "--queue"}, "the command stands behind \"--\"");
  Bad({"exec", "--quiet", "./worker"}, "--quiet");
  EXPECT_NE(ParseCommandLine({"exec", "--help"})
                .out.find("leasehold exec [OPTIONS] -- COMMAND [ARGS...]"),
            std::string::npos);
}

TEST_F(CommandLineTest, VersionIsToldBothWays) {
  EXPECT_EQ(Good({"version"}).verb, Verb::kVersion);
  const ParsedCommandLine flag = ParseCommandLine({"--version"});
  EXPECT_EQ(flag.exit_code, kOk);
  EXPECT_EQ(flag.out.rfind("leasehold ", 0), 0u) << flag.out;
}

}  // namespace
}  // namespace leasehold::cli
