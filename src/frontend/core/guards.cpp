#include "frontend/core/guards.h"

#include <utility>

#include "frontend/values/formula.h"
#include "ops/list.h"
#include "speculate/test_number.h"

namespace janus::frontend {

using python::Object;

bool Guards::expected_outcome(int fact_number) const {
  const int number = speculate::test_number(fact_number, frames_.user_span().line);
  if (frames_.call().chosen != nullptr)
    for (const auto& choice : *frames_.call().chosen)
      if (choice.fact == number && frames_.frame().code->facts_key.is(choice.facts_key.get()))
        return choice.outcome;
  const speculate::NodeFact* seen = frames_.fact(fact_number);
  // Of a test that was not counted either outcome is as good: the run says if it was the wrong one.
  return seen == nullptr || seen->taken >= seen->not_taken;
}

bool Guards::follow(graph::Value* test, const Object& example, int fact_number) {
  bool outcome = true;
  if (example) {
    int truth = PyObject_IsTrue(example.get());
    if (truth < 0) frames_.refuse_raised();
    outcome = truth != 0;
  } else {
    outcome = expected_outcome(fact_number);
  }
  speculate::GraphTest record;
  record.facts_key = frames_.frame().code->facts_key;
  record.fact = fact_number;
  record.outcome = outcome;
  record.span = frames_.user_span();
  auto id = static_cast<int64_t>(writer_.output().tests.size());
  writer_.output().tests.push_back(std::move(record));
  graph::Value* condition = outcome ? test
                                    : (test->type.is_tensor() ? op::logical_not : op::scalar_not)(
                                          writer_.builder(), {test});
  writer_.builder().append(op::guard, {condition},
                           {{"id", id}, {"reason", std::string("branch_changed")}});
  // A test that the source does not show (that a slice ends within the tensor) is written out.
  std::string note = fact_number < 0 ? cat("assumes ", formula(*condition))
                     : outcome       ? "assumes true"
                                     : "assumes false";
  const CannotMerge* why = scopes_.followed({frames_.frame().code->facts_key, fact_number});
  if (why != nullptr && !why->why.empty()) note += cat("; no branch in the graph: ", why->why);
  frames_.mark(speculate::LineMark::Kind::assumed, std::move(note));
  learn_classes(test, outcome);
  scopes_.note_guarded(test, outcome);
  return outcome;
}

int64_t Guards::kinds_test(int fact_number) {
  speculate::GraphTest record;
  record.facts_key = frames_.frame().code->facts_key;
  record.fact = fact_number;
  record.is_about_kinds = true;
  record.span = frames_.user_span();
  writer_.output().tests.push_back(std::move(record));
  return static_cast<int64_t>(writer_.output().tests.size() - 1);
}

void Guards::guard_kinds(graph::Value* flag, int fact_number) {
  writer_.builder().append(
      op::guard, {flag},
      {{"id", kinds_test(fact_number)}, {"reason", std::string("kind_changed")}});
}

void Guards::learn_classes(const graph::Value* flag, bool outcome) {
  auto test = class_tests.find(flag);
  if (test == class_tests.end()) return;
  const ClassTest& known = test->second;
  state_.known_classes[known.object] = outcome ? KnownClasses{known.yes, known.yes_is_certain}
                                               : KnownClasses{known.no, known.no_is_certain};
}

graph::Value* Guards::negated_flag(graph::Value* flag) {
  graph::Value* negated = op::scalar_not(writer_.builder(), {flag});
  auto test = class_tests.find(flag);
  if (test != class_tests.end()) {
    ClassTest opposite = test->second;
    std::swap(opposite.yes, opposite.no);
    std::swap(opposite.yes_is_certain, opposite.no_is_certain);
    class_tests[negated] = std::move(opposite);
  }
  return negated;
}

}  // namespace janus::frontend
