// The body of a function of the graph that calls itself, while it is found.
//
// What the function gives back is not known as its body is interpreted for the first time: sides of
// branches that need the result of a call of itself are left out (UnknownResult). Then the body is
// interpreted again, with calls that give what was found, until that and what the function changes
// outside (outside_changes.h) stay the same. Each interpretation begins from the same state.
#pragma once

#include <memory>
#include <vector>

#include "frontend/recursion/activation.h"
#include "frontend/recursion/outside_changes.h"
#include "frontend/recursion/recursive_functions.h"

namespace janus::frontend {

class RecursiveBody final : public Scope {
 public:
  RecursiveBody(RecursiveFunctions& functions, Interpreter& interpreter,
                RecursiveFunction& function, const Activation& activation);
  ~RecursiveBody() override;
  RecursiveBody(const RecursiveBody&) = delete;
  RecursiveBody& operator=(const RecursiveBody&) = delete;

  /// Appends the `function` node to the graph.
  void run();

  /// What a call of the function within itself finds changed goes in and out from now on.
  void collect_changes() { outside_.collect(); }

  bool is_inside(const graph::Block* block) const override { return block == block_.get(); }
  void add_entry_object(Changeable& object) override {
    outside_.add_entry_object(object);
    function_.call_environment->add(object);
  }
  bool keeps(const Tensor& tensor) const override {
    return outside_.existed(&tensor) ||
           (tensor.value != nullptr && tensor.value->owner == block_.get());
  }
  const TestKey* test() const override { return nullptr; }

 private:
  [[noreturn]] void refuse(const std::string& why) const { function_.refuse(interpreter_, why); }
  bool interpret_first();
  bool interpret(bool first);
  Passed begin(Variables& variables);
  bool note_result(const Value& result, const Passed& given);
  void name_parameters(const Variables& variables);
  void reset();
  void forget_classes();
  void check_effects() const;
  std::vector<ResultAliases> find_aliases(const Passed& results, const Passed& arguments) const;
  void finish();
  void check_visible(const graph::Block& block) const;

  RecursiveFunctions& functions_;
  Interpreter& interpreter_;
  RecursiveFunction& function_;
  const Activation& activation_;
  graph::Block& outer_;
  OutsideChanges outside_;
  size_t effects_, leaves_;  // that there were before, as
  size_t function_count_;    // the functions
  int deepest_, depth_;
  std::unique_ptr<graph::Block> block_;
};

}  // namespace janus::frontend
