// The generator's entry: whatever goes wrong inside comes back as a Reason.
#include "frontend/output/generate.h"

#include <algorithm>
#include <map>

#include "base/options.h"
#include "base/policy.h"
#include "base/time_budget.h"
#include "frontend/autograd/gradient_flags.h"
#include "frontend/control/entry_lists.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/interpreter.h"
#include "frontend/core/operations.h"
#include "frontend/core/recursion_state.h"
#include "frontend/output/entry.h"
#include "frontend/output/operations.h"
#include "frontend/output/special_callables.h"
#include "frontend/recursion/recursion.h"
#include "frontend/recursion/runtime_store_log.h"
#include "frontend/values/restart.h"
#include "frontend/values/time_spent.h"
#include "graph/op.h"
#include "ops/promotion.h"
#include "speculate/reason_record.h"

namespace janus::frontend {

namespace {

speculate::Reason internal_error(const std::string& message) {
  return {ReasonCode::internal_error, message, {}};
}

speculate::Reason out_of_time(GraphWriter& writer) {
  return {ReasonCode::limit, time_spent(writer.output().graph), writer.last_span()};
}

/// Branches of which one side gives a tensor that requires a gradient, and the other one that needs
/// none.
std::vector<TestKey> tests_of_varying_gradients(Interpreter& interpreter) {
  std::vector<TestKey> tests;
  for (const auto& [node, test] : interpreter.scope_nodes) {
    const bool varies = std::ranges::any_of(
        node->outputs, [](const graph::Value* output) { return is_tracked_on_one_side(*output); });
    if (varies && !interpreter.recursion().is_first_activation(test) &&
        interpreter.followed(test) == nullptr)
      tests.push_back(test);
  }
  return tests;
}

/// What else may be to blame for a refusal. What is followed, every tensor requires a gradient or
/// none, and the elements of lists that existed before the call are known one by one.
std::vector<TestKey> other_suspects(Interpreter& interpreter) {
  std::vector<TestKey> tests;
  if (interpreter.gradients_vary) tests = tests_of_varying_gradients(interpreter);
  if (!tests.empty()) return tests;
  for (const auto& [source, list] : interpreter.entry_lists) tests.push_back(list.elements->test);
  for (const auto& [source, list] : interpreter.chosen_from)
    tests.push_back(entry_list_test(source));
  return tests;
}

/// The paths of numbers that runs of this code were found to change: later graphs of it need no
/// interpretation to find them.
std::set<std::string>& numbers_changed_by(const speculate::Call& call) {
  static auto& all = *new std::map<const void*, std::set<std::string>>();
  return all[call.facts_key != nullptr ? call.facts_key : PyFunction_GET_CODE(call.function)];
}

/// Whether what was assumed of the entry's tensors may be to blame for a refusal; if so, other
/// things are assumed of them from now on: that sizes which are equal now are one, or how they lie.
bool generalise(Generalisation& known, const Interpreter& interpreter,
                const speculate::Reason& refusal) {
  const bool is_of_sizes =
      refusal.code == ReasonCode::shape_mismatch || refusal.code == ReasonCode::would_raise;
  if (is_of_sizes && interpreter.has_equal_names() && !known.one_name_a_size)
    return known.one_name_a_size = true;
  if (!interpreter.leaves_strides || known.exact_strides) return false;
  return known.exact_strides = true;
}

/// Generates with branches in the graph where the profile saw both outcomes of a test. What can't
/// be merged, or can't be converted with the branch, is tried again with that test followed.
std::variant<speculate::Generated, speculate::Reason> generate_anew(
    const speculate::Call& call, speculate::ProfileStore& profiles) {
  std::vector<CannotMerge> followed;
  // What the run changes from call to call (a counter) must not be a constant of its graph: that
  // shows at the end of the first interpretation.
  std::set<std::string>& varying = numbers_changed_by(call);
  Generalisation generalisation;
  size_t generalised = 0;
  for (size_t attempt = 1;; ++attempt) {
    Interpreter interpreter(call, profiles, followed, varying);
    interpreter.take_as_equal(generalisation.equal_sizes, generalisation.one_name_a_size);
    interpreter.attach(std::make_unique<Recursion>(interpreter, generalisation),
                       std::make_unique<RuntimeStoreLog>(interpreter, generalisation.written));
    if (attempt >= policy::kMostGenerationAttempts) interpreter.follow_all();
    try {
      speculate::Generated generated = run_entry(interpreter);
      const size_t known = varying.size();
      varying.insert(interpreter.changed_numbers().begin(), interpreter.changed_numbers().end());
      if (varying.size() == known) return generated;
    } catch (const OutOfTime&) {  // within a gradient that the program takes itself
      return out_of_time(interpreter);
    } catch (const Generalise& found) {
      if (TimeBudget::is_spent()) return out_of_time(interpreter);
      if (++generalised == policy::kMostGeneralised)
        return speculate::Reason{ReasonCode::limit, "a recursion that takes ever other forms", {}};
      generalisation.add(found);
      followed.clear();
      attempt = 0;
    } catch (const CannotMerge& reason) {
      log("merge", reason.why);
      speculate::record(ReasonCode::dynamic_control, reason.why);
      if (TimeBudget::is_spent()) return out_of_time(interpreter);
      // A recursion of which one side is followed would be left at each call.
      if (interpreter.recursion().is_building() || generalisation.owns(reason.test))
        return speculate::Reason{ReasonCode::dynamic_control, cat("in a recursion: ", reason.why),
                                 interpreter.last_span()};
      // What a recursion or a loop that is followed already gave stays what it is.
      if (attempt > policy::kMostGenerationAttempts || interpreter.followed(reason.test) != nullptr)
        return speculate::Reason{ReasonCode::dynamic_control, reason.why, interpreter.last_span()};
      CannotMerge known = reason;
      known.in_first_iteration &= !interpreter.takes_first_iteration(reason.test);
      known.in_sizes &= !interpreter.leaves_sizes(reason.test);
      followed.push_back(std::move(known));
    } catch (const Refusal& refusal) {
      PyErr_Clear();
      if (TimeBudget::is_spent())
        return refusal.reason.code == ReasonCode::limit ? refusal.reason : out_of_time(interpreter);
      if (interpreter.recursion().is_building() || attempt > policy::kMostGenerationAttempts)
        return refusal.reason;
      log("merge", refusal.reason.details);
      if (call.general && refusal.reason.code == ReasonCode::shape_mismatch &&
          !generalisation.names_equal_sizes) {
        generalisation.names_equal_sizes = true;
        followed.clear();
        attempt = 0;
        continue;
      }
      // What is followed already is not to blame, nor is what comes after all tests are.
      const auto& suspect = interpreter.suspect();
      if (suspect && !generalisation.owns(*suspect) && interpreter.followed(*suspect) == nullptr)
        followed.push_back({*suspect, refusal.reason.details});
      else if (const auto others = other_suspects(interpreter); !others.empty())
        for (const TestKey& test : others) followed.push_back({test, refusal.reason.details});
      else if (generalise(generalisation, interpreter, refusal.reason))
        attempt = 0;
      else
        return refusal.reason;
    }
  }
}

}  // namespace

std::variant<speculate::Generated, speculate::Reason> generate(const speculate::Call& call,
                                                               speculate::ProfileStore& profiles) {
  try {
    const ops::DefaultDtype scope(speculate::tensor_access().environment().default_dtype);
    return generate_anew(call, profiles);
  } catch (const graph::TypeError& error) {
    return speculate::Reason{ReasonCode::shape_mismatch, error.what(), {}};
  } catch (const graph::DimError& error) {
    return speculate::Reason{ReasonCode::limit, cat("a size or an index: ", error.what()), {}};
  } catch (const Raised&) {
    return internal_error("an exception that no handler was come to");
  } catch (const python::ErrorSet&) {
    const bool is_about_memory = PyErr_ExceptionMatches(PyExc_MemoryError) != 0;
    PyErr_Clear();
    if (is_about_memory) throw std::bad_alloc();
    return internal_error("an exception of the C API");
  } catch (const std::bad_alloc&) {  // no bug
    PyErr_Clear();
    throw;
  } catch (const std::exception& error) {
    PyErr_Clear();
    return internal_error(error.what());
  }
}

void install() {
  register_special_callables();
  install_operations();
  speculate::set_generator(generate);
}

}  // namespace janus::frontend
