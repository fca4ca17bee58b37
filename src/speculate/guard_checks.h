// One check of a guard: what is assumed of an object, compiled, and whether it holds for the object
// that is there now.
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

/// What is assumed of each element of a list.
struct ElementCheck {
  ElementPattern::Kind kind = ElementPattern::Kind::integer;
  TensorCheck tensor;  ///< its sizes are those of the element looked at last
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

/// What one walk finds beside objects.
struct Walk {
  Walk(size_t sizes, size_t symbols) : sizes(sizes), symbols(symbols), bound(symbols) {}
  Scratch<int64_t, 256> sizes;  ///< of tensors, where TensorCheck::first_size says
  Scratch<int64_t, 32> symbols;
  Scratch<char, 32> bound;
  std::vector<python::Object> owned;  ///< objects that nobody else keeps
  const Check* failed = nullptr;      ///< the one that did not hold, and the step of its object
  uint32_t failed_step = 0;

  /// Whether the symbol is, or now becomes, this number.
  bool bind(size_t symbol, int64_t number) {
    if (bound[symbol] != 0) return symbols[symbol] == number;
    bound[symbol] = 1;
    symbols[symbol] = number;
    return true;
  }
};

/// Whether the check holds for the object; not for those of pairs. Binds symbols in the walk.
bool holds(const Check& check, PyObject* object, Walk& walk);

}  // namespace janus::speculate
