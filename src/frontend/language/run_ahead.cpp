#include "frontend/language/run_ahead.h"

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "frontend/control/outcomes.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/keys.h"
#include "frontend/core/nesting.h"
#include "frontend/language/functions.h"
#include "frontend/language/handlers.h"
#include "frontend/values/constants.h"
#include "frontend/values/snapshot.h"
#include "graph/op.h"
#include "ops/list.h"
#include "ops/number.h"

namespace janus::frontend {

using speculate::ReasonCode;

namespace {

/// Whether two runs that yielded these can't be told apart by them.
class Sameness {
 public:
  explicit Sameness(Interpreter& interpreter) : interpreter_(interpreter) {}

  bool operator()(const Value& a, const Value& b) const {
    if (a == b) return true;
    if (a == nullptr || b == nullptr || a->kind != b->kind) return false;
    const Nesting deeper(interpreter_);
    switch (a->kind) {
      case ValueKind::known:
        return are_one_object(known_object(a), known_object(b));
      case ValueKind::number:
        return are_one_number(*as<Number>(a), *as<Number>(b));
      case ValueKind::tensor:
        return as<Tensor>(a)->source != nullptr && as<Tensor>(a)->source == as<Tensor>(b)->source;
      case ValueKind::run_time:
        return as<RuntimeObject>(a)->value == as<RuntimeObject>(b)->value;
      case ValueKind::sequence:
        return hold_the_same(*as<Sequence>(a), *as<Sequence>(b));
      case ValueKind::dictionary:
        return hold_the_same(*as<Dictionary>(a), *as<Dictionary>(b));
      case ValueKind::instance:
        return hold_the_same(*as<Instance>(a), *as<Instance>(b));
      case ValueKind::method:
        return (*this)(as<Method>(a)->self, as<Method>(b)->self) &&
               (*this)(as<Method>(a)->function, as<Method>(b)->function);
      default:
        return false;
    }
  }

  bool operator()(const std::vector<Value>& a, const std::vector<Value>& b) const {
    return std::ranges::equal(a, b, *this);
  }

 private:
  bool are_one_object(PyObject* a, PyObject* b) const {
    return a == b ||
           (is_immutable_constant(a) && Py_TYPE(a) == Py_TYPE(b) && same_key(interpreter_, a, b));
  }

  static bool are_one_number(const Number& a, const Number& b) {
    const bool is_known = a.value != nullptr || a.source != nullptr || a.dim.has_value();
    return is_known && a.type == b.type && a.value == b.value && a.source == b.source &&
           a.dim == b.dim;
  }

  bool hold_the_same(const Sequence& a, const Sequence& b) const {
    if (a.elements.rolled() != nullptr || b.elements.rolled() != nullptr || a.viewed || b.viewed)
      return false;
    return a.is_list == b.is_list && a.type.get() == b.type.get() && a.source == b.source &&
           (*this)(a.elements.known(), b.elements.known());
  }

  bool hold_the_same(const Dictionary& a, const Dictionary& b) const {
    const auto same_item = [&](const auto& one, const auto& other) {
      return are_one_object(one.first.get(), other.first.get()) &&
             (*this)(one.second, other.second);
    };
    return a.type.get() == b.type.get() && a.source == b.source && a.factory == b.factory &&
           a.attributes == b.attributes && std::ranges::equal(a.items, b.items, same_item);
  }

  bool hold_the_same(const Instance& a, const Instance& b) const {
    return a.type.get() == b.type.get() && (*this)(a.fields, b.fields) &&
           (*this)(a.items, b.items) && (*this)(a.elements, b.elements);
  }

  Interpreter& interpreter_;
};

/// Whether it handles GeneratorExit, which a generator is given where it is left.
bool handles_exit(const syntax::ExceptHandler& handler) {
  const auto is_other = [](const syntax::Expression* type) {
    const auto* name = syntax::try_as<syntax::Name>(type);
    return name != nullptr && name->id != "BaseException" && name->id != "GeneratorExit";
  };
  if (handler.type == nullptr) return true;
  const auto* several = syntax::try_as<syntax::Tuple>(handler.type);
  return several != nullptr ? !std::ranges::all_of(several->elts, is_other)
                            : !is_other(handler.type);
}

/// The values that a run yields, which it may hold and change later.
class Yielded {
 public:
  void add(const Value& value) {
    values.push_back(value);
    if (auto* changeable = dynamic_cast<Changeable*>(value.get()))
      if (as<Tensor>(value) == nullptr && held_.find(changeable) == nullptr) held_.add(*changeable);
  }
  bool is_as_it_was() const {
    return std::ranges::all_of(held_.objects(), &Snapshot::Saved::was_only_read);
  }
  std::vector<Value> values;

 private:
  Snapshot held_;
};

class AheadOfItsConsumer {
 public:
  AheadOfItsConsumer(Interpreter& interpreter, const Frame& generator, const syntax::Body& body)
      : interpreter_(interpreter),
        generator_(generator),
        arguments_(generator.variables->values),
        body_(body) {
    if (!generator.is_library && has_handler(body, handles_exit)) refuse();
    const SavedState before = SavedState::of(interpreter);
    const auto& nodes = interpreter.builder().block().nodes;
    const size_t first = nodes.size(), writes = interpreter.history.overwritten.size(),
                 effects = interpreter.effect_count();
    std::tie(elements_, returned_) = run();
    bool shows =
        writes != interpreter.history.overwritten.size() || effects != interpreter.effect_count();
    for (size_t i = first; i < nodes.size(); ++i) {
      calls_python_ = calls_python_ || nodes[i]->op == &op::python_call;
      shows = shows || !leaves_no_trace(*nodes[i]->op);
    }
    if (shows || !only_read(before, interpreter)) refuse();
    note_run();
  }

  const std::vector<Value>& elements() const { return elements_; }
  const Value& returned() const { return returned_; }

  /// Where an element is taken: runs once more if the program has done anything since, and refuses
  /// if that would yield something else.
  void check() {
    if (interpreter_.steps() == steps_) return;
    // Torch's generators go over modules, which are there before, and what these hold.
    if (is_of_before_ && interpreter_.modes == modes_ &&
        interpreter_.heap.change_count() == changes_)
      return;
    spent_ += elements_.size();
    if (calls_python_ || spent_ > kMostYields) refuse();
    const auto [elements, returned] = run();
    const Sameness same(interpreter_);
    if (!same(elements, elements_) || !same(returned, returned_)) refuse();
    note_run();
  }

 private:
  static constexpr size_t kMostYields = 20'000;  // chosen, not measured

  [[noreturn]] void refuse() const { interpreter_.refuse(ReasonCode::generator, generator_.name); }

  static bool leaves_no_trace(const graph::OpDef& op) {
    return op.role == graph::Role::constant || op.role == graph::Role::state ||
           op.role == graph::Role::size || &op == &op::python_call || ops::is_of_numbers(op);
  }

  void note_run() {
    steps_ = interpreter_.steps();
    modes_ = interpreter_.modes;
    changes_ = interpreter_.heap.change_count();
  }

  std::pair<std::vector<Value>, Value> run() {
    Frame frame = generator_;
    frame.variables = std::make_shared<Variables>();
    frame.variables->scope = generator_.variables->scope;
    frame.variables->parent = generator_.variables->parent;
    frame.variables->values = arguments_;
    const Modes modes = interpreter_.modes;
    const size_t changes = interpreter_.heap.change_count();
    const auto expect_nothing_changed = [&] {
      if (interpreter_.modes != modes || interpreter_.heap.change_count() != changes) refuse();
    };
    Yielded yielded;
    frame.runs_ahead = true;
    frame.at_yield = [&](const Value& value) {
      expect_nothing_changed();
      yielded.add(value);
      if (yielded.values.size() > static_cast<size_t>(Interpreter::most_rounds()))
        interpreter_.refuse(ReasonCode::limit, "a generator of too many values");
    };
    const Awaiting nothing(interpreter_, Awaiting::What::nothing);
    const Value returned = run_generator_body(interpreter_, frame, body_);
    expect_nothing_changed();
    if (!yielded.is_as_it_was()) refuse();
    return {std::move(yielded.values), value_where_returned(interpreter_, returned)};
  }

  static bool was_there_before(const Value& value) {
    const auto* method = as<Method>(value);
    return value == nullptr || known_object(value) != nullptr || as<Number>(value) != nullptr ||
           as<Closure>(value) != nullptr || (method != nullptr && was_there_before(method->self));
  }

  Interpreter& interpreter_;
  const Frame generator_;
  const VariableValues arguments_;
  const bool is_of_before_ =
      generator_.is_library && std::ranges::all_of(arguments_, [](const auto& each) {
        return was_there_before(each.second);
      });
  const syntax::Body& body_;
  std::vector<Value> elements_;
  Value returned_;
  bool calls_python_ = false;
  uint64_t steps_ = 0;  ///< of the interpretation, when it ran last
  Modes modes_;         ///< then, as are
  size_t changes_ = 0;  ///< those of the heap
  size_t spent_ = 0;    ///< how often it yielded in order to check
};

}  // namespace

Value run_ahead(Interpreter& interpreter, const Frame& generator, const syntax::Body& body) {
  const auto ahead = std::make_shared<AheadOfItsConsumer>(interpreter, generator, body);
  size_t position = 0;
  auto iterator = std::make_shared<Iterator>([ahead, position](Iterator& self) mutable -> Value {
    ahead->check();
    if (position < ahead->elements().size()) return ahead->elements()[position++];
    // Who asks once more is given None.
    self.returned = std::exchange(position, SIZE_MAX) == SIZE_MAX ? nullptr : ahead->returned();
    return nullptr;
  });
  iterator->type = &PyGen_Type;
  return iterator;
}

}  // namespace janus::frontend
