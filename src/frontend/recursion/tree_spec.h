// Tree specifications: how a Python value is flattened to go in and out of a function of the graph.
// A specification holds what is known of the value. The rest are values of the graph, in order.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "frontend/control/symbolic_lists.h"
#include "frontend/core/interpreter.h"
#include "frontend/values/symbolic_list.h"

namespace janus::frontend {

struct TreeSpec {
  enum class Kind {
    same,        ///< always this very value
    object,      ///< an object met at run time
    number,      ///<
    tensor,      ///<
    tuple,       ///< of `parts`
    list,        ///< of `parts`, a new one
    grown,       ///< a new list of `elements`, of which only the run knows how many
    dictionary,  ///< of `parts` under `keys`, a new one
    instance,    ///< of the plain class `type`: its attributes, a new one
    shared       ///< the object that the part `index` is, counted from the first
  };
  Kind kind = Kind::same;
  Value value;                 ///< same
  Classes classes;             ///< object: those it may have
  graph::Type graph_type;      ///< number, tensor
  bool requires_grad = false;  ///< tensor, and so on
  bool is_leaf = true;
  std::optional<graph::Shape> strides;
  python::Object type;  ///< of a named tuple or an instance
  size_t index = 0;
  std::vector<python::Object> keys;
  std::vector<TreeSpec> parts;
  ElementForm elements;  ///< grown, and at which end
  bool front = false;
};

/// Whether the two specifications are equal, apart from the classes of objects.
bool same_spec(const TreeSpec& a, const TreeSpec& b);
/// Adds the classes of objects; whether there were new ones.
bool add_classes(TreeSpec& spec, const TreeSpec& more);
/// Forgets strides that differ; whether there were some.
bool join_strides(TreeSpec& spec, TreeSpec& other);
/// Whether the values can't be told apart.
bool same_value(const Value& a, const Value& b);
/// Whether both places are unknown or absent, or hold the same value.
bool same_held(const Held& a, const Held& b);

/// Flattens values.
class Flattening {
 public:
  /// `varies`: whether the part of that name is a parameter, although it could stay what it is.
  using Varies = std::function<bool(const std::string& part)>;
  /// `existed`: whether the object was there before, so that it keeps its identity.
  using Existed = std::function<bool(const AbstractValue& object)>;
  Flattening(Interpreter& interpreter, Varies varies, Existed existed)
      : interpreter_(interpreter), varies_(std::move(varies)), existed_(std::move(existed)) {}

  TreeSpec take(const Value& value, const std::string& part);

  std::vector<graph::Value*> values;             ///< of the graph, in order
  std::vector<std::shared_ptr<Tensor>> tensors;  ///< for each value its tensor, or null

 private:
  TreeSpec take_known(const Value& value, const std::string& part);
  TreeSpec take_tensor(const std::shared_ptr<Tensor>& tensor, const std::string& part);
  TreeSpec take_sequence(const Sequence& sequence, const std::string& part);
  TreeSpec take_grown(const Rolled& list);
  TreeSpec take_fields(const Dictionary& fields, TreeSpec::Kind kind, const std::string& part);
  void add(graph::Value* value, std::shared_ptr<Tensor> tensor = nullptr);

  Interpreter& interpreter_;
  Varies varies_;
  Existed existed_;
  std::map<const AbstractValue*, size_t> places_;
  size_t next_place_ = 0;
};

/// Unflattens values; `next` gives the graph's values in order.
class Rebuilding {
 public:
  Rebuilding(Interpreter& interpreter, std::function<graph::Value*(const graph::Type&)> next)
      : interpreter_(interpreter), next_(std::move(next)) {}
  Value make(const TreeSpec& spec);
  std::vector<std::shared_ptr<Tensor>> tensors;  ///< as those of Flattening

 private:
  Value make_new(const TreeSpec& spec);
  Interpreter& interpreter_;
  std::function<graph::Value*(const graph::Type&)> next_;
  std::vector<Value> places_;
};

/// The types of the graph's values, in order.
void collect_types(const TreeSpec& spec, std::vector<graph::Type>& types);

}  // namespace janus::frontend
