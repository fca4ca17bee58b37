// What the frontend asks torch about operators that the graph has no operator of its own for (the
// `opaque` operator). torch/ implements it; no torch header is needed here.
//
// An `opaque` node names one ATen overload. Its attributes:
//   operator="aten::std.correction"   the overload
//   operands="self,indices*3"         arguments of the overload that are the node's inputs, in
//                                     order; `name*n`: a list made of the next n inputs
//   <argument>=<value>                every other argument by its name; left out: its default
// Its results are the overload's results in order (a list result is spread). An input for a missing
// optional operand is a `constant` of type none.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/core/operations.h"
#include "graph/attribute.h"
#include "graph/type.h"
#include "python/object.h"

namespace janus::frontend {

/// One argument of a call as the frontend knows it.
struct OperatorArgument {
  enum class Kind {
    tensor,     ///< a graph tensor of type `type`
    number,     ///< a graph number of type `type` that varies from call to call
    dimension,  ///< an int that is the expression `dim`
    constant,   ///< the Python object `object`: None, bool, int, float, str, dtype, ...
    sequence    ///< a list or tuple of `elements`
  };
  Kind kind = Kind::constant;
  std::string keyword;  ///< empty: positional
  graph::Type type;
  std::vector<int64_t> strides;  ///< tensors: empty means contiguous (or not known)
  bool requires_grad = false;    ///< tensors
  graph::Dim dim;
  python::Object object;
  std::vector<OperatorArgument> elements;

  /// Whether it is a number that differs from run to run.
  bool is_varying_number() const {
    return kind == Kind::number || (kind == Kind::dimension && !dim.is_constant());
  }
};

/// A call of an operator as Python made it, and which of its results is meant.
struct ProducingCall {
  python::Object callable;
  std::vector<OperatorArgument> arguments;
  size_t result = 0;
};

/// An overload and what it gives for such arguments.
struct ResolvedOperator {
  graph::Attributes attributes;  ///< of the `opaque` node
  /// The node's inputs, in order, as pointers into the arguments given; null: a `constant` none.
  std::vector<const OperatorArgument*> operands;
  std::vector<graph::Type> results;
  /// Shape of what Python gets: the one tensor; a tuple (of class `result_class` if not null); a
  /// list.
  enum class Packing { single, tuple, list } packing = Packing::single;
  python::Object result_class;
  /// By result: whether eager's result would require grad (grad mode on, inputs as given), the name
  /// of its grad_fn, and the operand (index into `operands`) that it shares memory with, or -1.
  std::vector<bool> differentiable;
  std::vector<std::string> grad_fn_names;
  std::vector<int> alias_of;
  /// By result: whether autograd keeps it as it came out, and raises if it is written before.
  std::vector<bool> is_saved;
  /// By result: the argument that the result is itself, the very same tensor; else null.
  std::vector<const OperatorArgument*> same_as;
  /// Operands, by index, that autograd gives no gradient whatever the data.
  std::set<size_t> without_gradient;
  /// Of numbers that differ from run to run: if one is 0, other operands get none either.
  bool zero_ends_gradient = false;
  bool mutates = false;  ///< writes to an argument: no `opaque` node can be made of it
  bool random = false;   ///< draws from the default generator
};

/// What is known of an operator of torch and not said by its schema.
struct OperatorFacts {
  bool writes_unsaid = false;    ///< to running statistics
  bool gives_argument = false;   ///< itself, for some arguments, whatever their strides are
  bool gives_in_order = false;   ///< what lies in the order of its indices, whatever it is given
  bool looks_at_memory = false;  ///< goes by where an operand lies, not only by what it holds
  bool needs_data = false;       ///< of tensors without data it gives other sizes
  /// Operands that only some of its results lead to get no gradient where eager goes back from the
  /// others alone, and not zeros.
  bool gives_apart = false;
  /// Its in-place form counts as a write even where it gives its argument itself.
  bool always_writes = false;
  /// Its in-place form keeps no copy of what its gradient needs: backward() raises.
  bool overwrites_saved = false;
  /// The function takes the tensor as second argument; the method in place takes it as self.
  bool takes_self_second = false;
};

/// Why there is no ResolvedOperator.
struct WhyUnresolved {
  std::string text;
  /// A number that varies says how large a result is: as a dimension it could be expressed.
  bool numbers_are_sizes = false;
};

class TorchServices {
 public:
  virtual ~TorchServices() = default;

  /// The name of the operator that a builtin of torch (`torch.cumsum`, `Tensor.cumsum`,
  /// `torch._C._nn.gelu`, ...) dispatches to: "aten::cumsum"; or that stands in torch.ops, with an
  /// overload if it is one: "mine::f", "mine::f.default". Nullopt if it is none of these. For
  /// methods the first argument is self.
  virtual std::optional<std::string> operator_name(PyObject* callable) const = 0;

  /// `name`: as `operator_name` gives it, without the underscore of an in-place form.
  virtual OperatorFacts facts(std::string_view name) const = 0;

  /// Whether an operator of that name, or one of its overloads, is made of others, which torch
  /// calls one by one: a mode that is on is on for them.
  virtual bool is_composite(std::string_view name) const = 0;

  /// Whether the binding of that operator takes a number at this position or, unless it is empty,
  /// by this keyword: an overload has something else than a tensor there, or a number stands for
  /// one.
  virtual bool takes_number(std::string_view name, size_t position,
                            std::string_view keyword) const = 0;

  /// Finds the overload of `name` that torch would choose and what it gives. Nullopt with
  /// `why_not` filled if there is none, or if the result shapes can't be expressed.
  virtual std::optional<ResolvedOperator> resolve(std::string_view name,
                                                  std::span<const OperatorArgument> arguments,
                                                  WhyUnresolved& why_not) const = 0;

  /// Eager's name of the autograd node behind the result, "AddmmBackward0"; empty if the call
  /// can't be tried on tensors without data.
  virtual std::string grad_fn_name(const ProducingCall& call) const = 0;
};

/// Whether Python's callables take the keyword for the parameter: some go by numpy's names, too.
bool names_parameter(std::string_view keyword, std::string_view parameter);

/// Set once by torch/ at start-up.
TorchServices& torch_services();
void set_torch_services(TorchServices* services);

}  // namespace janus::frontend
