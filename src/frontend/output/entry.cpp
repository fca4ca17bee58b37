// Binds the arguments of the call, interprets the body, and hands what it returned to the
// epilogue.
#include "frontend/output/entry.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "frontend/control/branches.h"
#include "frontend/core/narrowing.h"
#include "frontend/language/evaluation.h"
#include "frontend/language/functions.h"
#include "frontend/language/generators.h"
#include "frontend/output/epilogue.h"
#include "frontend/recursion/recursion.h"
#include "frontend/torch_library/gradient_exchange.h"
#include "frontend/values/constants.h"
#include "speculate/recipe.h"
#include "speculate/tensor_access.h"

namespace janus::frontend {

using python::Object;

namespace {

/// The names of the positional parameters, for reports. Elements of `*args` have none.
std::vector<Object> parameter_names(const syntax::Tree& tree) {
  std::vector<Object> names;
  if (tree.arguments == nullptr) return names;
  for (const auto* list : {&tree.arguments->posonlyargs, &tree.arguments->args})
    for (const syntax::Argument* each : *list)
      names.push_back(Object::steal(PyUnicode_FromStringAndSize(
          each->arg.data(), static_cast<Py_ssize_t>(each->arg.size()))));
  return names;
}

}  // namespace

namespace {

/// The interpretation of what the call runs.
class Entry {
 public:
  explicit Entry(Interpreter& interpreter)
      : interpreter_(interpreter),
        call_(interpreter.call()),
        output_(interpreter.output()),
        statements_(interpreter.statement_run) {}

  speculate::Generated run();

 private:
  CallArguments entry_arguments();
  Value run_function();
  Value run_statements();
  Completion execute_statements();
  Value final_variable(const std::string& name);

  Interpreter& interpreter_;
  const speculate::Call& call_;
  speculate::Generated& output_;
  StatementRun& statements_;
};

}  // namespace

CallArguments Entry::entry_arguments() {
  CallArguments arguments;
  std::vector<Object> names = parameter_names(*call_.tree);
  names.resize(std::max(names.size(), static_cast<size_t>(call_.argument_count)));
  for (Py_ssize_t i = 0; i < call_.argument_count; ++i)
    arguments.positional.push_back(interpreter_.wrap(
        call_.arguments[i],
        interpreter_.sources().root(Source::Kind::argument, names[static_cast<size_t>(i)], i)));
  Py_ssize_t keywords = call_.keyword_names == nullptr ? 0 : PyTuple_GET_SIZE(call_.keyword_names);
  for (Py_ssize_t i = 0; i < keywords; ++i) {
    Object key = Object::borrow(PyTuple_GET_ITEM(call_.keyword_names, i));
    arguments.keywords.emplace_back(
        text_of(key.get()),
        interpreter_.wrap(call_.arguments[call_.argument_count + i],
                          interpreter_.sources().root(Source::Kind::keyword, key)));
  }
  return arguments;
}

Value Entry::run_function() {
  auto code = std::make_shared<Code>();
  code->tree = call_.tree;
  code->function = Object::borrow(call_.function);
  code->function_source = interpreter_.sources().root(Source::Kind::function);
  code->facts_key = Object::borrow(call_.facts_key != nullptr ? call_.facts_key
                                                              : PyFunction_GetCode(call_.function));
  interpreter_.set_entry_facts(interpreter_.profiles().find(code->facts_key.get()));
  auto outer = std::make_shared<Variables>();
  Frame frame = interpreter_.make_frame(code, outer, call_.tree->name);
  return interpreter_.run_frame(frame, [&] {
    if (call_.tree->function != nullptr) interpreter_.at(*call_.tree->function);
    if (call_.tree->lambda != nullptr) interpreter_.at(*call_.tree->lambda);
    Value result = run_code(interpreter_, code, entry_arguments());
    finish(interpreter_, result);
    return result;
  });
}

Value Entry::run_statements() {
  auto code = std::make_shared<Code>();
  code->tree = call_.tree;
  code->facts_key = Object::borrow(call_.facts_key);
  if (code->facts_key)
    interpreter_.set_entry_facts(interpreter_.profiles().find(code->facts_key.get()));
  statements_.variables = std::make_shared<Variables>();
  statements_.variables->scope = call_.tree->scope;
  Frame frame = interpreter_.make_frame(code, statements_.variables, call_.tree->name);
  return interpreter_.run_frame(frame, [&] {
    Completion completion = execute_statements();
    close_forks(interpreter_, 0, completion);
    int64_t how = completion == Completion::normal      ? 0
                  : completion == Completion::continue_ ? 1
                  : completion == Completion::break_    ? 2
                                                        : 3;
    auto result = std::make_shared<Sequence>(false);
    result->elements.push_back(interpreter_.integer(how));
    result->elements.push_back(interpreter_.frame().returned != nullptr
                                   ? interpreter_.frame().returned
                                   : interpreter_.none());
    for (const std::string& name : call_.tree->scope->assigned)
      result->elements.push_back(final_variable(name));
    try {
      finish(interpreter_, result);
    } catch (Refusal& refusal) {
      refusal.reason.statement = statements_.at;
      throw;
    }
    return Value(result);
  });
}

/// Runs the statements; a refusal says at which it came.
Completion Entry::execute_statements() {
  for (size_t i = 0; i < call_.tree->body.size(); ++i) {
    statements_.at = static_cast<int>(i);
    try {
      Completion completion = execute(interpreter_, *call_.tree->body[i]);
      if (completion == Completion::normal) continue;
      statements_.at = -1;
      return completion;
    } catch (Refusal& refusal) {
      if (refusal.reason.statement < 0) refusal.reason.statement = statements_.at;
      throw;
    }
  }
  statements_.at = -1;
  return Completion::normal;
}

Value Entry::final_variable(const std::string& name) {
  auto written = statements_.variables->values.find(name);
  if (written == statements_.variables->values.end() || call_.tree->ends_function)
    return interpreter_.constant_borrowed(speculate::untouched_marker());
  check_merged(written->second);
  return written->second;
}

speculate::Generated Entry::run() {
  output_.environment = speculate::tensor_access().environment();
  if (output_.environment.mode_active)
    interpreter_.refuse(ReasonCode::mode_active, "a torch function mode");
  interpreter_.modes.inference_mode = output_.environment.inference_mode;
  interpreter_.modes.autocast.is_on = output_.environment.autocast;
  interpreter_.modes.autocast.dtype = output_.environment.autocast_dtype;
  interpreter_.modes.autocast.keeps_casts = output_.environment.autocast_keeps_casts;
  if (output_.environment.anomaly_mode)
    interpreter_.refuse(ReasonCode::mode_active, "anomaly detection");
  interpreter_.modes.grad_enabled = output_.environment.grad_enabled;
  const ContextsOfRun contexts;
  if (call_.function != nullptr)
    run_function();
  else
    run_statements();
  contexts.check(interpreter_);
  recursion_of(interpreter_).lazy_stacks.finish(interpreter_);
  tell_reducers(interpreter_);
  std::ranges::move(interpreter_.effects, std::back_inserter(output_.effects));
  return std::move(output_);
}

speculate::Generated run_entry(Interpreter& interpreter) { return Entry(interpreter).run(); }

}  // namespace janus::frontend
