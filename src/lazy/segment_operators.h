// The operators of a family's traces: forms of calls with their constant numbers, and views that
// lead from what a storage holds to an operand or back.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "lazy/call_form.h"
#include "lazy/view_chain.h"
#include "trace/emit_operator.h"

namespace janus::lazy {

class SegmentOperators final : public trace::OperatorEmitter {
 public:
  /// `sizes_vary`: calls of other sizes are the same operator.
  SegmentOperators(trace::Names& names, const VaryingScalars& varying, bool sizes_vary)
      : names_(&names), varying_(varying), sizes_vary_(sizes_vary) {}

  /// Whether operators that it does not have yet are added.
  void close() { is_open_ = false; }

  /// Nothing if it does not have the operator.
  std::optional<trace::OperatorId> of_call(const CallForm& form, const CallKind& kind,
                                           std::span<const c10::Scalar> numbers);
  /// The view of a value; or the value once the view of it holds another.
  std::optional<trace::OperatorId> of_view(const ViewChain& chain, bool is_write);
  /// Whether a number of the call is an operand.
  bool varies(const CallForm& form, size_t number) const {
    return varying_.contains(form.number, number);
  }

  std::optional<std::vector<graph::Value*>> emit(graph::Builder& builder, const trace::Operator& op,
                                                 const graph::Shape& sizes,
                                                 std::span<graph::Value* const> operands,
                                                 std::span<const trace::Pattern> results) override;

 private:
  struct Meaning {
    const CallKind* kind = nullptr;  ///< null: a view
    const CallForm* form = nullptr;
    std::vector<std::optional<c10::Scalar>> numbers;  ///< the constant ones
    std::optional<ViewChain> chain;
    bool is_write = false;
  };
  std::optional<trace::OperatorId> id(std::vector<uint64_t> words, std::string_view name,
                                      const std::function<Meaning()>& meaning);
  static std::vector<graph::Value*> emit_call(graph::Builder& builder, const Meaning& meaning,
                                              const graph::Shape& sizes,
                                              std::span<graph::Value* const> operands,
                                              std::span<const trace::Pattern> results);

  trace::Names* names_;
  const VaryingScalars varying_;
  bool sizes_vary_, is_open_ = true;
  std::map<std::vector<uint64_t>, trace::OperatorId> ids_;
  std::vector<Meaning> meanings_;
};

}  // namespace janus::lazy
