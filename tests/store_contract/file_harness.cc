#include "file_harness.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "contract_fixture.h"
#include "store/file_io.h"
#include "store/file_store.h"
#include "store/record_json.h"

namespace leasehold::store_contract {

FileHarness::FileHarness(store::Durability durability)
    : durability_(durability), log_(observe::Log::Silent()) {}

FileHarness::~FileHarness() {
  std::error_code ignored;
  if (!top_.empty()) std::filesystem::remove_all(top_, ignored);
}

base::Status FileHarness::Start() {
  std::string name =
      (std::filesystem::temp_directory_path() / "leasehold-contract-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    return base::Error{base::ErrorCode::kInternal, "no temporary directory " + name};
  }
  top_ = name;
  dir_ = top_ + "/var/lib/store";  // made by Open, parents too
  return {};
}

std::unique_ptr<store::LeaseStore> FileHarness::MakeStore(loop::Loop& loop,
                                                          const std::string& prefix,
                                                          const std::string& process_id) {
  store::FileOptions options;
  options.dir = dir_;
  options.durability = durability_;
  return store::MakeFileStore(loop, options, prefix, process_id, *log_);
}

std::string FileHarness::RecordPath(const std::string& prefix, const std::string& lease) const {
  return dir_ + "/leases/" + store::LeaseFileName(prefix, lease) + ".json";
}

base::Status FileHarness::WriteFile(const std::string& path, const std::string& text) const {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (file.good()) return {};
  return base::Error{base::ErrorCode::kInternal, "cannot write " + path};
}

base::Status FileHarness::WriteGarbage(const std::string& prefix, const std::string& lease) {
  return WriteFile(RecordPath(prefix, lease), "{\"format\": 1, \"lease\": \"ord");
}

base::Status FileHarness::WriteRecord(const std::string& prefix, const std::string& lease,
                                      const lease::Record& record) {
  const base::Result<std::string> text = store::RecordToJson(record);
  if (!text.ok()) return text.error();
  return WriteFile(RecordPath(prefix, lease), *text);
}

namespace {

HarnessFactory Make(store::Durability durability) {
  return [durability] { return std::make_unique<FileHarness>(durability); };
}

std::string Name(const ::testing::TestParamInfo<HarnessFactory>& param) {
  return param.index == 0 ? "Strict" : "ProcessCrashSafe";
}

const auto kDurabilities =
    ::testing::Values(Make(store::Durability::kStrict), Make(store::Durability::kProcessCrashSafe));
INSTANTIATE_TEST_SUITE_P(File, ContractTest, kDurabilities, Name);
INSTANTIATE_TEST_SUITE_P(File, PushContractTest, kDurabilities, Name);

}  // namespace

}  // namespace leasehold::store_contract
