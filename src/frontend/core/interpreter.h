// The abstract interpreter's core: frames and scopes, assumptions, refusals, and how objects of the
// real world become abstract values. The language itself lives in the other files of this room as
// free functions over an Interpreter, one file a group of features:
//
//   expressions, statements, control    the syntax tree's nodes
//   operators, attributes, containers, strings, calls, builtins    Python's semantics
//   callables, tensor, modules, autograd, requires_grad, optimizers    torch's semantics
//   epilogue    what the graph gives back and changes
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/options.h"
#include "frontend/core/identity.h"
#include "frontend/core/interpreter_state.h"
#include "frontend/core/met_writes_state.h"
#include "frontend/core/recursion_state.h"
#include "frontend/core/journal_state.h"
#include "frontend/values/value.h"
#include "graph/builder.h"
#include "speculate/facts.h"
#include "speculate/generated.h"
#include "frontend/values/restart.h"
#include "frontend/values/rolled_list.h"
#include "frontend/core/custom_gradient_record.h"
#include "frontend/core/gradient_switches.h"
#include "frontend/core/operations.h"
#include "frontend/core/tensor_hooks.h"

namespace janus::frontend {

using speculate::Assumption;
using speculate::ReasonCode;
using speculate::Source;

/// Thrown to give up; becomes the Reason that generate() returns. Never leaves the room.
struct Refusal {
  speculate::Reason reason;
};

/// A list or tuple of before the call whose length is a dimension of the graph.
struct EntryList {
  python::Object object;
  std::shared_ptr<const speculate::ElementPattern> pattern;
  std::shared_ptr<const Rolled> elements;
};

class Fork;

/// A branch or loop whose blocks are being filled.
class Scope {
 public:
  Scope() = default;
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  virtual ~Scope() = default;
  /// Whether the block is the one at hand.
  virtual bool is_inside(const graph::Block* block) const = 0;
  /// A tensor of the entry that is reached for the first time: it was there all the time.
  virtual void add_entry_object(Changeable& object) = 0;
  /// Whether the tensor may be the same object the next time that this place is reached.
  virtual bool keeps(const Tensor& tensor) const { return false; }
  /// The test that is to be followed if the branch or loop can't be in the graph; null if none.
  virtual const TestKey* test() const = 0;
  /// Whether one way through it may be left by an exception.
  virtual bool is_branch() const { return false; }
  /// What the block at hand knows of a flag.
  virtual std::optional<bool> outcome(const graph::Value* /*flag*/) const { return std::nullopt; }
};

/// What a flag says of an object.
struct ClassTest {
  const graph::Value* object = nullptr;
  Classes yes, no;
  bool yes_is_certain = true, no_is_certain = true;
};

/// One function, comprehension or run of statements being interpreted.
struct Frame {
  std::shared_ptr<const Code> code;
  std::shared_ptr<Variables> variables;
  speculate::Facts* facts = nullptr;  ///< null: nothing was profiled
  Frame* caller = nullptr;
  graph::SourceSpan span;        ///< of the node being interpreted
  std::string name;              ///< of the function, for reports
  bool is_library = false;       ///< code of torch: spans shown to the user are those of its caller
  Value returned;                ///< by `return`
  std::vector<Value> arguments;  ///< for super(): the first positional argument
  std::vector<Value>* yielded = nullptr;  ///< of a generator: where its values go
  /// Of a generator that is a context manager: what stands between its two halves.
  std::function<void(const Value&)> at_yield;
  Value raised;                ///< by `raise`, or what else ended a statement so
  std::vector<Value> handled;  ///< exceptions whose handlers are being run, the outermost first
  /// What the code at hand stands in that handles exceptions of a class
  /// (frontend/core/exceptions.h); without a class: none may come there.
  struct Awaited {
    PyObject* type;
    size_t open_scopes;  ///< when it began
  };
  std::vector<Awaited> awaiting;
  std::vector<std::shared_ptr<Fork>> forks;  ///< tests one side of which has left (branches.h)
  const void* environment = nullptr;         ///< tells apart functions made of the same code
  size_t open_scopes = 0;                    ///< branches and loops around the call
  std::shared_ptr<Variables>
      loop;  ///< innermost loop, if it is in the graph: where `break` is noted
  std::shared_ptr<Variables> returning;  ///< innermost loop in the graph: where `return` is noted
};

/// A run of statements that is interpreted in place of a function.
struct StatementRun {
  std::shared_ptr<Variables> variables;                ///< null: it is a function
  int at = -1;                                         ///< which statement is being run
  std::map<std::string, int, std::less<>> written_by;  ///< which one wrote a variable last
};

/// How a statement ended.
enum class Completion { normal, continue_, break_, return_, raise_ };

class Interpreter : public InterpreterState {
 public:
  /// `followed`: tests that are followed even if the profile saw both outcomes. `varying`: paths of
  /// numbers that the run itself is known to change.
  Interpreter(const speculate::Call& call, speculate::ProfileStore& profiles,
              const std::vector<CannotMerge>& followed, const std::set<std::string>& varying);
  ~Interpreter();
  /// What later rooms keep for an interpretation; before anything is interpreted.
  void attach(std::unique_ptr<RecursionState> recursion,
              std::unique_ptr<MetWritesState> met_writes);

  // --- where we are
  Frame& frame() { return *frame_; }
  const Frame& frame() const { return *frame_; }
  /// The innermost span of the user's own code.
  const graph::SourceSpan& user_span() const;
  /// The span of what was built last.
  const graph::SourceSpan& last_span() const { return builder_.span(); }
  void at(const syntax::Node& node);
  const speculate::NodeFact* fact(int number) const;
  /// Appends to the block at hand.
  graph::Builder& builder() { return builder_; }
  /// Appends to the graph's body: what reads the entry is seen by all blocks.
  graph::Builder root_builder();
  speculate::Generated& output() { return output_; }
  speculate::SourceTable& sources() { return *output_.sources; }
  const speculate::Call& call() const { return call_; }
  speculate::ProfileStore& profiles() { return profiles_; }

  // --- giving up
  [[noreturn]] void refuse(ReasonCode code, std::string details) const;
  /// Gives up because the C API raised: the program would raise the same. Clears the exception.
  [[noreturn]] void refuse_raised() const;
  /// `object`, or would_raise if it is null.
  python::Object must(PyObject* new_reference) const;

  // --- assumptions
  void assume(Assumption assumption);
  void assume(Assumption::Kind kind, const Source* source, python::Object object = {},
              int64_t number = 0);
  /// That the object at the value's source is still this very object. No-op without a source.
  void assume_identity(const Known& known);
  /// Which objects of the entry are one.
  Identities identities;
  /// A number for objects of which no two are one.
  int64_t new_group() { return next_group_++; }
  /// A line for explain().
  void mark(speculate::LineMark::Kind kind, std::string note = {});
  void mark(speculate::LineMark::Kind kind, std::string note, const graph::SourceSpan& span);
  /// Follows one side of a test that the graph computes, and guards it.
  bool follow(graph::Value* test, const python::Object& example, int fact_number);
  /// The number of a test of what was seen at the fact, for nodes that may fail.
  int64_t kinds_test(int fact_number);
  /// Ends the run unless the flag holds: that what comes is of the kinds seen at the fact.
  void guard_kinds(graph::Value* flag, int fact_number);

  // --- branches and loops in the graph (frontend/control/branches.h, loops.h)
  void enter_block(graph::Block& block);
  /// A block that comes to nothing: what was noted of it must not seem to be of a later one.
  void put_away(std::unique_ptr<graph::Block> block) { put_away_.push_back(std::move(block)); }
  /// Whether what is defined in the block can be used at this point.
  bool is_open(const graph::Block* block) const;
  /// Whether a loop or recursion may come to this place with the same tensor again.
  bool may_come_again(const Tensor& tensor);
  /// An object that is reached for the first time: for all branches and loops at hand it was there
  /// all the time, as it is now.
  void existed_before(Changeable& object);
  void begin_scope(Scope& scope);
  void end_scope(Scope& scope);
  /// The scopes inside this one end without having come to anything.
  void abandon_scopes(const Scope& scope);
  /// Which test or loop of the program an `if` or `while` node is.
  std::unordered_map<const graph::Node*, TestKey> scope_nodes;
  /// From now on no branch becomes part of the graph.
  void follow_all() { merges_ = false; }
  bool merges() const { return merges_; }
  /// Whether numbers and sizes may be inputs although they have not varied yet; see kSwitches.
  bool generalises(std::string_view specialisation) const {
    return call_.general && options().is_disabled(specialisation);
  }
  size_t open_scopes() const { return open_scopes_.size(); }
  bool only_branches_since(size_t count) const;
  size_t scope_count() const { return scope_count_; }
  /// Why that test is followed and not merged; null if it is not.
  const CannotMerge* followed(const TestKey& test) const;
  /// Whether the first round of that loop is taken in front of it.
  bool takes_first_round(const TestKey& test) const;
  /// Whether sizes in which the sides of that branch differ are left to the run.
  bool leaves_sizes(const TestKey& test) const;
  /// The test that is to be followed if what is interpreted now can't be converted.
  const std::optional<TestKey>& suspect() const { return suspect_ ? suspect_ : unsettled; }
  /// The branch that the Optional came from that was read last.
  std::optional<TestKey> unsettled;
  /// What is known of a flag at this point: by the branches around it, and by guards.
  std::optional<bool> outcome_of(const graph::Value* flag) const;

  // --- recursion (frontend/recursion/recursion.h)
  RecursionState& recursion() { return *recursion_; }
  const RecursionState& recursion() const { return *recursion_; }
  /// What the run writes to objects that it meets (frontend/recursion/met_writes.h).
  MetWritesState& met_writes() { return *met_writes_; }
  /// How deep calls are nested, and were at most since somebody set it.
  int depth() const { return depth_; }
  int deepest = 0;
  /// Whether the profile saw different objects where the source begins.
  bool differs_from_call_to_call(const Source* source) const;
  static bool is_library(const syntax::Tree& tree);

  // --- objects that only the run meets (frontend/recursion/run_time.h)
  std::map<const graph::Value*, ClassTest> class_tests;
  /// Notes what the side of a branch on the flag knows.
  void learn_classes(const graph::Value* flag, bool outcome);
  graph::Value* negated_flag(graph::Value* flag);
  /// The object at the source as an input of the graph.
  graph::Value* run_time_input(const Source* source);

  // --- values
  /// The object found at `source`, with the assumptions under which the graph may treat it so.
  Value wrap(PyObject* object, const Source* source);
  /// That a number read at `source` is written there: if it was taken for a constant, the run has
  /// to be interpreted again with a number that varies.
  void note_written(const Source* source, const Value& value);
  const std::set<std::string>& changed_numbers() const { return changed_numbers_; }
  /// An object made at generation time (literals, folded results) or immortal.
  Value constant(python::Object object);
  Value constant_borrowed(PyObject* object) { return constant(python::Object::borrow(object)); }
  Value none() { return constant_borrowed(Py_None); }
  Value boolean(bool value) { return constant_borrowed(value ? Py_True : Py_False); }
  Value integer(int64_t value) {
    return constant(python::Object::steal(PyLong_FromLongLong(value)));
  }
  Value string(const std::string& text);
  /// An int that may be a named dimension.
  Value dimension(const graph::Dim& dim);
  /// A number computed by the graph.
  Value number(graph::Value* value, python::Object example = {});
  /// The graph's value of a number (Known int, float, bool or Number).
  graph::Value* graph_value(const Value& number);
  /// The i64 graph value of a dimension expression.
  graph::Value* dimension_value(const graph::Dim& dim);
  /// An input of the graph that is a list of it: a part of each element of the list at the source.
  graph::Value* list_input(const Source* source, const graph::Type& element,
                           speculate::ElementPart part);
  /// Gives a named dimension of the entry its value: the int at the source.
  void give_dimension(const graph::Dim& dim, const Source* source);
  /// Gives the named dimensions of the tensor at the source their values.
  void give_dimensions(const graph::Type& tensor, const Source* source);
  /// Lists and tuples of the entry whose length is a dimension (frontend/control/entry_lists.h).
  std::map<const Source*, EntryList> entry_lists;
  /// An input of the graph that is the object itself; it must have a source.
  graph::Value* object_input(const Known& known);
  /// A dimension for a size that the graph computes, known in the block at hand and those within
  /// it; the run is given up if it is less than 2. Nothing in a recursion, whose activations
  /// differ.
  std::optional<graph::Dim> run_time_dimension(graph::Value* size);
  /// A dimension that is known in the block, once give_size() has said there what it is.
  graph::Dim new_dimension(const graph::Block& block);
  /// That the dimension is so large; the run is given up if that is less than 2.
  void give_size(const graph::Dim& dimension, graph::Value* size);
  /// The dimension that was found for a value of which this holds, if it is known here.
  std::optional<graph::Dim> run_time_size(const std::function<bool(const graph::Value*)>& of);
  /// That the dimension is how large, or how long, the value is.
  void note_run_time_size(const graph::Value* of, const graph::Dim& size);
  /// Whether a size in the type is only known in blocks of which this holds.
  bool is_sized_in(const graph::Type& type,
                   const std::function<bool(const graph::Block*)>& block) const;
  bool has_run_time_dimensions() const { return !run_time_dimensions_.empty(); }
  /// A name for a size of the entry that varies from call to call: one for all that are equal now
  /// and were so in the calls before. `seen`: what is known of the value whose `dimension` it is,
  /// if anything; it outlives the interpretation.
  graph::Dim entry_dimension(int64_t size, const speculate::ValueFact* seen = nullptr,
                             size_t dimension = 0);
  /// What was seen at the path; null if nothing.
  const speculate::ValueFact* path_fact(const std::string& path) const;
  /// What the dimension is in the call at hand.
  std::optional<int64_t> evaluate(const graph::Dim& dim) const;
  /// Records that two dimensions, equal in this call, must be so at each entry.
  void assume_equal(const graph::Dim& left, const graph::Dim& right);

  /// Runs code in a new frame: caller, span and depth are kept right.
  Value run_frame(Frame& frame, const std::function<Value()>& body);
  /// Goes on in a frame that is not the innermost one, for as long as the body takes.
  void in_frame(Frame& frame, const std::function<void()>& body);
  /// Frame::at_yield of the generator that is called next.
  std::function<void(const Value&)> at_next_yield;
  /// The frame of a piece of code; facts are looked up.
  Frame make_frame(std::shared_ptr<const Code> code, std::shared_ptr<Variables> variables,
                   std::string name);

  /// Whether the frame at hand is that of the function converted; never within a run of statements.
  bool at_entry() const { return depth_ <= 1 && call_.function != nullptr; }

  /// The statements at hand, if it is no function.
  StatementRun statement_run;
  /// The facts of the code that is interpreted, by whose paths what was seen is found.
  void set_entry_facts(speculate::Facts* facts) { entry_facts_ = facts; }

  // --- names
  /// What a name written in a class means: `_C__x` for `__x`.
  std::string mangled(const std::string& name) const;
  Value read_name(const std::string& name);
  void write_name(const std::string& name, Value value);
  void delete_name(const std::string& name);
  Value read_global(const std::string& name);
  /// The code of a Python function, or refusal if its source is missing.
  std::shared_ptr<const Code> code_of(PyObject* function, const Source* source);

  /// A place that the graph reads or writes; gives its (unique) name.
  std::string add_cell(speculate::CellBinding::Kind kind, const Source* source,
                       python::Object key = {});

  /// One more result of the graph; gives its index.
  size_t add_result(graph::Value* value) {
    results_.push_back(value);
    return results_.size() - 1;
  }
  const std::vector<graph::Value*>& results() const { return results_; }
  /// Result `index` is what a branch gives in place of what one of its sides computes.
  void replace_result(size_t index, graph::Value* value) { results_[index] = value; }
  /// Nothing refers to those from `count` on any more.
  void drop_results(size_t count) { results_.resize(count); }

  /// Refusals at the end of a run of statements are laid to the statement that wrote variable
  /// `index` of its result last, until blame_nobody().
  void blame_writer_of(size_t index);
  void blame_nobody() { statement_run.at = -1; }

  /// A number for a template that others share.
  size_t new_place() { return next_place_++; }

  /// What rounds of loops in the graph show.
  JournalState journal;
  /// How many effects there were so far.
  size_t effect_count() const { return effects.size() + journal.count; }

  /// How often tensors of before the call were written.
  size_t outside_writes = 0;
  /// Where the run made tensors: those of inference mode are of another kind.
  bool made_in_inference = false, made_outside_inference = false;
  /// Loops of more rounds are in the graph also where their number is always the same.
  int64_t most_unrolled =
      options().is_disabled("unroll") ? -1 : std::numeric_limits<int64_t>::max();
  /// Of a loop that is unrolled, and of what is made of a container element by element.
  static int64_t most_rounds() { return options().most_rounds; }
  void check_size();

  /// Whether there are tensors that require a gradient where a recursion takes one way, and none
  /// where it takes another. They are taken for tracked; whoever shows that asks shows_gradient().
  bool gradients_vary = false;
  /// Values of tensors that eager's autograd tracks.
  std::unordered_set<const graph::Value*> differentiable;
  /// Lists and tuples of before the call of which the run reads what it chooses.
  std::map<const Source*, Value> chosen_from;
  /// Leaves that require grad and were made in the run.
  std::vector<std::shared_ptr<Tensor>> made_leaves;
  /// Leaves whose requires_grad was changed (frontend/autograd/requires_grad.h).
  GradientSwitches switches;
  /// Leaves of before the call that have hooks, and the one whose hook is running.
  std::set<const Tensor*> hooked_leaves;
  const Tensor* hook_of = nullptr;
  /// Tensors that no other one of before the call may share memory with, as if they were written.
  std::set<const Tensor*> kept_apart;
  /// Where gradients go through the program's own code, in the order in which it was reached.
  std::vector<CustomGradient> custom_gradients;
  HooksOfTensors tensor_hooks;

  /// Tensors whose `.grad` is None for the code at hand (frontend/torch_library/optimizers.cpp).
  std::set<const Tensor*> without_grad;
  /// Where gradients are clipped: whether those that only some runs have are taken to be there.
  bool clips = false, sees_all_grads = false;

  /// Tensors reached from the entry, by the identity of the real tensor: several where the paths to
  /// it lead to different ones at times.
  std::map<const void*, std::vector<std::shared_ptr<Tensor>>> entry_tensors;
  /// In the order in which they were reached.
  std::vector<std::shared_ptr<Tensor>> entry_tensor_order;

 private:
  void suspect(const TestKey* test);
  bool expected_outcome(int fact_number) const;
  Value wrap_new(PyObject* object, const Source* source);
  Value wrap_tensor(PyObject* object, const Source* source);
  Value known_tensor(PyObject* object, const Source* source);
  Value wrap_varying_tuple(PyObject* object, const Source* source);
  Value wrap_number(PyObject* object, const Source* source);
  Value number_input(PyObject* object, const Source* source);
  Value flag_input(PyObject* object, const Source* source);
  /// Whether calls found different values at the path.
  bool has_varied(const Source* source) const;
  Value* find_variable(const std::string& name);
  Value read_statement_variable(const std::string& name);
  Value read_closure_cell(const std::string& name);
  void write_closure_cell(const std::string& name, const Value& value);
  void write_global(const std::string& name, const Value& value);
  /// The function by which the guards reach the globals of the code at hand.
  const Source* globals_owner();
  bool may_be_variable(const std::string& name, PyObject* cell) const;
  void check_not_written(const std::string& name, PyObject* cell) const;

  const ObjectScope objects_;  // first: ends behind all that hold objects
  const speculate::Call& call_;
  speculate::ProfileStore& profiles_;
  speculate::Generated output_;
  graph::Builder builder_;
  Frame* frame_ = nullptr;
  int depth_ = 0;
  std::vector<graph::Value*> results_;
  const std::vector<CannotMerge>& followed_;
  std::vector<std::unique_ptr<graph::Block>> put_away_;
  std::vector<Scope*> open_scopes_;
  size_t scope_count_ = 0;
  bool merges_ = !options().is_disabled("control_flow");
  std::optional<TestKey> suspect_;
  struct Guarded {
    const graph::Block* block;
    bool outcome;
  };
  std::map<const graph::Value*, Guarded> guarded_;      // flags
  size_t next_place_ = 0;
  int64_t next_group_ = 0;
  std::map<PyObject*, const Source*> globals_owners_;
  const std::set<std::string>& varying_;
  std::unique_ptr<RecursionState> recursion_;
  std::unique_ptr<MetWritesState> met_writes_;
  std::set<std::string> changed_numbers_;
  speculate::Facts* entry_facts_ = nullptr;
  std::set<std::string> assumed_;  // keys of assumptions made
  std::map<std::string, int64_t, std::less<>> symbol_values_;
  std::map<std::string, graph::Value*, std::less<>> symbol_inputs_;  // ints given as inputs
  struct NamedSize {
    std::string symbol;
    std::vector<std::pair<const speculate::ValueFact*, size_t>> dimensions;
  };
  std::map<int64_t, std::vector<NamedSize>> names_of_size_;
  size_t named_sizes_ = 0;
  std::map<std::string, graph::Value*, std::less<>> dimension_values_;
  std::unordered_map<const Source*, Value> wrapped_;
  /// Lengths of lists of the graph that tensors were made of, numbers of elements that masks
  /// choose, and sizes that the run computes; and in which block that is known.
  struct RunTimeSize {
    graph::Dim size;
    const graph::Block* block;
  };
  std::unordered_map<const graph::Value*, std::vector<RunTimeSize>> run_time_sizes_;
  std::map<std::string, const graph::Block*> run_time_dimensions_;  // and where each is known
  std::unordered_map<const Source*, graph::Value*> object_inputs_;
};

/// Whether the object is used by what it is, not by what it holds.
bool is_identity_object(PyObject* object);

}  // namespace janus::frontend
