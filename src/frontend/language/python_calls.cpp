// Functions of Python's library that the run itself calls: those that draw numbers from Python's
// and NumPy's random generators or read a clock (in program order, as `python_draw` nodes), and
// functions of numbers that only the run knows (`python_call`, or an operator of the graph).
#include "frontend/language/python_calls.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/policy.h"
#include "frontend/control/effects.h"
#include "frontend/control/journal.h"
#include "frontend/control/list_parts.h"
#include "frontend/control/run_time_items.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/language/numbers.h"
#include "frontend/language/special_callables.h"
#include "frontend/objects/subscripts.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/make.h"
#include "frontend/values/number_kinds.h"
#include "ops/list.h"
#include "python/is_loaded.h"

namespace janus::frontend {

using graph::Type;
using python::Object;

namespace {

using Arguments = CallArguments;

Type number_type(Type::Kind kind) {
  if (kind == Type::Kind::boolean) return Type::boolean();
  return kind == Type::Kind::f64 ? Type::f64() : Type::i64();
}

/// The operands and the attribute `arguments` of a call.
class CallWriter {
 public:
  explicit CallWriter(Interpreter& interpreter) : interpreter_(interpreter) {}

  /// False: the value can't be handed over.
  bool add(const Value& value, const std::string& keyword = {}) {
    if (is_none(value)) {
      operands_.push_back(interpreter_.builder().none());
    } else if (is_number(value)) {
      operands_.push_back(interpreter_.graph_value(value));
    } else {
      return false;
    }
    write("_", keyword);
    return true;
  }
  void add_object(graph::Value* value) {
    operands_.push_back(value);
    write("_", {});
  }
  void add_range(size_t length, bool is_list) {
    write(cat(is_list ? "list(" : "range(", length, ")"), {});
  }
  bool add_all(const Arguments& arguments, size_t first) {
    for (size_t i = first; i < arguments.positional.size(); ++i)
      if (!add(arguments.positional[i])) return false;
    for (const auto& [name, value] : arguments.keywords)
      if (!add(value, name)) return false;
    return true;
  }

  graph::Node* append(const graph::OpDef& op, std::string_view function, std::vector<Type> types) {
    graph::Attributes attributes;
    attributes.set("function", std::string(function));
    attributes.set("arguments", arguments_);
    interpreter_.mark(speculate::LineMark::Kind::graph);
    return interpreter_.builder().append_unchecked(op, operands_, std::move(attributes),
                                                   std::move(types));
  }

 private:
  void write(std::string_view argument, const std::string& keyword) {
    if (!arguments_.empty()) arguments_ += ',';
    if (!keyword.empty()) arguments_ += keyword + "=";
    arguments_ += argument;
  }

  Interpreter& interpreter_;
  std::vector<graph::Value*> operands_;
  std::string arguments_;
};

// --- draws --------------------------------------------------------------------------------------

/// A place of functions that draw numbers or read a clock: a module, or the class of a generator.
struct Place {
  const char* prefix;
  bool has_instances;
};

constexpr Place clock{"time.", false};
constexpr Place python_module{"random.", false}, python_generator{"random.Random.", true};
constexpr Place numpy_module{"numpy.random.", false},
    numpy_state{"numpy.random.mtrand.RandomState.", true},
    numpy_generator{"numpy.random.Generator.", true};

/// A function whose result is one number of a type that does not depend on its arguments, as long
/// as there are at most so many of them.
struct NumberDraw {
  const char* name;
  Type::Kind kind;
  size_t most;
};

constexpr auto f64 = Type::Kind::f64;
constexpr auto i64 = Type::Kind::i64;
constexpr auto boolean = Type::Kind::boolean;

constexpr NumberDraw clocks[] = {
    {"time", f64, 0},
    {"perf_counter", f64, 0},
    {"monotonic", f64, 0},
    {"process_time", f64, 0},
    {"thread_time", f64, 0},
    {"time_ns", i64, 0},
    {"perf_counter_ns", i64, 0},
    {"monotonic_ns", i64, 0},
    {"process_time_ns", i64, 0},
};

constexpr NumberDraw python_draws[] = {
    {"random", f64, 0},          {"uniform", f64, 2},       {"triangular", f64, 3},
    {"gauss", f64, 2},           {"normalvariate", f64, 2}, {"lognormvariate", f64, 2},
    {"expovariate", f64, 1},     {"betavariate", f64, 2},   {"gammavariate", f64, 2},
    {"vonmisesvariate", f64, 2}, {"paretovariate", f64, 1}, {"weibullvariate", f64, 2},
    {"randint", i64, 2},         {"randrange", i64, 3},     {"getrandbits", i64, 1},
};

// With a size NumPy's give arrays; what would be a third argument is one.
constexpr NumberDraw numpy_draws[] = {
    {"random", f64, 0},      {"uniform", f64, 2}, {"normal", f64, 2}, {"standard_normal", f64, 0},
    {"exponential", f64, 1}, {"beta", f64, 2},    {"gamma", f64, 2},  {"lognormal", f64, 2},
    {"laplace", f64, 2},     {"choice", i64, 1},
};
/// Functions that numpy.random.Generator lacks, or whose results are NumPy's own integers there.
constexpr NumberDraw older_numpy_draws[] = {
    {"rand", f64, 0},    {"randn", f64, 0},    {"random_sample", f64, 0},
    {"randint", i64, 2}, {"binomial", i64, 2}, {"poisson", i64, 1},
};

/// Adds the generator as an operand if the function is a method of one. The object must be of
/// exactly that class, and exist before the call; false otherwise.
bool add_generator(GraphWriter& writer, CallWriter& call, const Arguments& arguments,
                   std::string_view function) {
  const auto* self = arguments.positional.empty() ? nullptr : as<Known>(arguments.positional[0]);
  if (self == nullptr || self->source == nullptr) return false;
  PyObject* type = imported(function.substr(0, function.rfind('.')));
  if (reinterpret_cast<PyObject*>(Py_TYPE(self->object.get())) != type) return false;
  call.add_object(writer.object_input(*self));
  return true;
}

bool is_integer(const Value& value) {
  if (const auto* number = as<Number>(value)) return number->type == i64;
  const auto* known = as<Known>(value);
  return known != nullptr && PyLong_CheckExact(known->object.get());
}

/// seed(n) of a module or a generator: a draw that gives nothing.
template <const Place& place>
Value call_seed(Interpreter& interpreter, const Arguments& arguments) {
  const size_t first = place.has_instances ? 1 : 0;
  if (arguments.positional.size() != first + 1 || !arguments.keywords.empty() ||
      !is_integer(arguments.positional[first]))
    return nullptr;
  const std::string path = cat(place.prefix, "seed");
  CallWriter call(interpreter);
  if (place.has_instances && !add_generator(interpreter, call, arguments, path)) return nullptr;
  if (!call.add(arguments.positional[first])) return nullptr;
  call.append(op::python_draw, path, {});
  return interpreter.none();
}

/// torch.manual_seed(n): the generators of other devices are seeded behind the run.
Value call_manual_seed(Interpreter& interpreter, const Arguments& arguments) {
  const Value* const seed =
      arguments.positional.empty() ? arguments.keyword("seed") : &arguments.positional[0];
  if (seed == nullptr || arguments.positional.size() + arguments.keywords.size() != 1 ||
      !is_integer(*seed))
    return nullptr;
  CallWriter call(interpreter);
  if (!call.add(*seed)) return nullptr;
  call.append(op::python_draw, "torch.default_generator.manual_seed", {});
  static PyObject* const others =
      python::import_attribute("torchjanus.seeds", "seed_other_devices").release();
  call_behind_run(interpreter, others, {.positional = {*seed}, .keywords = {}});
  return interpreter.constant_borrowed(imported("torch.default_generator"));
}

/// A number drawn; null if the arguments may ask for something else.
Value draw_number(Interpreter& interpreter, const Arguments& arguments, const NumberDraw& draw,
                  const Place& place) {
  const size_t first = place.has_instances ? 1 : 0;
  if (arguments.positional.size() + arguments.keywords.size() > draw.most + first) return nullptr;
  if (arguments.keyword("size") != nullptr || arguments.keyword("dtype") != nullptr) return nullptr;
  const std::string path = cat(place.prefix, draw.name);
  CallWriter call(interpreter);
  if (place.has_instances && !add_generator(interpreter, call, arguments, path)) return nullptr;
  // NumPy chooses from what is no int as from an array.
  if (path.starts_with("numpy") && path.ends_with(".choice") &&
      (arguments.positional.size() != 1 + first || !is_integer(arguments.positional.back())))
    return nullptr;
  if (!call.add_all(arguments, first)) return nullptr;
  graph::Node* node = call.append(op::python_draw, path, {number_type(draw.kind)});
  return interpreter.number(node->output());
}

/// elements[index], for an index that only the run knows: a number. Null if they are none of one
/// type.
Value choose(Interpreter& interpreter, const std::vector<Value>& elements, graph::Value* index) {
  bool is_range = true;
  for (size_t i = 0; i < elements.size(); ++i) {
    const auto* known = as<Known>(elements[i]);
    is_range = is_range && known != nullptr && PyLong_CheckExact(known->object.get()) &&
               PyLong_AsLong(known->object.get()) == static_cast<long>(i);
  }
  PyErr_Clear();
  if (is_range) return interpreter.number(index);
  if (elements.empty() || elements.size() > policy::kMostChosen) return nullptr;
  for (const Value& element : elements)
    if (!is_number(element)) return nullptr;
  graph::Builder& builder = interpreter.builder();
  graph::Value* chosen = interpreter.graph_value(elements.back());
  for (size_t i = elements.size() - 1; i-- > 0;) {
    graph::Value* element = interpreter.graph_value(elements[i]);
    if (element->type != chosen->type) return nullptr;
    graph::Value* is_it =
        op::scalar_eq(builder, {index, builder.constant(static_cast<int64_t>(i))});
    chosen = op::scalar_select(builder, {is_it, element, chosen});
  }
  return interpreter.number(chosen);
}

/// The functions that draw from a sequence: what they draw depends on its length only.
class SequenceDraw {
 public:
  SequenceDraw(Interpreter& interpreter, const Arguments& arguments, std::string path,
               bool of_instance)
      : interpreter_(interpreter),
        arguments_(arguments),
        path_(std::move(path)),
        call_(interpreter),
        first_(of_instance ? 1 : 0) {
    known_ = !of_instance || add_generator(interpreter, call_, arguments, path_);
  }

  Value choice() {
    if (!takes_sequence(1)) return nullptr;
    call_.add_range(size_, false);
    return pick(append(1)->outputs[0]);
  }

  Value sample() {
    const std::optional<size_t> count = count_argument();
    if (!count || !takes_sequence(2)) return nullptr;
    call_.add_range(size_, false);
    call_.add(interpreter_.integer(static_cast<int64_t>(*count)));
    return pick_all(*count);
  }

  Value choices() {
    const Value* k = arguments_.keyword("k");
    const std::optional<size_t> count = k != nullptr ? known_count(*k) : 1;
    if (!count || !takes_sequence(2)) return nullptr;
    if (arguments_.positional.size() != first_ + 1) return nullptr;
    call_.add_range(size_, false);
    call_.add(interpreter_.integer(static_cast<int64_t>(*count)), "k");
    return pick_all(*count);
  }

  Value shuffle() {
    if (!takes_sequence(1, false)) return nullptr;
    const Value& list = arguments_.positional[first_];
    call_.add_range(elements_.size(), true);
    Value shuffled = pick_all(elements_.size());
    if (shuffled == nullptr) return nullptr;
    auto all = std::make_shared<SliceValue>();
    all->start = all->stop = all->step = interpreter_.none();
    write_subscript(interpreter_, list, all, shuffled);
    return interpreter_.none();
  }

 private:
  static std::optional<size_t> known_count(const Value& value) {
    const auto* known = as<Known>(value);
    if (known == nullptr || !PyLong_CheckExact(known->object.get())) return std::nullopt;
    const long count = PyLong_AsLong(known->object.get());
    PyErr_Clear();
    if (count < 0 || count > 1000) return std::nullopt;
    return static_cast<size_t>(count);
  }

  std::optional<size_t> count_argument() const {
    if (arguments_.positional.size() == first_ + 2 && arguments_.keywords.empty())
      return known_count(arguments_.positional[first_ + 1]);
    const Value* k = arguments_.keyword("k");
    return k != nullptr && arguments_.keywords.size() == 1 ? known_count(*k) : std::nullopt;
  }

  /// Takes the sequence's elements; false if there are more arguments than are known here.
  /// `may_be_many`: whether those of a long one may be left to the run.
  bool takes_sequence(size_t most, bool may_be_many = true) {
    const size_t given = arguments_.positional.size() + arguments_.keywords.size();
    if (!known_ || arguments_.positional.size() <= first_ || given > first_ + most) return false;
    const Value& value = arguments_.positional[first_];
    const auto* known = as<Known>(value);
    if (known != nullptr && may_be_many && (varying_ = varying_elements(interpreter_, *known))) {
      size_ = static_cast<size_t>(PySequence_Fast_GET_SIZE(known->object.get()));
      return true;
    }
    const Value shadow = opened(interpreter_, value);
    const bool is_range = known != nullptr && Py_TYPE(known->object.get()) == &PyRange_Type;
    if (as<Sequence>(shadow) == nullptr && !is_range) return false;
    elements_ = elements_of(interpreter_, shadow);
    size_ = elements_.size();
    return size_ > 0;
  }

  graph::Node* append(size_t results) {
    return call_.append(op::python_draw, path_, std::vector<Type>(results, Type::i64()));
  }

  Value pick(graph::Value* index) {
    return varying_ ? varying_(interpreter_.number(index)) : choose(interpreter_, elements_, index);
  }

  Value pick_all(size_t count) {
    std::vector<Value> picked;
    graph::Node* node = append(count);
    for (graph::Value* index : node->outputs) {
      picked.push_back(pick(index));
      if (picked.back() == nullptr)
        interpreter_.refuse(ReasonCode::dynamic_value, cat("an element that ", path_, " takes"));
    }
    return make_list(std::move(picked));
  }

  Interpreter& interpreter_;
  const Arguments& arguments_;
  std::string path_;
  CallWriter call_;
  size_t first_;
  bool known_ = false;
  std::vector<Value> elements_;
  std::function<Value(const Value&)> varying_;  ///< in place of the elements
  size_t size_ = 0;
};

template <Value (SequenceDraw::*method)(), bool of_instance>
Value draw_from_sequence(Interpreter& interpreter, const Arguments& arguments,
                         std::string_view name) {
  const std::string path = cat(of_instance ? "random.Random." : "random.", name);
  SequenceDraw draw(interpreter, arguments, path, of_instance);
  if (Value drawn = (draw.*method)()) return drawn;
  interpreter.refuse(ReasonCode::dynamic_value, cat("what ", path, " takes"));
}

template <bool of_instance>
Value call_choice(Interpreter& interpreter, const Arguments& arguments) {
  return draw_from_sequence<&SequenceDraw::choice, of_instance>(interpreter, arguments, "choice");
}
template <bool of_instance>
Value call_sample(Interpreter& interpreter, const Arguments& arguments) {
  return draw_from_sequence<&SequenceDraw::sample, of_instance>(interpreter, arguments, "sample");
}
template <bool of_instance>
Value call_choices(Interpreter& interpreter, const Arguments& arguments) {
  return draw_from_sequence<&SequenceDraw::choices, of_instance>(interpreter, arguments, "choices");
}
template <bool of_instance>
Value call_shuffle(Interpreter& interpreter, const Arguments& arguments) {
  return draw_from_sequence<&SequenceDraw::shuffle, of_instance>(interpreter, arguments, "shuffle");
}

// --- functions of numbers -----------------------------------------------------------------------

struct NumberFunction {
  const char* path;
  /// The graph's operator for one argument; null: Python's function is called.
  const graph::OpDef* op;
  Type::Kind kind;
};

constexpr NumberFunction functions[] = {
    {"math.sin", &op::scalar_sin, f64},
    {"math.cos", &op::scalar_cos, f64},
    {"math.tan", &op::scalar_tan, f64},
    {"math.tanh", &op::scalar_tanh, f64},
    {"math.exp", &op::scalar_exp, f64},
    {"math.log", &op::scalar_log, f64},
    {"math.sqrt", &op::scalar_sqrt, f64},
    {"math.floor", &op::scalar_floor, i64},
    {"math.ceil", &op::scalar_ceil, i64},
    {"math.trunc", &op::scalar_int, i64},
    {"math.isnan", &op::scalar_isnan, Type::Kind::boolean},
    {"math.isinf", &op::scalar_isinf, Type::Kind::boolean},
    {"math.isfinite", &op::scalar_isfinite, Type::Kind::boolean},
    {"math.isclose", nullptr, Type::Kind::boolean},
    {"math.acos", nullptr, f64},
    {"math.acosh", nullptr, f64},
    {"math.asin", nullptr, f64},
    {"math.asinh", nullptr, f64},
    {"math.atan", nullptr, f64},
    {"math.atan2", nullptr, f64},
    {"math.atanh", nullptr, f64},
    {"math.cbrt", nullptr, f64},
    {"math.copysign", nullptr, f64},
    {"math.cosh", nullptr, f64},
    {"math.degrees", nullptr, f64},
    {"math.erf", nullptr, f64},
    {"math.erfc", nullptr, f64},
    {"math.exp2", nullptr, f64},
    {"math.expm1", nullptr, f64},
    {"math.fabs", nullptr, f64},
    {"math.fmod", nullptr, f64},
    {"math.gamma", nullptr, f64},
    {"math.hypot", nullptr, f64},
    {"math.ldexp", nullptr, f64},
    {"math.lgamma", nullptr, f64},
    {"math.log10", nullptr, f64},
    {"math.log1p", nullptr, f64},
    {"math.log2", nullptr, f64},
    {"math.nextafter", nullptr, f64},
    {"math.pow", nullptr, f64},
    {"math.radians", nullptr, f64},
    {"math.remainder", nullptr, f64},
    {"math.sinh", nullptr, f64},
    {"math.ulp", nullptr, f64},
    {"math.comb", nullptr, i64},
    {"math.factorial", nullptr, i64},
    {"math.gcd", nullptr, i64},
    {"math.isqrt", nullptr, i64},
    {"math.lcm", nullptr, i64},
    {"math.perm", nullptr, i64},
    {"builtins.int.bit_length", nullptr, i64},
    {"builtins.float.is_integer", nullptr, boolean},
};

bool any_varies(const Arguments& arguments) {
  for (const Value& value : arguments.positional)
    if (as<Number>(value) != nullptr) return true;
  for (const auto& [name, value] : arguments.keywords)
    if (as<Number>(value) != nullptr) return true;
  return false;
}

bool with_tensor(const Arguments& arguments) {
  return std::ranges::any_of(arguments.positional,
                             [](const Value& value) { return as<Tensor>(value) != nullptr; });
}

/// The arguments that are one-element tensors, as Python's functions take them: as numbers.
Arguments with_items(Interpreter& interpreter, const Arguments& arguments) {
  Arguments numbers = arguments;
  for (Value& value : numbers.positional)
    if (auto* tensor = as<Tensor>(value))
      value = convert_number(interpreter, item(interpreter, *tensor), f64);
  return numbers;
}

Value compute(Interpreter& interpreter, const Arguments& given, const NumberFunction& function) {
  // Tensors have no __trunc__, and nothing else stands in for it.
  if (function.op == &op::scalar_int && with_tensor(given))
    interpreter.refuse(ReasonCode::would_raise, "TypeError: math.trunc of a tensor");
  const Arguments arguments = with_items(interpreter, given);
  if (!any_varies(arguments)) return nullptr;
  CallWriter call(interpreter);
  if (function.op != nullptr && arguments.positional.size() == 1 && arguments.keywords.empty()) {
    const Value& argument = arguments.positional[0];
    return interpreter.number(
        (*function.op)(interpreter.builder(), {interpreter.graph_value(argument)}));
  }
  if (!call.add_all(arguments, 0)) return nullptr;
  graph::Node* node = call.append(op::python_call, function.path, {number_type(function.kind)});
  return interpreter.number(node->output());
}

// --- tables -------------------------------------------------------------------------------------

template <const auto& table, size_t index, const Place& place>
Value call_draw(Interpreter& interpreter, const Arguments& arguments) {
  return draw_number(interpreter, arguments, table[index], place);
}

/// The functions of the table at a place.
template <const auto& table, const Place& place>
void add_draws(std::vector<SpecialCallable>& all) {
  static std::array<std::string, std::size(table)> paths;
  const auto add = [&]<size_t... index>(std::index_sequence<index...> /*rows*/) {
    ((paths[index] = cat(place.prefix, table[index].name),
      all.push_back({paths[index].c_str(), call_draw<table, index, place>})),
     ...);
  };
  add(std::make_index_sequence<std::size(table)>());
}

template <size_t index>
Value call_function(Interpreter& interpreter, const Arguments& arguments) {
  return compute(interpreter, arguments, functions[index]);
}

template <size_t... index>
constexpr std::array<SpecialCallable, sizeof...(index)> function_rows(
    std::index_sequence<index...> /*rows*/) {
  return {{{functions[index].path, call_function<index>}...}};
}

}  // namespace

std::span<const SpecialCallable> python_callables() {
  static const std::vector<SpecialCallable> all = [] {
    static constexpr SpecialCallable sequence_draws[] = {
        {"random.choice", call_choice<false>},   {"random.Random.choice", call_choice<true>},
        {"random.sample", call_sample<false>},   {"random.Random.sample", call_sample<true>},
        {"random.choices", call_choices<false>}, {"random.Random.choices", call_choices<true>},
        {"random.shuffle", call_shuffle<false>}, {"random.Random.shuffle", call_shuffle<true>},
    };
    static constexpr auto rows = function_rows(std::make_index_sequence<std::size(functions)>());
    std::vector<SpecialCallable> result(rows.begin(), rows.end());
    add_draws<clocks, clock>(result);
    result.push_back({"torch.manual_seed", call_manual_seed});
    if (python::is_loaded("random")) {
      add_draws<python_draws, python_module>(result);
      add_draws<python_draws, python_generator>(result);
      result.push_back({"random.seed", call_seed<python_module>});
      result.push_back({"random.Random.seed", call_seed<python_generator>});
      result.insert(result.end(), std::begin(sequence_draws), std::end(sequence_draws));
    }
    return result;
  }();
  return all;
}

std::span<const SpecialCallable> numpy_callables() {
  if (!python::is_loaded("numpy.random")) return {};
  static const std::vector<SpecialCallable> all = [] {
    std::vector<SpecialCallable> result;
    add_draws<numpy_draws, numpy_module>(result);
    add_draws<numpy_draws, numpy_state>(result);
    add_draws<numpy_draws, numpy_generator>(result);
    add_draws<older_numpy_draws, numpy_module>(result);
    add_draws<older_numpy_draws, numpy_state>(result);
    result.push_back({"numpy.random.seed", call_seed<numpy_module>});
    result.push_back({"numpy.random.mtrand.RandomState.seed", call_seed<numpy_state>});
    return result;
  }();
  return all;
}

Value call_python(Interpreter& interpreter, std::string_view function, const Arguments& arguments,
                  Type::Kind kind) {
  CallWriter call(interpreter);
  if (!call.add_all(arguments, 0)) return nullptr;
  return interpreter.number(call.append(op::python_call, function, {number_type(kind)})->output());
}

}  // namespace janus::frontend
