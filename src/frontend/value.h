// Abstract values: what the interpreter knows about a Python object while it runs a function
// symbolically.
//
//   Known       a Python object that exists now, and how it was reached (guards say that it still
//   is there) Number      a Python int, float or bool that the graph computes Tensor      a tensor
//   that the graph computes, with the Python identity, autograd state and aliases that eager would
//   give it Sequence, Dictionary, SetValue, SliceValue, Closure, Method, Instance   objects that
//   the function makes itself, kept as
//               their parts until they escape (virtual objects)
//   Deferred    an object that is made after the run from results (a formatted string)
//
// Values are shared: Python's aliasing is std::shared_ptr's. Identity (`is`) of virtual objects is
// pointer identity.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "python/object.h"
#include "speculate/generated.h"
#include "speculate/source.h"
#include "syntax/tree.h"

namespace janus::frontend {

enum class ValueKind {
  known,
  number,
  tensor,
  sequence,
  dictionary,
  set,
  slice,
  closure,
  method,
  iterator,
  deferred,
  unbound
};

struct AbstractValue {
  explicit AbstractValue(ValueKind kind) : kind(kind) {}
  virtual ~AbstractValue() = default;
  const ValueKind kind;
};
using Value = std::shared_ptr<AbstractValue>;

struct Known final : AbstractValue {
  Known(python::Object object, const speculate::Source* source)
      : AbstractValue(ValueKind::known), object(std::move(object)), source(source) {}
  python::Object object;
  const speculate::Source* source;  ///< null: made at generation time (a literal, a folded result)
};

struct Number final : AbstractValue {
  Number(graph::Type::Kind type) : AbstractValue(ValueKind::number), type(type) {}
  graph::Type::Kind type;  ///< i64, f64 or boolean
  graph::Value* value =
      nullptr;  ///< null while only `dim` is known (made on demand by the op `size`)
  std::optional<graph::Dim> dim;  ///< an int that is an expression of dimension symbols
};

/// A tensor with its identity. In-place operations give it a new `value`; views share `base`.
/// frontend/tensor.cpp keeps aliases consistent: reading a view whose base was written replays the
/// view.
struct Tensor final : AbstractValue {
  Tensor() : AbstractValue(ValueKind::tensor) {}
  graph::Value* value = nullptr;
  const speculate::Source* source = nullptr;  ///< reached from the entry; null: made inside
  python::Object object;                      ///< the real tensor, if it exists now
  std::string cell;  ///< name of its state cell, if it is state (parameters, buffers, arguments)
  bool requires_grad = false;
  bool is_leaf = true;
  bool is_parameter = false;
  uint32_t version = 0;  ///< counts in-place writes, as `_version` does
  // --- aliasing
  std::shared_ptr<Tensor> base;            ///< of a view
  const graph::Node* view_node = nullptr;  ///< the view operation, to replay and to scatter
  uint32_t seen_version = 0;               ///< of the base when `value` was computed
  // --- autograd
  Value grad;                  ///< of a leaf: null = not read yet; Known None; or a Tensor
  bool grad_replaced = false;  ///< `.grad` refers to another object than at entry: needs a rebind
};

struct Sequence final : AbstractValue {
  explicit Sequence(bool is_list) : AbstractValue(ValueKind::sequence), is_list(is_list) {}
  bool is_list;
  std::vector<Value> elements;
  python::Object type;  ///< a namedtuple's or torch.Size's class; null: list or tuple
  const speculate::Source* source =
      nullptr;  ///< reached from the entry (then writing is a heap write)
};

struct Dictionary final : AbstractValue {
  Dictionary() : AbstractValue(ValueKind::dictionary) {}
  std::vector<std::pair<python::Object, Value>>
      items;  ///< in order; keys are known, hashable objects
  const speculate::Source* source = nullptr;
};

struct SetValue final : AbstractValue {
  SetValue() : AbstractValue(ValueKind::set) {}
  std::vector<python::Object> elements;
};

struct SliceValue final : AbstractValue {
  SliceValue() : AbstractValue(ValueKind::slice) {}
  Value start, stop, step;
};

/// A variable that closures share.
struct Cell {
  Value value;  ///< null: unbound
};

/// A function or lambda defined during the run.
struct Closure final : AbstractValue {
  Closure() : AbstractValue(ValueKind::closure) {}
  const syntax::Tree* tree = nullptr;           ///< that it is defined in
  const syntax::Statement* function = nullptr;  ///< FunctionDef, or
  const syntax::Lambda* lambda = nullptr;
  std::vector<std::pair<std::string, std::shared_ptr<Cell>>> cells;
  std::vector<Value> defaults;
  std::vector<std::pair<std::string, Value>> keyword_defaults;
  Value globals_of;  ///< the Known function whose globals it sees
};

struct Method final : AbstractValue {
  Method(Value self, Value function)
      : AbstractValue(ValueKind::method), self(std::move(self)), function(std::move(function)) {}
  Value self, function;
};

struct Deferred final : AbstractValue {
  Deferred() : AbstractValue(ValueKind::deferred) {}
  speculate::Template recipe;
  python::Object type;  ///< exact class of what it will be
};

template <class T>
T* try_as(const Value& value);  // by kind; see value.cpp for the instances

}  // namespace janus::frontend
