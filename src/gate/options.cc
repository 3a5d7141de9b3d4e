#include "gate/options.h"

namespace leasehold::gate {

std::string_view TypeName(Type type) {
  switch (type) {
    case Type::kTcp: return "tcp";
    case Type::kHttp: return "http";
    case Type::kSqs: return "sqs";
  }
  return "unknown";
}

}  // namespace leasehold::gate
