// How objects of the real world become abstract values, and with which assumptions: constants are
// assumed equal, functions and classes identical, everything else of the same class; tensors and
// numbers that vary become inputs or state of the graph.
#include <algorithm>

#include "frontend/core/interpreter.h"
#include "frontend/values/strides.h"
#include "graph/run_time_symbols.h"
#include "ops/list.h"
#include "python/integer.h"
#include "speculate/test_number.h"
#include "frontend/values/constants.h"
#include "frontend/core/torch_objects.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/class_of.h"
#include "frontend/core/cells.h"
#include "frontend/values/unnamed_sizes.h"
#include "frontend/core/run_time_objects.h"

namespace janus::frontend {

using graph::Dim;
using graph::Type;
using python::Object;
using speculate::TensorFact;
using speculate::ValueFact;
using Level = speculate::ValueFact::Level;

namespace {

bool holds_float(PyObject* object) {
  if (!PyTuple_CheckExact(object)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
    if (PyFloat_CheckExact(PyTuple_GET_ITEM(object, i))) return true;
  return false;
}

/// A name for the textual form made of a path: letters, digits, points and underscores.
std::string graph_name(const Source* source) {
  std::string name;
  for (char c : source->describe()) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.')
      name += c;
    else if (!name.empty() && name.back() != '_')
      name += '_';
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  return name;
}

std::string symbol_name(size_t index) {
  static constexpr std::string_view letters[] = {"B", "T", "S", "N", "M", "K", "L", "P"};
  return index < std::size(letters) ? std::string(letters[index]) : cat("D", index);
}

/// Whether the path ends at something that the caller hands over: an argument or a part of one.
bool is_handed_over(const Source* source) {
  while (source->kind == Source::Kind::index || source->kind == Source::Kind::item)
    source = source->base;
  return source->kind == Source::Kind::argument || source->kind == Source::Kind::keyword ||
         source->kind == Source::Kind::variable;
}

graph::Shape dims_of(const std::vector<int64_t>& numbers) {
  return graph::Shape(numbers.begin(), numbers.end());
}

}  // namespace

bool is_identity_object(PyObject* object) {
  if (PyFunction_Check(object) || PyType_Check(object) || PyModule_Check(object) ||
      PyCFunction_Check(object) || Py_TYPE(object) == &PyMethodDescr_Type ||
      Py_TYPE(object) == &PyWrapperDescr_Type || Py_TYPE(object) == &PyGetSetDescr_Type ||
      Py_TYPE(object) == &PyMemberDescr_Type)
    return true;
  if (is_enumeration(Py_TYPE(object))) return true;
  return is_torch_constant(object);
}

Value Interpreter::wrap(PyObject* object, const Source* source) {
  if (source == nullptr) return constant_borrowed(object);
  auto cached = wrapped_.find(source);
  if (cached != wrapped_.end()) return cached->second;
  Value value = wrap_new(object, source);
  wrapped_.emplace(source, value);
  return value;
}

Value Interpreter::wrap_new(PyObject* object, const Source* source) {
  if (speculate::tensor_access().is_tensor(object)) return wrap_tensor(object, source);
  if (recursion_->is_run_time(source)) return entry_object(*this, object, source);
  Object owned = Object::borrow(object);
  if (PyLong_CheckExact(object) || PyFloat_CheckExact(object)) return wrap_number(object, source);
  Assumption::Kind kind = Assumption::Kind::exact_type;
  Object expected = Object::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  if (is_immutable_constant(object)) {
    // A tuple with floats (an optimizer's betas) is taken apart: each may vary by itself.
    if (holds_float(object) || (PyTuple_CheckExact(object) && has_varied(source)))
      return wrap_varying_tuple(object, source);
    if (PyBool_Check(object) && source->kind == Source::Kind::index && has_varied(source))
      return flag_input(object, source);
    kind = Assumption::Kind::equals;
    expected = owned;
  } else if (is_identity_object(object)) {
    kind = Assumption::Kind::identity;
    expected = owned;
  }
  assume(kind, source, expected);
  return std::make_shared<Known>(owned, source);
}

Value Interpreter::wrap_varying_tuple(PyObject* object, const Source* source) {
  assume(Assumption::Kind::exact_type, source,
         Object::borrow(reinterpret_cast<PyObject*>(&PyTuple_Type)));
  assume(Assumption::Kind::length, source, {}, PyTuple_GET_SIZE(object));
  auto sequence = std::make_shared<Sequence>(false);
  sequence->source = source;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
    sequence->elements.push_back(
        wrap(PyTuple_GET_ITEM(object, i), sources().step(Source::Kind::index, source, {}, i)));
  return sequence;
}

const ValueFact* Interpreter::path_fact(const std::string& path) const {
  if (entry_facts_ == nullptr) return nullptr;
  auto found = entry_facts_->paths.find(path);
  return found == entry_facts_->paths.end() ? nullptr : &found->second;
}

bool Interpreter::differs_from_call_to_call(const Source* source) const {
  for (; source != nullptr; source = source->base) {
    const ValueFact* seen = path_fact(source->describe());
    if (seen != nullptr && seen->level() > Level::value) return true;
  }
  return false;
}

// --- numbers ------------------------------------------------------------------------------------

Value Interpreter::wrap_number(PyObject* object, const Source* source) {
  bool general =
      generalises("specialise_numbers") && (PyFloat_CheckExact(object) || is_handed_over(source));
  bool varies =
      general || has_varied(source) || (!varying_.empty() && varying_.contains(source->describe()));
  if (varies && PyLong_CheckExact(object)) varies = python::int64_of(object).has_value();
  if (varies) return number_input(object, source);
  assume(Assumption::Kind::equals, source, Object::borrow(object));
  return std::make_shared<Known>(Object::borrow(object), source);
}

bool Interpreter::has_varied(const Source* source) const {
  const ValueFact* seen = path_fact(source->describe());
  return seen != nullptr && seen->level() > Level::value;
}

/// An element of a list of flags, each of which would otherwise double the number of graphs.
Value Interpreter::flag_input(PyObject* object, const Source* source) {
  assume(Assumption::Kind::boolean, source);
  Value flag = number(builder_.input(Type::boolean(), graph_name(source)), Object::borrow(object));
  output_.inputs.push_back({source});
  return flag;
}

Value Interpreter::number_input(PyObject* object, const Source* source) {
  bool is_int = PyLong_CheckExact(object);
  auto number = std::make_shared<Number>(is_int ? Type::Kind::i64 : Type::Kind::f64);
  std::string name = graph_name(source);
  Assumption assumption;
  assumption.source = source;
  if (is_int) {
    for (char& c : name)
      if (c == '.') c = '_';
    while (symbol_values_.contains(name)) name += '_';
    assumption.kind = Assumption::Kind::integer;
    assumption.symbol = name;
    symbol_values_[name] = PyLong_AsLongLong(object);
    number->dim = Dim::symbol(name, /*any_integer=*/true);
  } else {
    assumption.kind = Assumption::Kind::floating;
  }
  assume(std::move(assumption));
  number->value = builder_.input(is_int ? Type::i64() : Type::f64(), name);
  if (is_int) symbol_inputs_[name] = number->value;
  output_.inputs.push_back({source});
  number->example = Object::borrow(object);
  number->source = source;
  return number;
}

graph::Value* Interpreter::object_input(const Known& known) {
  TORCHJANUS_CHECK(known.source != nullptr, "object_input: an object without a source");
  graph::Value*& input = object_inputs_[known.source];
  if (input == nullptr) {
    input = builder_.input(Type::object(python::type_name(known.object.get())),
                           graph_name(known.source));
    output_.inputs.push_back({known.source});
  }
  return input;
}

graph::Value* Interpreter::list_input(const Source* source, const Type& element,
                                      speculate::ElementPart part) {
  graph::Value* input = builder_.input(Type::list(element), graph_name(source));
  output_.inputs.push_back({source, std::move(part)});
  return input;
}

void Interpreter::give_dimension(const Dim& dim, const Source* source) {
  const std::string name = graph::to_string(dim);
  graph::Value*& input = symbol_inputs_[name];
  if (input != nullptr) return;
  input = builder_.input(Type::i64(), name);
  output_.inputs.push_back({source});
}

void Interpreter::give_dimensions(const Type& tensor, const Source* source) {
  if (std::all_of(tensor.shape.begin(), tensor.shape.end(),
                  [](const Dim& dim) { return dim.is_constant(); }))
    return;
  builder_.input(tensor, graph_name(source));
  output_.inputs.push_back({source});
}

graph::Value* Interpreter::run_time_input(const Source* source) {
  graph::Value* value = builder_.input(Type::object("object"), graph_name(source));
  output_.inputs.push_back({source});
  return value;
}

void Interpreter::note_written(const Source* source, const Value& value) {
  auto read = wrapped_.find(source);
  const auto* known = read == wrapped_.end() ? nullptr : as<Known>(read->second);
  if (known == nullptr) return;
  PyObject* object = known->object.get();
  bool is_int = PyLong_CheckExact(object);
  if (!is_int && !PyFloat_CheckExact(object)) return;
  bool changes = false;
  if (const auto* number = as<Number>(value))
    changes = number->type == (is_int ? Type::Kind::i64 : Type::Kind::f64);
  else if (const auto* constant = as<Known>(value))
    changes = Py_TYPE(constant->object.get()) == Py_TYPE(object) &&
              PyObject_RichCompareBool(object, constant->object.get(), Py_EQ) == 0;
  if (changes) changed_numbers_.insert(source->describe());
}

Value Interpreter::constant(Object object) {
  if (!object) refuse_raised();
  return std::make_shared<Known>(std::move(object), nullptr);
}

Value Interpreter::string(const std::string& text) {
  return constant(Object::steal(
      PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()))));
}

Value Interpreter::dimension(const Dim& dim) {
  if (dim.is_constant()) return integer(dim.value());
  if (is_unnamed(dim))
    refuse(ReasonCode::dynamic_value, "the length of a list that only an activation knows");
  auto number = std::make_shared<Number>(Type::Kind::i64);
  number->dim = dim;
  if (std::optional<int64_t> now = evaluate(dim))
    number->example = Object::steal(PyLong_FromLongLong(*now));
  return number;
}

Value Interpreter::number(graph::Value* value, Object example) {
  auto number = std::make_shared<Number>(value->type.kind);
  number->value = value;
  number->example = std::move(example);
  return number;
}

std::optional<int64_t> Interpreter::evaluate(const Dim& dim) const {
  return dim.evaluate([&](const std::string& name) -> std::optional<int64_t> {
    auto found = symbol_values_.find(name);
    return found == symbol_values_.end() || run_time_dimensions_.contains(name)
               ? std::nullopt
               : std::optional(found->second);
  });
}

void Interpreter::assume_equal(const Dim& left, const Dim& right) {
  if (left == right) return;
  output_.dim_assumptions.push_back({left, right, user_span()});
}

std::optional<Dim> Interpreter::run_time_dimension(graph::Value* size) {
  if (auto known = run_time_size([&](const graph::Value* other) { return other == size; }))
    return known;
  const bool is_in_body = &builder_.block() == &output_.graph.body();
  if (recursion_->is_building() || (call_.keeps_sizes && !is_in_body)) return std::nullopt;
  if (!is_in_body) {
    // What was less in some run may be so in each, as a list that grows from round to round is.
    if (!expected_outcome(speculate::kUncounted)) return std::nullopt;
    follow(op::scalar_ge(builder_, {size, builder_.constant(int64_t{2})}), python::boolean(true),
           speculate::kUncounted);
  }
  const Dim dimension = new_dimension(builder_.block());
  give_size(dimension, size);
  note_run_time_size(size, dimension);
  return dimension;
}

Dim Interpreter::new_dimension(const graph::Block& block) {
  std::string name = cat("L", run_time_dimensions_.size());
  while (symbol_values_.contains(name)) name += '_';
  symbol_values_[name] = 0;
  run_time_dimensions_.emplace(name, &block);
  return Dim::symbol(name);
}

void Interpreter::give_size(const Dim& dimension, graph::Value* size) {
  const std::string name = graph::to_string(dimension);
  symbol_inputs_[name] = op::dimension(builder_, {size}, {{"symbol", name}});
}

std::optional<Dim> Interpreter::run_time_size(const std::function<bool(const graph::Value*)>& of) {
  const graph::Block* here = &builder_.block();
  for (const auto& [value, sizes] : run_time_sizes_)
    for (const auto& [size, block] : sizes)
      if ((block == here || is_open(block)) && of(value)) return size;
  return std::nullopt;
}

void Interpreter::note_run_time_size(const graph::Value* of, const Dim& size) {
  run_time_sizes_[of].push_back({size, &builder_.block()});
}

bool Interpreter::is_sized_in(const Type& type,
                              const std::function<bool(const graph::Block*)>& block) const {
  return std::ranges::any_of(run_time_dimensions_, [&](const auto& dimension) {
    return block(dimension.second) && graph::mentions(type, dimension.first);
  });
}

graph::Value* Interpreter::dimension_value(const Dim& dim) {
  if (dim.is_constant()) return builder_.constant(dim.value());
  std::string key = graph::to_string(dim);
  auto input = symbol_inputs_.find(key);
  if (input != symbol_inputs_.end()) return input->second;
  const std::vector<std::string> symbols = dim.symbols();
  const bool is_of_block = std::ranges::any_of(symbols, [&](const std::string& symbol) {
    const auto known = run_time_dimensions_.find(symbol);
    return known != run_time_dimensions_.end() && known->second != &output_.graph.body();
  });
  if (is_of_block) return op::size(builder_, {}, {{"of", graph::AttributeValue(dim)}});
  graph::Value*& value = dimension_values_[key];
  if (value == nullptr) {
    graph::Builder root = root_builder();
    value = op::size(root, {}, {{"of", graph::AttributeValue(dim)}});
  }
  return value;
}

graph::Value* Interpreter::graph_value(const Value& value) {
  if (const auto* known = as<Known>(value)) {
    PyObject* object = known->object.get();
    if (PyBool_Check(object)) return builder_.constant(object == Py_True);
    if (PyFloat_CheckExact(object)) return builder_.constant(PyFloat_AS_DOUBLE(object));
    if (PyLong_CheckExact(object)) {
      const std::optional<int64_t> number = python::int64_of(object);
      if (!number) refuse(ReasonCode::dynamic_value, "an int of more than 64 bits");
      return builder_.constant(*number);
    }
    refuse(ReasonCode::dynamic_value, "a number of an unexpected class");
  }
  auto* number = as<Number>(value);
  TORCHJANUS_CHECK(number != nullptr, "graph_value: not a number");
  if (number->value == nullptr) number->value = dimension_value(*number->dim);
  return number->value;
}

// --- tensors ------------------------------------------------------------------------------------

Dim Interpreter::entry_dimension(int64_t size, const ValueFact* seen, size_t dimension) {
  // Varying dimensions of the same size share a symbol: operators need to know that they fit. If
  // they were equal by chance, the entry check fails and the next graph names them apart.
  const auto fits = [&](const NamedSize& name) {
    return seen == nullptr || std::ranges::none_of(name.dimensions, [&](const auto& other) {
             return ValueFact::have_differed(*seen, dimension, *other.first, other.second);
           });
  };
  std::vector<NamedSize>& names = names_of_size_[size];
  auto name = std::ranges::find_if(names, fits);
  if (name == names.end()) {
    name = names.insert(names.end(), {.symbol = symbol_name(named_sizes_++), .dimensions = {}});
    while (symbol_values_.contains(name->symbol)) name->symbol += '_';
    symbol_values_[name->symbol] = size;
  }
  if (seen != nullptr) name->dimensions.emplace_back(seen, dimension);
  return Dim::symbol(name->symbol);
}

/// The tensor, if it was reached before. Where the paths were seen to lead to different tensors in
/// some call, they are two in the graph: it fits either way, as long as neither is changed
/// (refuse_changed_twins).
Value Interpreter::known_tensor(PyObject* object, const Source* source) {
  const auto& known = entry_tensors[object];
  const auto reached =
      std::ranges::find(known, source, [](const auto& each) { return each->source; });
  if (reached != known.end()) return *reached;
  const ValueFact* seen = path_fact(source->describe());
  for (const auto& tensor : known) {
    const ValueFact* other = path_fact(tensor->source->describe());
    if (!call_.keeps_aliases && !tensor->requires_grad && seen != nullptr && other != nullptr &&
        ValueFact::were_different(*seen, *other))
      continue;
    Assumption same;
    same.kind = Assumption::Kind::same_object;
    same.source = source;
    same.other = tensor->source;
    assume(std::move(same));
    return tensor;
  }
  return nullptr;
}

Value Interpreter::wrap_tensor(PyObject* object, const Source* source) {
  if (Value known = known_tensor(object, source)) return known;
  std::string why_not;
  std::optional<TensorFact> fact = speculate::tensor_access().describe(object, &why_not);
  if (!fact) refuse(ReasonCode::unsupported_tensor, cat(source->describe(), ": ", why_not));
  if (fact->has_hooks && !fact->is_leaf)
    refuse(ReasonCode::hook, cat("the tensor ", source->describe()));

  const bool contiguous = are_contiguous(dims_of(fact->sizes), dims_of(fact->strides));
  const ValueFact* seen = path_fact(source->describe());
  const bool general = generalises("specialise_shapes") && is_handed_over(source);
  auto varied = [&](size_t i) {
    if (!contiguous || fact->sizes[i] < 2) return false;
    if (seen == nullptr && !fact->is_parameter && recursion_->names_equal_sizes() &&
        names_of_size_.contains(fact->sizes[i]))
      return true;
    if (general || seen == nullptr) return general;
    return seen->varies(i);
  };
  Assumption assumption;
  assumption.kind = Assumption::Kind::tensor;
  assumption.source = source;
  speculate::TensorPattern& pattern = assumption.tensor;
  pattern.dtype = fact->dtype;
  for (size_t i = 0; i < fact->sizes.size(); ++i)
    pattern.dims.push_back(varied(i) ? entry_dimension(fact->sizes[i], seen, i)
                                     : Dim(fact->sizes[i]));
  if (!contiguous) pattern.strides = fact->strides;
  pattern.requires_grad = fact->requires_grad;
  pattern.is_leaf = fact->is_leaf;
  pattern.is_parameter = fact->is_parameter;
  pattern.may_be_view = fact->is_view;
  pattern.has_hooks = fact->has_hooks;

  auto tensor = std::make_shared<Tensor>();
  tensor->source = source;
  tensor->object = Object::borrow(object);
  tensor->requires_grad = fact->requires_grad;
  tensor->is_leaf = fact->is_leaf;
  tensor->is_parameter = fact->is_parameter;
  tensor->strides = contiguous ? contiguous_strides(pattern.dims) : dims_of(fact->strides);
  tensor->uncertain_alias = fact->is_view;
  tensor->storage = fact->storage;
  Type type = Type::tensor(pattern.dtype, pattern.dims);
  assume(std::move(assumption));
  if (is_handed_over(source) && !fact->is_parameter) {
    tensor->value = builder_.input(type, graph_name(source));
    output_.inputs.push_back({source});
  } else {
    tensor->value = read_cell(*this, *tensor, type);
  }
  if (tensor->requires_grad) differentiable.insert(tensor->value);
  if (fact->has_hooks) hooked_leaves.insert(tensor.get());
  existed_before(*tensor);
  entry_tensors[object].push_back(tensor);
  entry_tensor_order.push_back(tensor);
  return tensor;
}

}  // namespace janus::frontend
