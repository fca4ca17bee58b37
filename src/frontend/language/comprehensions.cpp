// Comprehensions and generator expressions: those that are consumed at once are loops and branches
// of the graph, elements of the others are taken one at a time.
#include "frontend/language/comprehensions.h"

#include <algorithm>

#include "frontend/control/branches.h"
#include "frontend/control/counted.h"
#include "frontend/control/journal.h"
#include "frontend/control/list_parts.h"
#include "frontend/control/loop_parts.h"
#include "frontend/control/loops.h"
#include "frontend/core/class_of.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/flags.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/language/assignment.h"
#include "frontend/language/conditions.h"
#include "frontend/language/evaluation.h"
#include "frontend/language/generators.h"
#include "frontend/language/iterated.h"
#include "frontend/objects/iteration.h"
#include "frontend/values/restart.h"
#include "frontend/values/snapshot.h"
#include "frontend/values/truth.h"
#include "ops/list.h"

namespace janus::frontend {

namespace {

/// Walks nested `for ... if ...` clauses, one element at a time.
class ElementStream {
 public:
  ElementStream(Interpreter& interpreter, const std::vector<syntax::Comprehension>& generators,
                const syntax::Scope* scope, std::function<Value()> element)
      : interpreter_(interpreter), generators_(generators), element_(std::move(element)) {
    for (const syntax::Comprehension& clause : generators)
      if (clause.is_async) interpreter.refuse(ReasonCode::generator, "an async comprehension");
    // The first iterable belongs to the scope around.
    Value iterable = evaluate_iterable(interpreter, *generators[0].iter);
    if (const auto* object = as<RuntimeObject>(iterable))
      iterable = expected_elements(interpreter, *object, generators[0].iter->fact,
                                   generators[0].iter->fact);
    iterators_.push_back(iterate(interpreter, iterable));
    code_ = interpreter.frame().code;
    is_library_ = interpreter.frame().is_library;
    name_ = interpreter.frame().name;
    variables_ = std::make_shared<Variables>();
    variables_->scope = scope;
    variables_->parent = interpreter.frame().variables;
  }

  Value next() {
    Frame frame = interpreter_.make_frame(code_, variables_, name_);
    frame.is_library = is_library_;
    return interpreter_.run_frame(frame, [this] { return advance(); });
  }

 private:
  Value advance() {
    while (!iterators_.empty()) {
      size_t depth = iterators_.size() - 1;
      Value item = iterators_.back()->next();
      if (item == nullptr) {
        iterators_.pop_back();
        continue;
      }
      assign(interpreter_, *generators_[depth].target, item);
      if (!passes(generators_[depth])) continue;
      if (depth + 1 == generators_.size()) return element_();
      Value iterable = evaluate_iterable(interpreter_, *generators_[depth + 1].iter);
      iterators_.push_back(iterate(interpreter_, iterable));
    }
    return nullptr;
  }

  bool passes(const syntax::Comprehension& clause) {
    for (const syntax::Expression* condition : clause.ifs)
      if (!test(interpreter_, *condition, condition->fact)) return false;
    return true;
  }

  Interpreter& interpreter_;
  const std::vector<syntax::Comprehension>& generators_;
  std::function<Value()> element_;
  std::vector<std::shared_ptr<Iterator>> iterators_;
  std::shared_ptr<const Code> code_;
  std::shared_ptr<Variables> variables_;
  std::string name_;
  bool is_library_ = false;
};

}  // namespace

std::shared_ptr<Iterator> generate_elements(Interpreter& interpreter,
                                            const std::vector<syntax::Comprehension>& generators,
                                            const syntax::Scope* scope,
                                            std::function<Value()> element) {
  auto stream = std::make_shared<ElementStream>(interpreter, generators, scope, std::move(element));
  auto generator = std::make_shared<Iterator>([stream] { return stream->next(); });
  generator->type = &PyGen_Type;
  return generator;
}

namespace {

/// Runs an action for each element of a comprehension that is consumed at once.
class ElementLoop {
 public:
  /// `enough` says before each iteration whether no more elements are needed; null: all are needed.
  ElementLoop(Interpreter& interpreter, const ElementMaker& maker,
              std::function<void(const Value&)> take, std::function<Truth()> enough = nullptr)
      : interpreter_(interpreter),
        maker_(maker),
        take_(std::move(take)),
        enough_(std::move(enough)) {}

  void run(const Iterated& first) {
    in_own_frame([&](Frame&) { go_over(0, first); });
  }

  /// All of it; the first clause is evaluated as well.
  void run(bool may_count) {
    Frame& outer = interpreter_.frame();
    in_own_frame([&](Frame& frame) {
      bool yields = false;
      Iterated first;
      interpreter_.in_frame(outer, [&] {
        const auto in_iteration = [&](const Value& item) {
          interpreter_.in_frame(frame, [&] { iterate_once(0, item); });
        };
        yields = !clause(0).is_async &&
                 for_each_yielded(interpreter_, *clause(0).iter, in_iteration) != nullptr;
        if (!yields) first = iterated_by(interpreter_, clause(0), may_count);
      });
      if (!yields) go_over(0, first);
    });
  }

 private:
  void in_own_frame(const std::function<void(Frame&)>& body) {
    Frame& outer = interpreter_.frame();
    auto variables = std::make_shared<Variables>();
    variables->scope = maker_.scope;
    variables->parent = outer.variables;
    Frame frame = interpreter_.make_frame(outer.code, variables, outer.name);
    frame.is_library = outer.is_library;
    interpreter_.run_frame(frame, [&] {
      body(frame);
      return Value();
    });
    outer.forks.insert(outer.forks.end(), frame.forks.begin(), frame.forks.end());  // they raise
  }

  const syntax::Comprehension& clause(size_t depth) const { return maker_.generators[depth]; }
  int fact(size_t depth) const { return clause(depth).iter->fact; }

  void go_over(size_t depth, const Iterated& iterated) {
    if (iterated.counted) return in_graph(depth, *iterated.counted);
    const std::shared_ptr<Iterator> iterator = iterate(interpreter_, iterated.value);
    if (enough_ == nullptr || !may_be_taken_ahead(iterated.value)) {
      for (int64_t iterations = 0; !is_enough(depth); ++iterations) {
        const Value item = iterator->next();
        if (item == nullptr) return;
        check_iterations(iterations);
        iterate_once(depth, item);
      }
      return;
    }
    std::vector<Value> items;
    while (Value item = iterator->next()) {
      items.push_back(std::move(item));
      check_iterations(static_cast<int64_t>(items.size()));
    }
    until_enough(depth, items, 0);
  }

  /// Whether it goes over what a generator function of the program yields.
  bool yields_all(size_t depth) {
    if (enough_ != nullptr || clause(depth).is_async) return false;
    const auto in_iteration = [&](const Value& item) { iterate_once(depth, item); };
    return for_each_yielded(interpreter_, *clause(depth).iter, in_iteration) != nullptr;
  }

  /// Whether it is unobservable which elements were taken, and when. It is observable for an
  /// iterator, and for objects that the program's own code iterates over.
  static bool may_be_taken_ahead(const Value& value) {
    if (as<Tensor>(value) != nullptr) return true;
    static PyObject* const name = PyUnicode_InternFromString("__iter__");
    PyTypeObject* const type = as<Iterator>(value) != nullptr ? nullptr : class_of(value);
    PyObject* const method = type == nullptr ? nullptr : _PyType_Lookup(type, name);
    return method != nullptr && !PyFunction_Check(method);
  }

  void check_iterations(int64_t iterations) const {
    if (iterations > Interpreter::most_rounds())
      interpreter_.refuse(ReasonCode::limit, "a comprehension of too many elements");
  }

  bool is_enough(size_t depth) {
    if (enough_ == nullptr) return false;
    const Truth truth = enough_();
    return truth.known ? *truth.known : interpreter_.follow(truth.flag, truth.example, fact(depth));
  }

  /// The items from `index` on, as long as more are needed.
  void until_enough(size_t depth, const std::vector<Value>& items, size_t index) {
    for (; index < items.size(); ++index) {
      const Truth truth = enough_();
      if (!truth.known && may_merge(interpreter_, fact(depth))) {
        choose_statements(
            interpreter_, truth, fact(depth), [] { return Completion::normal; },
            [&] {
              iterate_once(depth, items[index]);
              until_enough(depth, items, index + 1);
              return Completion::normal;
            });
        return;
      }
      if (truth.known ? *truth.known : interpreter_.follow(truth.flag, truth.example, fact(depth)))
        return;
      iterate_once(depth, items[index]);
    }
  }

  void in_graph(size_t depth, const Counted& counted) {
    Positions positions(interpreter_, counted);
    const syntax::Expression& place = *clause(depth).iter;
    LoopParts parts;
    parts.test = [&]() -> Truth {
      interpreter_.at(place);
      const Truth more = positions.has_next();
      return enough_ == nullptr ? more : unless_enough(more);
    };
    parts.iteration = [&] {
      interpreter_.at(place);
      const Value item = positions.next();
      // No iteration reads the comprehension's variables of another one.
      auto& variables = interpreter_.frame().variables->values;
      const VariableValues before = variables;
      iterate_once(depth, item);
      variables = before;
      return Completion::normal;
    };
    if (enough_ == nullptr) parts.iterations = [&] { return iterations_of(interpreter_, counted); };
    loop_in_graph(interpreter_, fact(depth), parts);
    interpreter_.mark(speculate::LineMark::Kind::graph, "a loop in the graph");
  }

  Truth unless_enough(const Truth& more) {
    const Value lacks = flag_value(interpreter_, negated(interpreter_, enough_()));
    return truth_of(interpreter_, both_flags(interpreter_, flag_value(interpreter_, more), lacks));
  }

  void iterate_once(size_t depth, const Value& item) {
    assign(interpreter_, *clause(depth).target, item);
    if_all(depth, 0);
  }

  /// The rest of an iteration, if the conditions from `index` on hold.
  Completion if_all(size_t depth, size_t index) {
    if (index == clause(depth).ifs.size()) {
      go_on(depth + 1);
      return Completion::normal;
    }
    const syntax::Expression& condition = *clause(depth).ifs[index];
    int fact = condition.fact;
    const Truth holds = evaluate_truth(interpreter_, condition, fact);
    interpreter_.at(condition);
    auto rest = [&] { return if_all(depth, index + 1); };
    auto skip = [] { return Completion::normal; };
    if (!holds.known && takes_both(interpreter_, fact))
      return choose_statements(interpreter_, holds, fact, rest, skip);
    const bool outcome =
        holds.known ? *holds.known : interpreter_.follow(holds.flag, holds.example, fact);
    return outcome ? rest() : skip();
  }

  void go_on(size_t depth) {
    if (depth == maker_.generators.size()) return take_(maker_.element());
    if (yields_all(depth)) return;
    go_over(depth, iterated_by(interpreter_, clause(depth), true));
  }

 public:
  /// What the clause goes over; counted only if `may_count`.
  static Iterated iterated_by(Interpreter& interpreter, const syntax::Comprehension& clause,
                              bool may_count) {
    if (clause.is_async) interpreter.refuse(ReasonCode::generator, "an async comprehension");
    const int fact = clause.iter->fact;
    if (may_count && iterations_vary(interpreter, fact))
      return evaluate_iterated(interpreter, *clause.iter,
                               {interpreter.frame().code->facts_key, fact});
    Iterated known;
    known.value = evaluate_iterable(interpreter, *clause.iter);
    if (const auto* object = as<RuntimeObject>(known.value))
      known.value = expected_elements(interpreter, *object, fact, fact);
    return known;
  }

 private:
  Interpreter& interpreter_;
  const ElementMaker& maker_;
  std::function<void(const Value&)> take_;
  std::function<Truth()> enough_;
};

ElementMaker maker_of(Interpreter& interpreter, const syntax::GeneratorExp& generator) {
  return {generator.generators, generator.scope,
          [&interpreter, &generator] { return evaluate(interpreter, *generator.elt); }};
}

// --- calls that stop early ----------------------------------------------------------------------

/// any(...), which stops at a true element, or all(...), at a false one.
Value any_or_all(Interpreter& interpreter, const syntax::GeneratorExp& generator, bool stop_at) {
  auto state = std::make_shared<Variables>();
  Value& found = state->values["found"];
  found = interpreter.boolean(false);
  const ElementMaker maker = maker_of(interpreter, generator);
  const auto take = [&](const Value& element) {
    const Truth truth = truth_of(interpreter, element);
    state->values["found"] = flag_value(interpreter, stop_at ? truth : negated(interpreter, truth));
  };
  const auto enough = [&] { return truth_of(interpreter, state->values["found"]); };
  const Iterated first = ElementLoop::iterated_by(interpreter, generator.generators[0], true);
  ElementLoop(interpreter, maker, take, enough).run(first);
  const Value found_one = state->values["found"];
  if (stop_at) return found_one;
  return flag_value(interpreter, negated(interpreter, truth_of(interpreter, found_one)));
}

/// next(... for ...), with a default or without.
Value next_element(Interpreter& interpreter, const syntax::Call& call,
                   const syntax::GeneratorExp& generator) {
  auto state = std::make_shared<Variables>();
  state->values["found"] = interpreter.boolean(false);
  state->values["element"] = std::make_shared<Undefined>();
  const ElementMaker maker = maker_of(interpreter, generator);
  const auto take = [&](const Value& element) {
    state->values["found"] = interpreter.boolean(true);
    state->values["element"] = element;
  };
  const auto found = [&] { return truth_of(interpreter, state->values["found"]); };
  const Iterated first = ElementLoop::iterated_by(interpreter, generator.generators[0], true);
  const Value otherwise = call.args.size() > 1 ? evaluate(interpreter, *call.args[1]) : nullptr;
  ElementLoop(interpreter, maker, take, found).run(first);
  interpreter.at(call);
  const Truth truth = found();
  const int fact = generator.generators[0].iter->fact;
  const Value element = state->values["element"];
  if (!truth.known && otherwise != nullptr && may_merge(interpreter, fact))
    return choose(interpreter, truth, fact, [&] { return element; }, [&] { return otherwise; });
  const bool is_there =
      truth.known ? *truth.known : interpreter.follow(truth.flag, truth.example, fact);
  if (is_there) return element;
  if (otherwise == nullptr) raise(interpreter, PyExc_StopIteration, "StopIteration");
  return otherwise;
}

/// Whether the callable gives for a generator what it gives for the list of its elements.
bool takes_all_elements(const Value& callee, PyObject* object) {
  static PyObject* const takers[] = {
      imported("builtins.sum"),  imported("builtins.list"),   imported("builtins.max"),
      imported("builtins.min"),  imported("builtins.sorted"), imported("builtins.tuple"),
      imported("builtins.dict"), imported("builtins.set"),    imported("builtins.frozenset")};
  if (object != nullptr)
    return std::ranges::any_of(takers, [&](PyObject* taker) { return object == taker; });
  const auto* method = as<Method>(callee);
  return method != nullptr && known_object(method->function) == imported("builtins.str.join");
}

/// Whether the callable needs each element by itself.
bool takes_known_elements(PyObject* object) {
  static PyObject* const takers[] = {imported("builtins.dict"), imported("builtins.set"),
                                     imported("builtins.frozenset")};
  return std::ranges::any_of(takers, [&](PyObject* taker) { return object == taker; });
}

Value call_with_list(Interpreter& interpreter, const Value& callee, const syntax::Call& expression,
                     const Value& list) {
  CallArguments all;
  all.positional = {list};
  for (const syntax::Keyword* keyword : expression.keywords) {
    if (keyword->arg.empty()) interpreter.refuse(ReasonCode::expression, "** of a call");
    all.keywords.emplace_back(keyword->arg, evaluate(interpreter, *keyword->value));
  }
  interpreter.at(expression);
  return call(interpreter, callee, all);
}

/// separator.join(... for ...) of a number of texts that only the run may know.
Value joined_texts(Interpreter& interpreter, const Value& callee, const syntax::Call& expression,
                   const syntax::GeneratorExp& generator) {
  const Iterated first = ElementLoop::iterated_by(interpreter, generator.generators[0], true);
  const ElementMaker maker = maker_of(interpreter, generator);
  if (!first.counted) {
    auto list = std::make_shared<Sequence>(true);
    const auto take = [&](const Value& element) { append(interpreter, *list, element); };
    ElementLoop(interpreter, maker, take).run(first);
    return call_with_list(interpreter, callee, expression, list);
  }
  JournalState noted;
  Journal texts(interpreter, noted);
  ElementLoop(interpreter, maker, [&](const Value& element) {
    if (class_of(element) != &PyUnicode_Type)
      interpreter.refuse(ReasonCode::would_raise, "TypeError: join() of other than texts");
    texts.add(make_template(interpreter, element));
  }).run(first);
  auto each = texts.each();
  if (!each)
    throw CannotMerge{{interpreter.frame().code->facts_key, generator.generators[0].iter->fact},
                      "texts that are made in several ways are joined"};
  auto joined = std::make_shared<Deferred>();
  joined->type = python::Object::borrow(reinterpret_cast<PyObject*>(&PyUnicode_Type));
  joined->recipe.kind = speculate::Template::Kind::call;
  joined->recipe.object = python::Object::borrow(imported("builtins.str.join"));
  joined->recipe.children.push_back(make_template(interpreter, as<Method>(callee)->self));
  joined->recipe.children.push_back(std::move(*each));
  return joined;
}

/// `max(range(n), ...)`, `list(enumerate(...))`: of a number of elements that only the run knows.
/// Null: it is another call.
Value call_with_counted(Interpreter& interpreter, const Value& callee,
                        const syntax::Call& expression) {
  const auto* inner = syntax::try_as<syntax::Call>(expression.args[0]);
  PyObject* const object = known_object(callee);
  if (inner == nullptr || expression.args.size() != 1 || !takes_all_elements(callee, object) ||
      takes_known_elements(object) || !may_merge(interpreter, inner->fact))
    return nullptr;
  const auto* function = syntax::try_as<syntax::Name>(inner->func);
  if (function == nullptr || (function->id != "range" && function->id != "enumerate" &&
                              function->id != "zip" && function->id != "reversed"))
    return nullptr;
  const TestKey key{interpreter.frame().code->facts_key, inner->fact};
  const Iterated iterated = evaluate_iterated(interpreter, *inner, key);
  if (!iterated.counted) return call_with_list(interpreter, callee, expression, iterated.value);
  auto list = std::make_shared<Sequence>(true);
  append_counted(interpreter, key, *list, *iterated.counted, false);
  return call_with_list(interpreter, callee, expression, list);
}

}  // namespace

std::shared_ptr<Sequence> list_of_elements(Interpreter& interpreter, const ElementMaker& maker,
                                           bool may_roll) {
  auto list = std::make_shared<Sequence>(true);
  const auto take = [&](const Value& element) { append(interpreter, *list, element); };
  ElementLoop(interpreter, maker, take).run(may_roll);
  return list;
}

Value call_with_elements(Interpreter& interpreter, const Value& callee,
                         const syntax::Call& expression) {
  if (expression.args.empty()) return nullptr;
  PyObject* const object = known_object(callee);
  const auto* generator = syntax::try_as<syntax::GeneratorExp>(expression.args[0]);
  if (generator == nullptr) return call_with_counted(interpreter, callee, expression);
  const bool is_plain = expression.keywords.empty() && expression.args.size() == 1;
  if (is_plain && object == imported("builtins.any"))
    return any_or_all(interpreter, *generator, true);
  if (is_plain && object == imported("builtins.all"))
    return any_or_all(interpreter, *generator, false);
  if (expression.keywords.empty() && expression.args.size() <= 2 &&
      object == imported("builtins.next"))
    return next_element(interpreter, expression, *generator);
  if (!takes_all_elements(callee, object) || expression.args.size() != 1) return nullptr;
  const auto* method = as<Method>(callee);
  if (is_plain && method != nullptr && known_object(method->self) != nullptr)
    return joined_texts(interpreter, callee, expression, *generator);
  return call_with_list(interpreter, callee, expression,
                        list_of_elements(interpreter, maker_of(interpreter, *generator),
                                         !takes_known_elements(object)));
}

}  // namespace janus::frontend
