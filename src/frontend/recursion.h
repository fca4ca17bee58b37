// Recursive functions: a function that calls itself, as often as only the run knows, becomes a
// `function` of the graph, and its calls become `call` nodes.
//
// What an activation is given is taken apart (Form): what is the same in every activation, such as
// `self`, stays what it is; numbers, tensors and objects that differ become parameters. What it
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

#include "frontend/form.h"
#include "frontend/interpreter.h"
#include "frontend/stacks.h"

namespace janus::frontend {

/// Thrown to begin the generation anew with more in its Generalisation.
struct Generalise {
  const syntax::Scope* function = nullptr;
  python::Object facts_key = {};            ///< of its code
  std::string run_time = {}, varying = {};  ///< empty: none
  std::string written = {};                 ///< an attribute of objects met at run time
};

/// What earlier attempts of this generation have found out.
struct Generalisation {
  std::set<const syntax::Scope*> recursive;  ///< functions that become functions of the graph
  std::vector<python::Object> facts_keys;    ///< of their code
  /// Paths of objects that are left to the run; "path[*]" stands for all elements.
  std::set<std::string> run_time;
  /// Attributes that the run writes to objects that it meets (met_writes.h).
  std::vector<std::string> written;
  /// Parts of arguments that differ from activation to activation.
  std::set<std::pair<const syntax::Scope*, std::string>> varying;
  /// Sizes of tensors of before the call of which nothing is known, and that are as large as one
  /// that varies, are that one: masks kept in attributes.
  bool names_equal_sizes = false;

  void add(const Generalise& found);
  /// Whether the test is one of a recursive function.
  bool owns(const TestKey& test) const;
};

/// Thrown where the result of a call is needed of which nothing is known yet. The side of a branch
/// that needs it is left out.
struct UnknownResult {
  const void* function;
};

/// One call of a Python function, its arguments bound.
struct Activation {
  const syntax::Scope* scope;
  const void* environment;  ///< tells apart functions made of the same code
  python::Object facts_key;
  std::string name;
  std::shared_ptr<Variables> variables;
  /// Interprets the body with these variables.
  std::function<Value(const std::shared_ptr<Variables>&)> run;
};

struct RecursiveFunction;
struct Passed;
/// What variables are given, in order.
using Parameters = std::vector<std::pair<std::string, Form>>;

class Recursion {
 public:
  Recursion(Interpreter& interpreter, const Generalisation& known);
  ~Recursion();

  /// The call's result: interpreted here, or by a call of a function of the graph.
  Value invoke(const Activation& activation);
  /// Whether the object at the path is left to the run.
  bool is_run_time(const Source* source) const;
  /// Whether sizes that are equal to one that varies are that one.
  bool names_equal_sizes() const { return known_.names_equal_sizes; }
  /// Begins the generation anew with the object left to the run, if it is data of before the call
  /// that differs from call to call.
  void leave_to_run(const Value& value) const;
  /// Whether a function is being made: what fails then, fails for it.
  bool is_building() const;
  /// Whether the test is one of a recursive function that is interpreted in place.
  bool is_first_activation(const TestKey& test) const;

  /// Whether it is the code of a recursive function.
  bool is_recursive(const Code& code) const;
  /// Tensors of lists whose length differs from activation to activation.
  Stacks stacks;

  /// Whether a loop that needs an unknown result is taken for one without rounds; if not, the side
  /// of a branch that it stands in is left out. And whether one was.
  bool leaves_loops_out = true, left_loop_out = false;

  size_t function_count() const { return functions_.size(); }
  /// Takes back the functions made after the first `count`.
  void forget_functions(size_t count);

 private:
  void detect(const Activation& activation);
  bool is_first_of_entry(const Activation& activation);
  Value call(const Activation& activation);
  Passed take_arguments(const Activation& activation, Parameters& parameters) const;
  RecursiveFunction* find_function(const Activation& activation, const Parameters& given);
  static bool fits(RecursiveFunction& function, const Parameters& given);
  [[noreturn]] void vary(const Activation& activation, const std::string& part, const Form& form);
  RecursiveFunction& make_function(const Activation& activation, Parameters parameters);
  bool is_applicable(const RecursiveFunction& function) const;

  Interpreter& interpreter_;
  const Generalisation& known_;
  std::vector<std::unique_ptr<RecursiveFunction>> functions_;
  std::map<const syntax::Scope*, size_t> first_activations_;  ///< interpreted in place
};

}  // namespace janus::frontend
