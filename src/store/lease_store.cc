#include "store/lease_store.h"

namespace leasehold::store {

std::string_view ResultName(ReadResult::Outcome outcome) {
  if (outcome == ReadResult::Outcome::kAmbiguous) return "ambiguous";
  return outcome == ReadResult::Outcome::kRefused ? "refused" : "ok";
}

std::string_view ResultName(CasResult::Outcome outcome) {
  switch (outcome) {
    case CasResult::Outcome::kApplied: return "ok";
    case CasResult::Outcome::kConflict: return "conflict";
    case CasResult::Outcome::kAmbiguous: return "ambiguous";
    case CasResult::Outcome::kRefused: return "refused";
  }
  return "ambiguous";
}

}  // namespace leasehold::store
