// What iterations of loops in the graph have shown so far; control/journal.h writes it.
#pragma once

#include <memory>
#include <vector>

#include "frontend/values/value.h"
#include "speculate/generated.h"

namespace janus::frontend {

/// A call that is made of other results each time.
struct JournalEntry {
  speculate::Template call;                       ///< with items in place of results
  std::vector<std::shared_ptr<Sequence>> values;  ///< what the items were, time after time
  std::vector<graph::Type> types;
};

struct JournalState {
  size_t open = 0;   ///< loops whose iterations are being interpreted
  size_t count = 0;  ///< calls that were noted
  std::vector<JournalEntry> entries;
  std::shared_ptr<Sequence> order;  ///< which of the entries, call after call

  bool is_open() const { return open > 0; }
};

}  // namespace janus::frontend
