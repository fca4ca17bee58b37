// The sentences of reasons.
#include "speculate/reason.h"

#include "base/check.h"

namespace janus::speculate {
namespace {

struct Row {
  const char* name;
  const char* sentence;
};

constexpr Row kRows[] = {
#define X(code, sentence) {#code, sentence},
    TORCHJANUS_REASONS(X)
#undef X
};

const Row& row(ReasonCode code) { return kRows[static_cast<size_t>(code)]; }

}  // namespace

std::string Reason::code_name() const { return row(code).name; }

std::string Reason::sentence() const {
  std::string text = row(code).sentence;
  if (const size_t place = text.find("{}"); place != std::string::npos)
    text.replace(place, 2, details);
  return text;
}

std::string Reason::describe() const {
  const std::string where = span.known() ? cat(*span.file, ":", span.line, ": ") : std::string();
  return cat(where, "[", code_name(), "] ", sentence());
}

std::vector<std::string> reason_codes() {
  std::vector<std::string> names;
  for (const Row& each : kRows) names.emplace_back(each.name);
  return names;
}

}  // namespace janus::speculate
