// A library whose operators are those of the reference interpreter: whole optimised graphs can be
// executed and compared with what the interpreter says.
#pragma once

#include "execute/library/heap.h"
#include "fake_library.h"
#include "graph/datum.h"

namespace janus::execute::fake {

class ReferenceLibrary : public Library {
 public:
  std::unique_ptr<Operation> bind(const graph::Node& node, const SymbolLookup& symbols) override;
  bool is_certain(const graph::Node& node) const override;
};

/// Objects are those of the reference interpreter, which tests keep alive.
class ReferenceHeap final : public Heap {
 public:
  ReferenceHeap(Library& library, std::vector<graph::ObjectReference> objects)
      : library_(library), objects_(std::move(objects)) {}

  Slot object(int64_t number) const override;
  std::unique_ptr<HeapRead> bind(const graph::Node& node,
                                 const SymbolLookup& symbols) const override;

 private:
  Library& library_;
  std::vector<graph::ObjectReference> objects_;
};

Slot slot_of(Library& library, const graph::Datum& datum);
graph::Datum datum_of(const Slot& slot);

}  // namespace janus::execute::fake
