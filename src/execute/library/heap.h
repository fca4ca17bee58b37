// The interface through which the executor reads Python's objects; torch/ implements it, tests use
// a fake. One heap belongs to one program: it knows the classes and objects that the graph's
// operators name by number (ops/object.cpp).
//
// Runs that read the heap keep Python's lock, and the pointers in their slots are borrowed from the
// caller.
#pragma once

#include <memory>

#include "execute/library/operation.h"
#include "graph/graph.h"

namespace janus::execute {

/// One operator of ops/object.cpp with its attributes.
class HeapRead {
 public:
  virtual ~HeapRead() = default;
  /// Puts what is read into the output. False: the object has no such thing, or one of another
  /// type. Never runs code of Python's.
  virtual bool run(const Operands& operands) = 0;
};

class Heap {
 public:
  virtual ~Heap() = default;
  /// The known object of that number.
  virtual Slot object(int64_t number) const = 0;
  /// For all operators but object_constant and object_is. Dimensions of the result's type have the
  /// values that `symbols` gives.
  virtual std::unique_ptr<HeapRead> bind(const graph::Node& node,
                                         const SymbolLookup& symbols) const = 0;
};

}  // namespace janus::execute
