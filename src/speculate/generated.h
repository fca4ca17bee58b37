// What the generator makes of a function and its profile: a graph, what it assumes, and how its
// inputs, state and results correspond to Python objects. Everything here is data; guard.h checks
// it, dispatch.h runs it.
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
    identity,    ///< is `object` (kept by weak reference where its type allows, else by strong)
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
    not_same_object,  ///< without `other`: no two of those with this `number` are one
    separate_memory   ///< of all tensors with this assumption, the tensor shares memory with none,
                      ///< if it is written (`number` is 1), or with none that is written; with
                      ///< `elements`: so do those in the list
  };
  Kind kind;
  const Source* source = nullptr;
  const Source* other = nullptr;
  python::Object object;
  int64_t number = 0;
  std::string symbol;
  TensorPattern tensor;
  std::shared_ptr<const ElementPattern> elements;
  graph::SourceSpan span;  ///< the line that made us assume it
};

/// Relation between dimension symbols that must hold at entry, e.g. `B*4 == N`.
struct DimAssumption {
  graph::Dim left, right;
  graph::SourceSpan span;
};

/// Graph input i, in the graph's order: the object at `source` as a tensor or number; an input that
/// is a list of the graph: that part of each of its elements.
struct InputBinding {
  const Source* source;
  ElementPart part = {};
};

/// A place that the graph reads (`state`) or writes (`commit`, `rebind`), by the name used in the
/// graph.
struct CellBinding {
  enum class Kind {
    tensor,     ///< the tensor at `source`: `state` reads its contents, `commit` writes them
    grad,       ///< the .grad of the tensor at `source`: `rebind` sets it (none: to None)
    data,       ///< the memory that the tensor at `source` is on: `rebind` gives it another
    attribute,  ///< attribute `key` of the object at `source`, set with setattr
    item,       ///< item `key` of the object at `source`
    global,     ///< global `key` of the function at `source`
  };
  std::string name;
  Kind kind = Kind::tensor;
  const Source* source = nullptr;
  python::Object key;
  int64_t writes = 0;  ///< of `data`: in-place writes to the tensor that its version counts
};

/// How to build a Python object after the run: a tree.
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
    each,  ///< a list of what `children[0]` gives for each position of the lists that the other
           ///< children are
    item,  ///< in `each` and `replay`: the element at hand of list `index`
    replay,    ///< None; `children[0]` is a list of numbers of the others, which are as `each`: of
               ///< those, one position after the other is made, in that order
    instance,  ///< of the class `object`: `children` are names and values of attributes, from
               ///< `index` on keys and items
    unbound,   ///< a variable that has no value
    shared,    ///< the same object as the template whose `place` is `index` (aliases, cycles)
  };
  static constexpr size_t kNoPlace = SIZE_MAX;
  Kind kind = Kind::constant;
  python::Object object;
  const Source* source = nullptr;
  size_t index = 0;
  /// A number of its own if `shared` templates name this one; unique among the templates of a
  /// graph.
  size_t place = kNoPlace;
  std::vector<Template> children;
  std::vector<std::string> keyword_names;  ///< call: names of the last children
};

/// One change of an object that existed before the call, made at the commit. Whatever can fail has
/// been done by then: the guards hold, and all the values are made.
struct HeapWrite {
  enum class Kind {
    attribute,  ///< object.__setattr__(owner, key, value), where no descriptor stands in the way
    item,       ///< owner[key] = value; the owner is a dict
    tail,       ///< owner[index:] = value of a list; `index` kEnd: owner.extend(value)
    clear,      ///< owner.clear() of a dict or set
    member,     ///< owner.add(key) of a set; deleted: owner.discard(key)
    extend,     ///< a deque's `index` first elements go, then owner.extend(value)
    global,     ///< owner.__globals__[key] = value; the owner is a function
    cell,       ///< owner.__closure__[index].cell_contents = value
    context_variable,  ///< owner.set(value)
    met  ///< attributes of objects that the run met: `key` are their names, `value` for each
         ///< of them the writes, tuples that begin with object and value, and, where there
         ///< are several, of each write the number of its name
  };
  static constexpr size_t kEnd = SIZE_MAX;
  Kind kind = Kind::attribute;
  const Source* owner = nullptr;
  python::Object key;
  size_t index = 0;
  bool deletes = false;  ///< what is there under the key is removed, if anything is
  Template value;
};

/// A call to be made after the commit (print, logging), in program order.
struct Effect {
  Template call;
  graph::SourceSpan span;
};

/// The test that a `guard` node checks; its "id" attribute is the index into Generated::tests.
struct GraphTest {
  python::Object facts_key;  ///< the facts it belongs to (ProfileStore::find)
  int fact = -1;             ///< in them; -1: the test has no fact
  bool outcome = true;       ///< the side that the graph follows
  /// It is about what was seen at the fact (a class, the kind of an attribute), not about a side:
  /// a better graph needs a profile that has seen more.
  bool is_about_kinds = false;
  graph::SourceSpan span;
};

/// How a source line was dealt with, for explain().
struct LineMark {
  graph::SourceSpan span;
  enum class Kind { graph, assumed, constant, effect } kind = Kind::graph;
  std::string note;  ///< "unrolled 3 times", "inlined Linear.forward", "assumes x.shape[1] == 784"
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
  /// Function: the returned value. Statements: a tuple (how it ended, returned value, assigned
  /// variables in scope order); how it ended: 0 fell through, 1 continue, 2 break, 3 return.
  Template result;
  std::vector<HeapWrite> writes;  ///< in program order, after tensors and before the effects
  std::vector<Effect> effects;
  std::vector<GraphTest> tests;
  std::vector<python::Object> objects;  ///< that nodes name by their number: classes, None
  std::vector<LineMark> lines;
  /// Results of the graph that eager would give a grad_fn, by result index, and eager's name of
  /// that node.
  struct DifferentiableResult {
    size_t result;
    std::string grad_fn_name;  ///< "NllLossBackward0"
    bool consumed = false;     ///< backward already ran through it without retain_graph
    /// Of a list whose elements are not all of one name: the result that is the list of the numbers
    /// of those in `names`.
    std::optional<size_t> name_numbers = std::nullopt;
    std::vector<std::string> names = {};
  };
  std::vector<DifferentiableResult> differentiable_results;
  /// Results of the graph that do not lie in order, or of which only the run knows.
  std::vector<execute::ShownResult> shown_results;
  /// Graph inputs and tensor cells (by name) that require grad and can be reached from those.
  std::vector<size_t> differentiable_inputs;
  std::vector<std::string> differentiable_cells;
  /// Other processes make the same update of their parameters, and have to get the same bits.
  bool is_shared_update = false;
};

/// The side of a test that the graph to be made shall follow, although the profile saw both.
struct ChosenOutcome {
  python::Object facts_key;
  int fact = -1;
  bool outcome = true;
};

/// What the generator starts from: a call as it is about to be made.
struct Call {
  const syntax::Tree* tree = nullptr;
  PyObject* function = nullptr;          ///< the Python function; null for statements
  PyObject* const* arguments = nullptr;  ///< positional arguments, self first
  Py_ssize_t argument_count = 0;
  PyObject* keyword_names =
      nullptr;                    ///< tuple of str or null; their values follow the positional ones
  PyObject* variables = nullptr;  ///< statements: dict of the frame's variables
  PyObject* globals = nullptr;    ///< statements: the module's dict
  PyObject* facts_key = nullptr;  ///< key of its facts in the ProfileStore; null: function.__code__
  /// Tests that went the other way in a graph that was left; for all others the side taken more
  /// often is the one to follow.
  const std::vector<ChosenOutcome>* chosen = nullptr;
  /// Not for these very values: what varied, or is not to be specialised, is an input.
  bool general = false;
  /// Branches and loops decide no sizes: an operator has no gradient for such.
  bool keeps_sizes = false;
  /// Paths that lead to one tensor in this call are taken to do so in all.
  bool keeps_aliases = false;
};

/// "x: f32[B,784]", "self.training is True": an assumption as text.
std::string describe(const Assumption& assumption);

class ProfileStore;

/// The generator; frontend/ implements it. Never throws for what the user's program does.
using Generator = std::variant<Generated, Reason> (*)(const Call& call, ProfileStore& profiles);
void set_generator(Generator generator);
Generator generator();

}  // namespace janus::speculate
