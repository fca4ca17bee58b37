// Calls that differ in sizes only have one form. Kinds of calls have their own sizes each, and of
// one form there may be many kinds.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "graph/type.h"
#include "lazy/event.h"

namespace janus::lazy {

/// What is known of a kind for traces.
struct CallForm {
  uint32_t number = 0;             ///< the same for all kinds of the form
  std::vector<int64_t> sizes;      ///< of arguments, as sizes_of
  std::vector<graph::Type> types;  ///< of operands, as kind.operands
  /// What a call gives: its results, then new values of operands that it writes unsaid.
  struct Result {
    graph::Type type;
    bool is_made = false;  ///< in a storage of its own
    size_t operand = 0;    ///< of others: that is written
    size_t of_append = 0;  ///< which one of append_call's
  };
  std::vector<Result> results;
};

class CallForms {
 public:
  /// Throws NotInGraph.
  const CallForm& of(const CallKind& kind);

 private:
  uint32_t number_of(std::vector<uint64_t> words);

  std::unordered_map<const CallKind*, std::unique_ptr<CallForm>> forms_;
  std::map<std::vector<uint64_t>, uint32_t> numbers_;
};

/// The bits of a number, to compare it by.
uint64_t bits_of(const c10::Scalar& number);

/// Numbers that have had so many values that graphs take them as inputs.
class VaryingScalars {
 public:
  void note(uint32_t form, size_t number, const c10::Scalar& value);
  bool contains(uint32_t form, size_t number) const;

 private:
  std::map<std::pair<uint32_t, size_t>, std::vector<uint64_t>> values_;
};

}  // namespace janus::lazy
