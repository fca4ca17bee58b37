// The template of what a run gives back: Python makes the objects of it, around results of the
// graph.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/core/interpreter.h"
#include "frontend/output/escaping_tensors.h"
#include "frontend/values/strides.h"

namespace janus::frontend {

class TemplateWriter {
 public:
  /// `now`: containers as they are at this moment, not as the run leaves them.
  TemplateWriter(Interpreter& interpreter, const EscapingTensors& escaping, bool now)
      : interpreter_(interpreter), escaping_(escaping), now_(now) {}

  /// Of any value that the run knows at its end; refuses what can't outlive it.
  speculate::Template write(const Value& value);
  /// Of what the run returned: a function's result, or the variables of a run of statements.
  speculate::Template whole(const Value& result);
  /// What the run writes to objects that it meets (runtime_store_log.h).
  speculate::Template write_runtime_stores(const Value& written);
  /// Leaves of the run among what was written.
  std::span<const std::shared_ptr<Tensor>> leaves() const { return leaves_; }

 private:
  /// The result of a run of statements: what can't be written is laid to who made it.
  speculate::Template write_variables(const Value& result);
  speculate::Template known(const Known& known);
  /// id(object)
  speculate::Template identity(PyObject* number);
  speculate::Template number(const Value& value);
  /// (second, first)[flag], of what has no state.
  speculate::Template either(const Either& either);
  /// (None, value)[flag]
  speculate::Template optional(const Value& value);
  speculate::Template result(graph::Value* value);
  /// Objects with an identity: made once.
  speculate::Template object(const Value& value);
  speculate::Template parts(const Value& value);
  /// What shares the memory of a tensor that may require a gradient by now is not made.
  speculate::Template write_array(const std::shared_ptr<Tensor>& tensor);
  /// types.FunctionType(code, globals, name, defaults, cells)
  speculate::Template write_closure(const Closure& closure);
  /// A cell of a variable of the function that the closure is defined in, one for all closures. The
  /// function has returned, so that the variable has its last value.
  speculate::Template write_cell(const Closure& closure, std::string_view name);
  speculate::Template write_instance(const Instance& instance);
  /// functools.partial(function, *arguments, **keywords)
  speculate::Template write_partial(const Instance& partial);
  /// A function that is bound to an object.
  speculate::Template write_method(const Method& method);
  [[noreturn]] void refuse_function() const;
  speculate::Template write_set(const SetValue& set);
  speculate::Template write_sequence(const Sequence& sequence);
  void check_rolled(const Rolled& list) const;
  /// A list of which the graph makes the elements.
  speculate::Template write_rolled(const Rolled& list);
  speculate::Template write_elements(const Rolled& list, const ElementForm& form, size_t& next);
  /// What the run writes to objects that it meets, under one name: behind object and value stand
  /// the numbers of the names of autograd's nodes.
  speculate::Template write_runtime_stores(const Sequence& writes);
  speculate::Template write_named_elements(const Rolled& list, const ElementForm& form,
                                           size_t& next, size_t& names);
  /// Whether backward() has run through all elements of the list, and freed what they need.
  bool has_consumed_tape(const graph::Value* list) const;
  speculate::Template write_dictionary(const Value& value);
  /// A result that does not lie in order; without strides only the run knows.
  speculate::Template shown(speculate::Template result, const Strides& strides);
  speculate::Template write_tensor(const std::shared_ptr<Tensor>& tensor);
  /// Writes a leaf that the run made.
  speculate::Template write_leaf(const std::shared_ptr<Tensor>& leaf);
  speculate::Template write_contents(const std::shared_ptr<Tensor>& tensor);
  [[noreturn]] void refuse_inference() const;
  /// A tensor that was made in inference mode: where the call itself is, what the run makes is so.
  speculate::Template of_inference(speculate::Template form);
  /// What Python reads from the object once the run's writes are done.
  speculate::Template attribute_of(const Value& object, const char* name);
  /// The view is taken again, by Python, of what the tensor that it is of is after the run. So it
  /// is a view or a copy as in eager, whatever is known of strides here.
  speculate::Template write_view(const std::shared_ptr<Tensor>& tensor);
  /// Autograd treats a view as the mode says in which it was taken.
  speculate::Template view_call(const Tensor& tensor, const Known& callee);

  Interpreter& interpreter_;
  const EscapingTensors& escaping_;
  const bool now_;
  std::vector<std::shared_ptr<Tensor>> leaves_;
  std::map<const AbstractValue*, size_t> places_;
  std::map<std::pair<const Variables*, std::string>, size_t> cells_;  ///< their places
  std::set<const AbstractValue*> open_;  ///< being written, and not there before their parts are
};

}  // namespace janus::frontend
