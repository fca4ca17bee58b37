#include "speculate/reason_record.h"

#include <mutex>
#include <set>

namespace janus::speculate {
namespace {

struct Record {
  std::mutex mutex;
  std::set<std::pair<std::string, std::string>> reasons;
};

Record& the_record() {
  static auto* record = new Record();  // other threads may still add to it at the end
  return *record;
}

}  // namespace

std::atomic<bool> is_recording_reasons = false;

void record_reasons() { is_recording_reasons.store(true); }

std::vector<std::pair<std::string, std::string>> take_recorded_reasons() {
  const std::lock_guard lock(the_record().mutex);
  const auto taken = std::exchange(the_record().reasons, {});
  return {taken.begin(), taken.end()};
}

void add_to_record(ReasonCode code, const std::string& details) {
  const std::string name = Reason{code, {}, {}}.code_name();
  const std::lock_guard lock(the_record().mutex);
  the_record().reasons.emplace(name, details);
}

}  // namespace janus::speculate
