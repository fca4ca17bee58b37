// One compiled check of a guard: an assumption about an object, and whether it holds for the object
// now.
#pragma once

#include <memory>
#include <vector>

#include "python/object.h"
#include "speculate/expected_object.h"
#include "speculate/generated.h"
#include "speculate/scratch.h"
#include "speculate/wording.h"

namespace janus::speculate {

struct DimCheck {
  enum class Kind { constant, symbol, expression } kind = Kind::constant;
  int64_t number = 0;  ///< constant: the size; symbol: the least size
  size_t symbol = 0;
};

struct TensorCheck {
  TensorPattern pattern;
  std::vector<DimCheck> dims;
  size_t first_size = 0;  ///< where its sizes stand in the walk's array
};

/// The assumptions about each element of a list.
struct ElementCheck {
  ElementPattern::Kind kind = ElementPattern::Kind::integer;
  TensorCheck tensor;  ///< its sizes are those of the element checked last
  std::vector<ElementCheck> parts;
};

struct Check {
  Assumption::Kind kind = Assumption::Kind::identity;
  ExpectedObject object;
  std::vector<ExpectedObject> keys;
  int64_t number = 0;
  ptrdiff_t symbol = -1;
  TensorCheck tensor;
  std::unique_ptr<ElementCheck> elements;
  const Wording* wording = nullptr;
  graph::SourceSpan span;
};

/// The state of one walk, beside the objects.
struct Walk {
  Walk(size_t sizes, size_t symbols) : sizes(sizes), symbols(symbols), bound(symbols) {}
  Scratch<int64_t, 256> sizes;  ///< of tensors, from TensorCheck::first_size on
  Scratch<int64_t, 32> symbols;
  Scratch<char, 32> bound;
  std::vector<python::Object> owned;  ///< objects that nobody else keeps alive
  const Check* failed = nullptr;      ///< the failed check; with the step of its object
  uint32_t failed_step = 0;

  /// Binds the symbol, or compares it if it is bound.
  bool bind(size_t symbol, int64_t number) {
    if (bound[symbol] != 0) return symbols[symbol] == number;
    bound[symbol] = 1;
    symbols[symbol] = number;
    return true;
  }
};

/// Whether the check of a single object holds. Binds symbols of the walk.
bool holds(const Check& check, PyObject* object, Walk& walk);

}  // namespace janus::speculate
