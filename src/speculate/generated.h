// The result of the generator: a graph, its assumptions, and how its inputs, state and results
// correspond to Python objects. All of it is data. guards.h checks it, dispatch.h runs it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "execute/program/program.h"
#include "graph/graph.h"
#include "speculate/element_pattern.h"
#include "speculate/reason.h"
#include "speculate/source.h"
#include "speculate/tensor_access.h"
#include "syntax/tree.h"

namespace janus::speculate {

/// One assumption about the object at a source.
struct Assumption {
  enum class Kind {
    identity,    ///< x is `object` (kept by weak reference if its type allows one)
    exact_type,  ///< type(x) is `object`
    equals,  ///< same exact type and equal to `object` (int, float by bits, str, bytes, bool, None,
             ///< tuple of such)
    length,  ///< len(x) == `number` (list, tuple, dict, set)
    keys,    ///< a dict's keys in order are the tuple `object`
    missing_key,        ///< a dict, set (or instance __dict__) has no key `object`
    has_key,            ///< a dict, set (or instance __dict__) has the key `object`
    missing_attribute,  ///< type lookup on x (a type; else on its type) finds nothing for `object`
    truth,              ///< bool(x) == (number != 0), for containers and numbers
    tensor,             ///< a tensor that matches `tensor`
    integer,          ///< exactly an int that fits 64 bits; binds the symbol `symbol` if not empty
    floating,         ///< exactly a float
    boolean,          ///< exactly a bool (value free)
    no_grad_value,    ///< the tensor's .grad is None
    elements,         ///< a list or tuple of `symbol` elements, each of which matches `elements`
    same_object,      ///< x is the object at `other`
    not_same_object,  ///< x is not the object at `other`; without `other`: all objects with this
                      ///< `number` are distinct
    separate_memory   ///< no written tensor (`number` is 1) shares memory with another tensor that
                      ///< has this assumption; with `elements`: of the tensors in the list
  };
  Kind kind;
  const Source* source = nullptr;
  const Source* other = nullptr;
  python::Object object;
  int64_t number = 0;
  std::string symbol;
  TensorPattern tensor;
  std::shared_ptr<const ElementPattern> elements;
  graph::SourceSpan span;  ///< the line that needs the assumption
};

/// An equation between symbolic dimensions that must hold at entry, e.g. `B*4 == N`.
struct DimAssumption {
  graph::Dim left, right;
  graph::SourceSpan span;
};

/// One graph input, in the graph's order: the object at `source`, a tensor or number. For an input
/// that is a list of the graph: that part of each element.
struct InputBinding {
  const Source* source;
  ElementPart part = {};
};

/// A mutable place that the graph reads (`state`) or writes (`commit`, `rebind`), by its name in
/// the graph.
struct CellBinding {
  enum class Kind {
    tensor,     ///< the tensor at `source`: `state` reads its contents, `commit` writes them
    grad,       ///< the .grad of the tensor at `source`: `rebind` sets it (none: to None)
    data,       ///< the storage of the tensor at `source`: `rebind` replaces it
    attribute,  ///< attribute `key` of the object at `source`, set with setattr
    item,       ///< item `key` of the object at `source`
    global,     ///< global `key` of the function at `source`
  };
  std::string name;
  Kind kind = Kind::tensor;
  const Source* source = nullptr;
  python::Object key;
  int64_t writes = 0;  ///< of `data`: in-place writes that the version of the tensor counts
};

/// How to build a Python object after the run: a tree of materialisation steps.
struct Template {
  enum class Kind {
    constant,  ///< `object`
    source,    ///< the object at `source`
    result,    ///< result `index` of the graph as a Python object (tensor, int, float, bool)
    tuple,
    list,
    dict,
    set,  ///< of `children`; dict: key, value, key, value
    slice,
    call,  ///< object(*children[:positional], **{names: rest}): f-strings, str.format, namedtuples,
           ///< ...
    each,  ///< a list: `children[0]` for each position of the lists that the other children are
    item,  ///< in `each` and `replay`: the current element of list `index`
    replay,  ///< None: effects of loop iterations in order. `children[0]` lists which of the other
             ///< children comes next; each of them is as `each` and advances by one position
    instance,  ///< an object of the class `object`: `children` are names and values of attributes,
               ///< from `index` on keys and items of a dict, or one list of the elements of a list
    unbound,   ///< a variable that has no value
    shared,    ///< the same object as the template whose `place` is `index` (aliases, cycles)
  };
  static constexpr size_t kNoPlace = SIZE_MAX;
  Kind kind = Kind::constant;
  python::Object object;
  const Source* source = nullptr;
  size_t index = 0;
  /// A number that is unique in the graph, if `shared` templates refer to this one.
  size_t place = kNoPlace;
  std::vector<Template> children;
  std::vector<std::string> keyword_names;  ///< call: names of the last children
};

/// One write to an object from before the call, made at the commit. Nothing can fail by then: the
/// guards hold, and all values are built.
struct HeapWrite {
  enum class Kind {
    attribute,  ///< object.__setattr__(owner, key, value), where no descriptor stands in the way
    item,       ///< owner[key] = value; the owner is a dict
    tail,       ///< owner[index:] = value of a list; `index` kEnd: owner.extend(value)
    clear,      ///< owner.clear() of a dict or set
    member,     ///< owner.add(key) of a set; deleted: owner.discard(key)
    extend,     ///< removes the first `index` elements of a deque, then owner.extend(value)
    global,     ///< owner.__globals__[key] = value; the owner is a function
    cell,       ///< owner.__closure__[index].cell_contents = value
    context_variable,  ///< owner.set(value)
    met  ///< attributes of objects discovered at run time: `key` has their names, `value` for each
         ///< name the writes, tuples that begin with object and value; with several names, the
         ///< last child has the number of the name of each write
  };
  static constexpr size_t kEnd = SIZE_MAX;
  Kind kind = Kind::attribute;
  const Source* owner = nullptr;
  python::Object key;
  size_t index = 0;
  bool deletes = false;  ///< removes the key if it is there
  Template value;
};

/// A call to be made after the commit (print, logging), in program order.
struct Effect {
  Template call;
  graph::SourceSpan span;
};

/// The test of a `guard` node, whose attribute "id" is the index into Generated::tests.
struct GraphTest {
  python::Object facts_key;  ///< the key of its facts (ProfileStore::find)
  int fact = -1;             ///< its number in them; -1: the test has no fact
  bool outcome = true;       ///< the side that the graph follows
  /// The test is about what the fact has seen (a class, the kind of an attribute), not about a
  /// branch: a better graph needs a profile that has seen more.
  bool is_about_kinds = false;
  graph::SourceSpan span;
};

/// What became of a source line, for explain().
struct LineMark {
  graph::SourceSpan span;
  enum class Kind { graph, assumed, constant, effect } kind = Kind::graph;
  std::string note;  ///< "unrolled 3 times", "inlined Linear.forward", "assumes x.shape[1] == 784"
};

/// The reducer of a wrapper of DistributedDataParallel that a graph calls.
struct UsedReducer {
  void* reducer = nullptr;  ///< c10d::Reducer, which the assumptions keep alive in a call
  /// The run's gradients are its process's own: an earlier forward pass must not have told the
  /// reducer to share the next ones.
  bool must_not_wait = false;
};

struct Generated {
  explicit Generated(graph::Graph g) : graph(std::move(g)) {}
  graph::Graph graph;
  std::shared_ptr<SourceTable> sources;  ///< owns every Source below
  std::vector<Assumption> assumptions;
  std::vector<DimAssumption> dim_assumptions;
  Environment environment;
  std::vector<InputBinding> inputs;
  std::vector<CellBinding> cells;
  /// Of a function: the returned value. Of statements: a tuple (end, returned value, assigned
  /// variables in scope order), where end is 0 fell through, 1 continue, 2 break, 3 return.
  Template result;
  std::vector<HeapWrite>
      writes;  ///< in program order, after tensors are written and before the effects
  std::vector<Effect> effects;
  std::vector<GraphTest> tests;
  std::vector<python::Object> objects;  ///< objects that nodes refer to by number: classes, None
  std::vector<LineMark> lines;
  /// The results that have a grad_fn in eager, by result index, with the name of that node.
  struct DifferentiableResult {
    size_t result;
    std::string grad_fn_name;  ///< "NllLossBackward0"
    bool consumed = false;     ///< backward already ran through it without retain_graph
    /// Of a list whose elements differ in that name: the result that lists the numbers of the names
    /// in `names`.
    std::optional<size_t> name_numbers = std::nullopt;
    std::vector<std::string> names = {};
  };
  std::vector<DifferentiableResult> differentiable_results;
  /// Results whose layout is not contiguous, or known to the run only.
  std::vector<execute::ShownResult> shown_results;
  /// The graph inputs and tensor cells (by name) that these results have gradients to.
  std::vector<size_t> differentiable_inputs;
  std::vector<std::string> differentiable_cells;
  /// Other processes make the same update of their parameters and must get the same bits.
  bool is_shared_update = false;
  /// Of the wrappers that are called.
  std::vector<UsedReducer> reducers;
};

/// An outcome of a test that the next graph must follow, although the profile saw both.
struct ChosenOutcome {
  python::Object facts_key;
  int fact = -1;
  bool outcome = true;
};

/// The generator's input: a call that is about to be made.
struct Call {
  const syntax::Tree* tree = nullptr;
  PyObject* function = nullptr;          ///< the Python function; null for statements
  PyObject* const* arguments = nullptr;  ///< positional arguments, self first
  Py_ssize_t argument_count = 0;
  PyObject* keyword_names =
      nullptr;                    ///< tuple of str or null; their values follow the positional ones
  PyObject* variables = nullptr;  ///< statements: dict of the frame's variables
  PyObject* globals = nullptr;    ///< statements: the module's dict
  PyCodeObject* code = nullptr;   ///< statements: what the frame runs
  PyObject* facts_key = nullptr;  ///< key of its facts in the ProfileStore; null: function.__code__
  /// Tests on which another graph bailed out. Every other test follows the side that the profile
  /// saw more often.
  const std::vector<ChosenOutcome>* chosen = nullptr;
  /// Not for these very values: what has varied, or must not be specialised, is an input.
  bool general = false;
  /// Branches and loops must not decide sizes: an operator has no gradient for such sizes.
  bool keeps_sizes = false;
  /// Assumes that paths to one tensor in this call lead to one tensor in all calls.
  bool keeps_aliases = false;
  /// Why no collective may be in the graph; empty: some may.
  std::string why_no_collectives;
};

/// An assumption as text: "x: f32[B,784]", "self.training is True".
std::string describe(const Assumption& assumption);

class ProfileStore;

/// The generator, which frontend/ implements. Nothing that the user's program does makes it throw.
using Generator = std::variant<Generated, Reason> (*)(const Call& call, ProfileStore& profiles);
void set_generator(Generator generator);
Generator generator();

}  // namespace janus::speculate
