// Recursive functions: a function that calls itself, as often as only the run knows, becomes a
// `function` of the graph, and its calls become `call` nodes.
//
// What an activation is given is taken apart (TreeSpec): what is the same in every activation, such
// as `self`, stays what it is; numbers, tensors and objects that differ become parameters. What it
// gives back is found by interpreting it first without the sides that call it again, then with
// calls that give what was found, until nothing new is found.
//
// That a function is recursive in this sense shows in the middle of its interpretation: then the
// generation begins anew (Generalise), with that known from the start.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "frontend/core/interpreter.h"
#include "frontend/core/operations.h"
#include "frontend/core/recursion_state.h"
#include "frontend/recursion/activation.h"
#include "frontend/recursion/lazy_stacks.h"
#include "frontend/recursion/recursive_functions.h"
#include "frontend/recursion/tree_spec.h"

namespace janus::frontend {

/// What variables are given, in order.
using Parameters = std::vector<std::pair<std::string, TreeSpec>>;

/// The recursive functions of one graph.
class Recursion final : public RecursionState {
 public:
  Recursion(Interpreter& interpreter, const Generalisation& known);
  ~Recursion() override;

  /// The call's result: interpreted here, or by a call of a function of the graph.
  Value invoke(const Activation& activation);
  bool is_building() const override;

  /// Tensors of lists whose length differs from activation to activation.
  LazyStacks lazy_stacks;

 private:
  void detect(const Activation& activation);
  bool is_first_of_entry(const Activation& activation);
  Value call(const Activation& activation);
  Passed take_arguments(const Activation& activation, Parameters& parameters) const;
  RecursiveFunction* find_function(const Activation& activation, const Parameters& given);
  static bool fits(RecursiveFunction& function, const Parameters& given);
  [[noreturn]] void vary(const Activation& activation, const std::string& part,
                         const TreeSpec& spec);
  RecursiveFunction& make_function(const Activation& activation, Parameters parameters);
  bool is_applicable(const RecursiveFunction& function) const;

  Interpreter& interpreter_;
  RecursiveFunctions functions_;
  std::map<const syntax::Scope*, size_t> first_activations_;  ///< interpreted in place
};

/// The recursive functions of the interpretation.
Recursion& recursion_of(AttachedStates& attached);

}  // namespace janus::frontend
