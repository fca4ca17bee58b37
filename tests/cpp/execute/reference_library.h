// A library whose operators are those of the reference interpreter: whole optimised graphs can be
// executed and compared with what the interpreter says.
#pragma once

#include "fake_library.h"
#include "graph/datum.h"

namespace janus::execute::fake {

class ReferenceLibrary final : public Library {
 public:
  std::unique_ptr<Operation> bind(const graph::Node& node, const SymbolLookup& symbols) override;
};

Slot slot_of(Library& library, const graph::Datum& datum);
graph::Datum datum_of(const Slot& slot);

}  // namespace janus::execute::fake
