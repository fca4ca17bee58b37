// What an operator is: one constinit OpDef, the only place that knows the operator (ops/*.cpp).
//
// From it derive: binding of Python calls, printer and parser, verifier, differentiation, fusion,
// fallback execution by ATen, documentation, and generated tests. A field that does not apply is
// left out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "graph/graph.h"
#include "graph/op_facts.h"
#include "graph/signature.h"

namespace janus::graph {

class Builder;

/// Facts about an operator from which legality of every transformation follows; combine with `|`.
enum class Trait : uint32_t {
  none = 0,
  pure = 1 << 0,  ///< result depends on operands alone, no effect: may be merged, moved and dropped
  elementwise =
      1 << 1,     ///< output element depends on the (broadcast) inputs' same element; has `scalar`
  view = 1 << 2,  ///< result shares memory with input 0 in eager; has `scatter` unless it cannot be
                  ///< written
  no_gradient =
      1 << 3,       ///< piecewise constant or integer: gradient is zero by nature (not: missing)
  random = 1 << 4,  ///< draws from the generator: keeps its order among random nodes
  reads_heap = 1 << 5,
  writes_heap = 1 << 6,
  writes_state = 1 << 7,  ///< commit, rebind
  may_fail = 1 << 8,      ///< guard; integer overflow; opaque calls: may end the run
  control = 1 << 9,       ///< has blocks that are executed
  composite = 1 << 10,    ///< has `decompose`; gone after the `decompose` pass
  commutative = 1 << 11,
  linear = 1 << 12,   ///< backward needs no value of operands or results
  product = 1 << 13,  ///< of matrices, or of one and a vector: computed by a library or code of its
                      ///< own, not in kernels
  communicates =
      1 << 14,  ///< with other processes (ops/collectives.h): stands in the graph's body,
                ///< runs once, in program order, and behind all that may end the run
};
constexpr Trait operator|(Trait a, Trait b) {
  return static_cast<Trait>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b));
}
constexpr Trait operator&(Trait a, Trait b) {
  return static_cast<Trait>(static_cast<uint32_t>(a) & static_cast<uint32_t>(b));
}
constexpr Trait operator~(Trait a) { return static_cast<Trait>(~static_cast<uint32_t>(a)); }
constexpr bool has(Trait set, Trait one) {
  return (static_cast<uint32_t>(set) & static_cast<uint32_t>(one)) != 0;
}

/// What a node does beside giving results. Nodes that share one of these keep their order.
constexpr Trait effect_traits = Trait::random | Trait::reads_heap | Trait::writes_heap |
                                Trait::writes_state | Trait::may_fail | Trait::communicates;

/// Wrong operands for an operator: what the verifier reports and what makes the frontend refuse.
class TypeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What a shape rule sees. It throws TypeError if the operator does not accept the operands.
struct Infer {
  const OpDef& op;
  std::span<Value* const> inputs;
  const Attributes& attributes;
  std::span<const std::unique_ptr<Block>> blocks;

  const Type& type(size_t input) const { return inputs[input]->type; }
  /// Throws TypeError("<op>: <message>").
  [[noreturn]] void fail(const std::string& message) const;
};

/// The result types of `op` on these operands. Checks operands and attributes against the
/// signature, then runs `infer`. TypeError if they do not fit; InternalError if `op` has no
/// `infer`.
std::vector<Type> infer_results(const OpDef& op, std::span<Value* const> inputs,
                                const Attributes& attributes,
                                std::span<const std::unique_ptr<Block>> blocks = {});

/// What there is to check of an operator whose result types are given: signature and `check`.
void check_given(const OpDef& op, std::span<Value* const> inputs, const Attributes& attributes,
                 std::span<const std::unique_ptr<Block>> blocks = {});

/// TypeError unless operands and attributes are of the kinds that the signature names. Attributes
/// that it does not name are refused, but for those that start with an underscore: notes that
/// passes leave for each other.
void check_signature(const OpDef& op, std::span<Value* const> inputs, const Attributes& attributes);

/// Adds the default of every attribute that is missing and writes numbers as numbers (a Dim that is
/// constant becomes an int64_t).
void fill_defaults(const OpDef& op, Attributes& attributes);

/// What folding sees: constants for some inputs. Returns the replacement value or null.
struct Fold {
  Builder& builder;
  const Node& node;                ///< in the old graph: attributes, types
  std::span<Value* const> inputs;  ///< in the new graph
};

/// What a gradient rule sees; everything it builds goes to `builder`. Operands and results are
/// values of the forward run. It calls `add` for each input that has a gradient; inputs that
/// `needs` is false for may be skipped.
class Vjp {
 public:
  virtual ~Vjp() = default;
  virtual Builder& builder() = 0;
  virtual const Node& node() const = 0;
  virtual Value* in(size_t index) const = 0;
  virtual Value* out(size_t index = 0) const = 0;
  /// Gradient of result `index`; null if it is zero (rules with one result always get one).
  virtual Value* dout(size_t index = 0) const = 0;
  virtual bool needs(size_t input) const = 0;
  /// Adds `gradient` (same shape and dtype as the input) to the gradient of input `index`.
  virtual void add(size_t input, Value* gradient) = 0;
  /// One more result of the node at hand, which its gradient keeps of the forward run; the
  /// attribute tells the operator to give it.
  virtual Value* add_output(Type type, std::string attribute, AttributeValue value) = 0;
};

/// A scalar program: how one element of an elementwise operator is computed. Implemented by the
/// LLVM emitter, and over doubles by the reference interpreter, so each operator's arithmetic
/// stands once.
class ScalarCode {
 public:
  enum class Compare { eq, ne, lt, le, gt, ge };
  struct Scalar {
    int id = -1;
    DType dtype = DType::f32;
  };
  virtual ~ScalarCode() = default;
  virtual const Node& node() const = 0;
  virtual size_t input_count() const = 0;
  /// Input `index`, already converted to the operation's compute type; `raw_input`: in its own
  /// type.
  virtual Scalar input(size_t index) = 0;
  virtual Scalar raw_input(size_t index) = 0;
  /// Type in which the operation computes (f16 and bf16 compute in f32). The result is converted to
  /// the output's dtype by the caller.
  virtual DType compute_type() const = 0;
  virtual Scalar constant(double value, DType dtype) = 0;
  virtual Scalar convert(
      Scalar a, DType dtype) = 0;  ///< as torch's `to`: float to int truncates, to bool is != 0
  virtual Scalar add(Scalar a, Scalar b) = 0;
  virtual Scalar sub(Scalar a, Scalar b) = 0;
  virtual Scalar mul(Scalar a, Scalar b) = 0;
  virtual Scalar div(Scalar a, Scalar b) = 0;  ///< floats: IEEE; integers: C's truncation
  virtual Scalar rem(Scalar a, Scalar b) = 0;  ///< C's fmod or %
  virtual Scalar neg(Scalar a) = 0;
  virtual Scalar bit_and(Scalar a, Scalar b) = 0;  ///< integers and bool
  virtual Scalar bit_or(Scalar a, Scalar b) = 0;
  virtual Scalar bit_xor(Scalar a, Scalar b) = 0;
  virtual Scalar compare(Compare how, Scalar a,
                         Scalar b) = 0;  ///< gives b1; with NaN only `ne` is true
  virtual Scalar select(Scalar condition, Scalar a, Scalar b) = 0;
  /// A function of the C maths library by name, element type implied: "exp", "log", "tanh", "sqrt",
  /// "pow", "erf", "floor", "ceil", "trunc", "nearbyint", "fabs", "log1p", "expm1", "sin", "cos",
  /// "atan2", ...
  virtual Scalar call(std::string_view function, std::span<const Scalar> arguments) = 0;
  Scalar call(std::string_view function, Scalar a) { return call(function, std::span(&a, 1)); }
};

/// Reverse of a view, for writes through it: the base with the part that the view shows replaced.
struct Scatter {
  Builder& builder;
  const Node& view;    ///< attributes of the view
  Value* base;         ///< current value of the base
  Value* replacement;  ///< new value of the view: same type as the view's result
};

/// A composite operator written with others. Returns as many values as the operator has results.
struct Decompose {
  Builder& builder;
  const Node& node;
  std::span<Value* const> inputs;
};

/// A node to be computed for many rows at once: those of its operands that differ from row to row
/// are stacked along a new first dimension.
struct Rows {
  Builder& builder;
  const Node& node;
  std::span<Value* const> inputs;    ///< what stands for its operands
  const std::vector<bool>& stacked;  ///< which of them have a row of each
};

/// Python's numbers.
using PythonNumber = std::variant<int64_t, double, bool>;

struct OpDef {
  std::string_view name;
  std::string_view doc;
  /// Parameters and results, see graph/signature.h.
  std::string_view schema;
  /// The ATen overload that computes it with the same arguments in the same order: "mm",
  /// "add.Tensor". Empty: the executor, a decomposition or the fusion compiler must.
  std::string_view aten = {};
  /// Python callables that mean it, separated by spaces. A leading `torch.` is left out:
  /// "relu Tensor.relu nn.functional.relu". In-place forms (`Tensor.relu_`, `relu_`) are implied by
  /// name.
  std::string_view python = {};
  Trait traits = Trait::pure;
  Role role = Role::none;

  // Facts: see op_facts.h. Those that are `unstated` here have to be stated, or follow from traits.

  ComputedBy computed_by = ComputedBy::unstated;
  Layout layout = Layout::unstated;
  Sees sees = Sees::unstated;
  Raises raises = Raises::unstated;
  Saves saves = Saves::unstated;
  Draws draws = Draws::unstated;
  /// Whether eager's gradient depends on exactly those values that ours does. False where nobody
  /// has looked: derivatives that are zero everywhere may tie eager's to more.
  bool has_plain_gradient = false;
  HalfGradient half_gradient = HalfGradient::unstated;
  /// Operands by which there is no derivative, separated by spaces: eager raises.
  std::string_view constants = {};
  /// A number that takes the place of elements has to fit their dtype, as eager checks.
  bool replaces_elements = false;
  Autocast autocast = Autocast::none;
  Access access = Access::whole;
  Combines combines = Combines::nothing;
  Reduces reduces = Reduces::nothing;
  Rounds rounds = Rounds::unstated;
  Cost cost = Cost::ordinary;
  Images images = {};

  std::vector<Type> (*infer)(const Infer&) = nullptr;
  /// In place of `infer`, for operators whose result types are given: checks the rest.
  void (*check)(const Infer&) = nullptr;
  Value* (*fold)(const Fold&) = nullptr;
  void (*vjp)(Vjp&) = nullptr;
  ScalarCode::Scalar (*scalar)(ScalarCode&) = nullptr;
  Value* (*scatter)(const Scatter&) = nullptr;
  std::vector<Value*> (*decompose)(const Decompose&) = nullptr;
  /// Of a view that sees a part of one dimension: which part its result `output` is.
  Part (*part)(const Node&, size_t output) = nullptr;
  /// The results for many rows, all stacked; none if there is no such form for these operands.
  /// Where there is no rule, rows are computed one by one (elementwise operators have one).
  std::vector<Value*> (*rows)(const Rows&) = nullptr;
  /// Whether the node adds something to its operand 0, which is one for all rows.
  bool (*adds)(const Node&) = nullptr;
  /// That operand with what all rows add to it; null if there is no such form.
  Value* (*sum_of_rows)(const Rows&) = nullptr;
  /// What an operator of Python's numbers computes; nullopt where Python would raise, give a
  /// complex number, or need an integer that does not fit (or is not exact): the run fails there.
  std::optional<PythonNumber> (*number)(std::span<const PythonNumber>) = nullptr;

  bool is(Trait trait) const { return has(traits, trait); }
  /// `schema`, parsed once.
  const Signature& signature() const;

  /// Appends a node and gives its first result: `op::mul(b, x, y)`. Attributes that are missing get
  /// the signature's default. (Defined with Builder.)
  Value* operator()(Builder& builder, std::initializer_list<Value*> inputs,
                    Attributes attributes = {}) const;
};

/// What the block states, or what follows from the rest of it; `unstated` if neither does.
Layout layout_of(const OpDef& op);
Raises raises_of(const OpDef& op);
Saves saves_of(const OpDef& op);

/// The operators known to a parser or a verifier.
class OpTable {
 public:
  explicit OpTable(std::span<const OpDef* const> ops);
  const OpDef* find(std::string_view name) const;  ///< null if there is none
  std::span<const OpDef* const> all() const { return ops_; }

 private:
  std::vector<const OpDef*> ops_;  // sorted by name
};

}  // namespace janus::graph
