// Abstract values: what the interpreter knows about a Python object while it runs a function
// symbolically.
//
//   Known       a Python object that exists now, and how it was reached (guards say that it is
//               still there)
//   Number      a Python int, float or bool that the graph computes
//   RuntimeObject  an object of Python's heap that only the run meets (a node of a tree)
//   Tensor      a tensor that the graph computes, with the Python identity, autograd state and
//               aliases that eager would give it
//   Sequence, Dictionary, Instance, SetValue, SliceValue, Closure, Method, Iterator, Super, Native,
//   Context
//               objects that the function makes itself, kept as their parts (virtual objects)
//   Optional    None in some runs, something else in others
//   Either      one of two values that have no common form, by a flag
//   Deferred    an object that is made after the run from results (a formatted string)
//   Outcome     what a function gives that may raise
//   Undefined   what is not set yet, and not read before it is
//   Unmerged    what a variable holds after two sides of a branch that can't become one value
//
// Values are shared: Python's aliasing is std::shared_ptr's. Identity (`is`) of virtual objects is
// pointer identity.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/values/element_list.h"
#include "frontend/values/producer.h"
#include "graph/graph.h"
#include "python/object.h"
#include "speculate/generated.h"
#include "speculate/source.h"
#include "syntax/scope.h"
#include "syntax/tree.h"

namespace janus::frontend {

enum class ValueKind {
  known,
  number,
  run_time,
  tensor,
  sequence,
  dictionary,
  instance,
  set,
  slice,
  closure,
  method,
  iterator,
  super,
  native,
  context,
  optional,
  either,
  deferred,
  outcome,
  undefined,
  unmerged
};

struct AbstractValue : std::enable_shared_from_this<AbstractValue> {
  explicit AbstractValue(ValueKind kind) : kind(kind) {}
  AbstractValue(const AbstractValue&) = delete;
  AbstractValue& operator=(const AbstractValue&) = delete;
  virtual ~AbstractValue() = default;
  const ValueKind kind;
};
/// Null means: unbound.
using Value = std::shared_ptr<AbstractValue>;

/// An object of the interpreter that the program can change. All that live are in one list of the
/// thread, so that a snapshot (frontend/values/snapshot.h) misses none.
class Changeable {
 public:
  Changeable();
  Changeable(const Changeable&) = delete;
  Changeable& operator=(const Changeable&) = delete;
  virtual ~Changeable();
  /// What keeps the object alive; null for one that nobody shares.
  virtual std::shared_ptr<const void> owner() const = 0;

  static Changeable* first();
  Changeable* next_changeable() const { return next_; }
  /// How many the thread had made when it made this one.
  uint64_t number() const { return number_; }
  static uint64_t count();

 private:
  uint64_t number_;
  Changeable* previous_ = nullptr;
  Changeable* next_ = nullptr;
};

/// The arguments of a call, before they are bound to parameters.
struct CallArguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keywords;

  const Value* keyword(std::string_view name) const {
    for (const auto& [key, value] : keywords)
      if (key == name) return &value;
    return nullptr;
  }
  /// By position or keyword; null if absent.
  const Value* given(size_t position, std::string_view name) const {
    return position < positional.size() ? &positional[position] : keyword(name);
  }
  /// Puts another value in the place of one that is given.
  void replace(size_t position, std::string_view name, const Value& value) {
    if (position < positional.size()) positional[position] = value;
    for (auto& [key, old] : keywords)
      if (key == name) old = value;
  }
  bool operator==(const CallArguments&) const = default;
};

struct Known final : AbstractValue {
  static constexpr auto kKind = ValueKind::known;
  Known(python::Object object, const speculate::Source* source)
      : AbstractValue(kKind), object(std::move(object)), source(source) {}
  python::Object object;
  const speculate::Source* source;  ///< null: made at generation time (a literal, a folded result)
};

struct Number final : AbstractValue {
  static constexpr auto kKind = ValueKind::number;
  explicit Number(graph::Type::Kind type) : AbstractValue(kKind), type(type) {}
  graph::Type::Kind type;  ///< i64, f64 or boolean
  /// Null while only `dim` is known; ValueMaker::graph_value makes it on demand.
  graph::Value* value = nullptr;
  std::optional<graph::Dim> dim;  ///< an int that is an expression of dimension symbols
  python::Object example;         ///< what it is in the call at hand; null: only known at run time
  const speculate::Source* source = nullptr;  ///< it is this object of the entry, unchanged
};

/// Classes, each once.
using Classes = std::vector<python::Object>;

/// An object that exists before the call, but is found only by the run: which it is differs from
/// run to run. Nothing is assumed of it at entry; what it is, is tested in the graph.
struct RuntimeObject final : AbstractValue {
  static constexpr auto kKind = ValueKind::run_time;
  RuntimeObject(graph::Value* value, Classes classes)
      : AbstractValue(kKind), value(value), classes(std::move(classes)) {}
  graph::Value* value;
  /// Those that were seen; InterpreterState::known_classes has what is known for certain.
  Classes classes;
  /// What it is in the call at hand, if that hands it over or what holds it.
  python::Object example;
};

struct Tensor;
struct ProducingCall;

/// A tensor whose memory another one may share. As long as somebody holds it, neither may be
/// written.
struct PossibleAlias {
  std::weak_ptr<Tensor> tensor;
  uint32_t version = 0;  ///< of it, when the two were found to be related
  bool operator==(const PossibleAlias& other) const {
    return version == other.version && !tensor.owner_before(other.tensor) &&
           !other.tensor.owner_before(tensor);
  }
};

/// Each of those that still live once: branch after branch adds the same ones.
class PossibleAliases {
 public:
  void add(PossibleAlias alias);
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  bool operator==(const PossibleAliases&) const = default;

 private:
  std::vector<PossibleAlias> all_;
};

/// A tensor with its identity. In-place operations give it a new `value`; views name their `base`.
/// frontend/tensors/tensor.h keeps aliases consistent: reading a view whose base was written
/// replays it. All members are compared (frontend/values/snapshot.h).
struct TensorState {
  graph::Value* value = nullptr;
  const speculate::Source* source = nullptr;  ///< reached from the entry; null: made inside
  python::Object object;                      ///< the real tensor, if it exists now
  std::string cell;                           ///< name of its state cell, once it has one
  bool requires_grad = false;
  bool is_leaf = true;
  bool is_parameter = false;
  uint32_t version = 0;        ///< counts in-place writes through this tensor or an alias
  uint32_t silent_writes = 0;  ///< of these, those that eager's `_version` does not count
  /// An i64: so many writes more, which differ from run to run; null: none.
  graph::Value* varying_writes = nullptr;
  bool written = false;        ///< its contents differ from those at entry: needs a commit
  bool data_replaced = false;  ///< it is on other memory than at entry: needs a rebind
  /// What the memory holds that it was on at entry; null: nobody wrote that.
  graph::Value* left_contents = nullptr;
  std::string grad_fn_name;  ///< eager's name of the autograd node that made it
  Producer producer;         ///< of the current value
  std::shared_ptr<const ProducingCall> produced_by;  ///< the call of it, where that is known
  // --- aliasing
  std::shared_ptr<Tensor> base;            ///< of a view: the tensor it was taken from
  std::shared_ptr<Tensor> taken_from;      ///< of an opaque result: whose memory it may share
  const graph::Node* view_node = nullptr;  ///< the view operation, to replay and to scatter
  size_t view_output = 0;                  ///< which of the operation's results
  bool is_one_of_list = false;             ///< Python gets these results as a list or tuple
  bool taken_with_gradients = true;        ///< the grad mode in which the view was taken
  uint32_t seen_version = 0;               ///< of the base when `value` was computed
  bool is_viewed = false;                  ///< a view of it was taken
  bool untracked = false;                  ///< `.data`: writes through it escape autograd
  Value view_callee;  ///< how Python makes this view again of the tensor it was taken from
  CallArguments view_arguments;
  std::optional<graph::Shape> strides;  ///< as far as they are known (frontend/values/strides.h)
  const void* storage = nullptr;        ///< identity of the memory of a tensor of the entry
  bool uncertain_alias = false;         ///< may share memory with another tensor: not writable
  bool is_borrowed = false;             ///< met at run time: an object that only Python's heap has
  PossibleAliases possible_aliases;     ///< of a tensor merged from two sides of a branch
  std::shared_ptr<Tensor> list_memory;  ///< of an element of a list of the graph: Rolled::memory
  // --- autograd
  std::vector<graph::Value*> past_values;  ///< contents before each in-place write
  Value grad;  ///< of a leaf: null = not read yet; Known None; a Tensor, or an Optional one
  bool grad_replaced = false;  ///< `.grad` refers to another object than at entry: needs a rebind
  bool grad_unread = false;    ///< and nobody looked at what it was at entry
};

struct Tensor final : AbstractValue, Changeable, TensorState {
  static constexpr auto kKind = ValueKind::tensor;
  Tensor() : AbstractValue(kKind) {}
  std::shared_ptr<const void> owner() const override { return weak_from_this().lock(); }
};

struct Dictionary;

struct Sequence final : AbstractValue, Changeable {
  static constexpr auto kKind = ValueKind::sequence;
  explicit Sequence(bool is_list) : AbstractValue(kKind), is_list(is_list) {}
  std::shared_ptr<const void> owner() const override { return weak_from_this().lock(); }
  bool is_list;
  ElementList elements;
  python::Object type;  ///< a deque's, namedtuple's or torch.Size's class; null: list or tuple
  const speculate::Source* source = nullptr;  ///< it is this object of the entry
  std::shared_ptr<Dictionary> viewed;  ///< it is the `part` of this dict, and changes with it
  std::string part;                    ///< keys, values or items
  Py_ssize_t most = -1;                ///< of a deque: its greatest length
};

struct Dictionary final : AbstractValue, Changeable {
  static constexpr auto kKind = ValueKind::dictionary;
  Dictionary() : AbstractValue(kKind) {}
  std::shared_ptr<const void> owner() const override { return weak_from_this().lock(); }
  std::vector<std::pair<python::Object, Value>> items;  ///< in order; keys are known, hashable
  const speculate::Source* source = nullptr;            ///< it is this object of the entry
  python::Object object;  ///< with `source`: the real dict; changes go through the heap as well
  python::Object type;    ///< OrderedDict, defaultdict, Counter; null: dict
  Value factory;          ///< of a defaultdict made in the run
  /// Of one made in the run whose class has a `__dict__`: what is in that (`_metadata`).
  std::shared_ptr<Dictionary> attributes;
};

/// An object of a plain class written in Python, made in the run.
struct Instance final : AbstractValue {
  static constexpr auto kKind = ValueKind::instance;
  explicit Instance(python::Object type)
      : AbstractValue(kKind), type(std::move(type)), fields(std::make_shared<Dictionary>()) {}
  python::Object type;
  std::shared_ptr<Dictionary> fields;  ///< its attributes, those in slots as well
  std::shared_ptr<Dictionary> items;   ///< of a class derived from dict: what it holds; else null
  std::shared_ptr<Sequence> elements;  ///< of a class derived from list: the same
  bool is_attributes() const { return items == nullptr && elements == nullptr; }
};

struct SetValue final : AbstractValue, Changeable {
  static constexpr auto kKind = ValueKind::set;
  SetValue() : AbstractValue(kKind) {}
  std::shared_ptr<const void> owner() const override { return weak_from_this().lock(); }
  /// Constants, or objects that are equal to nothing but themselves (set_element).
  std::vector<Value> elements;
  bool is_frozen = false;
  bool only_grew = true;  ///< by single elements: Python's order is known
};

struct SliceValue final : AbstractValue {
  static constexpr auto kKind = ValueKind::slice;
  SliceValue() : AbstractValue(kKind) {}
  Value start, stop, step;
};

/// The variables of one scope; closures keep the chain of those that they stand in.
struct Variables final : Changeable, std::enable_shared_from_this<Variables> {
  std::shared_ptr<const void> owner() const override { return weak_from_this().lock(); }
  const syntax::Scope* scope = nullptr;
  std::map<std::string, Value, std::less<>> values;
  std::shared_ptr<Variables> parent;
};

/// What globals, free variables and facts a piece of code sees: that of the function it stands in.
struct Code {
  const syntax::Tree* tree = nullptr;
  python::Object function;  ///< null for a run of statements
  const speculate::Source* function_source = nullptr;
  python::Object facts_key;  ///< code object under which its facts are kept
};

/// A function or lambda defined during the run.
struct Closure final : AbstractValue {
  static constexpr auto kKind = ValueKind::closure;
  Closure() : AbstractValue(kKind) {}
  std::shared_ptr<const Code> code;  ///< of the function that it is defined in
  std::shared_ptr<Variables> variables;
  const syntax::Scope* scope = nullptr;
  const syntax::Arguments* arguments = nullptr;
  const syntax::Body* body = nullptr;              ///< of a def, or
  const syntax::Expression* expression = nullptr;  ///< of a lambda
  std::string name;
  std::vector<Value> defaults;
  std::map<std::string, Value, std::less<>> keyword_defaults;
};

struct Method final : AbstractValue {
  static constexpr auto kKind = ValueKind::method;
  Method(Value self, Value function)
      : AbstractValue(kKind), self(std::move(self)), function(std::move(function)) {}
  Value self, function;
};

/// A one-way stream of values: `next` gives null at the end.
struct Iterator final : AbstractValue, Changeable {
  static constexpr auto kKind = ValueKind::iterator;
  explicit Iterator(std::function<Value()> advance)
      : AbstractValue(kKind),
        advance_([advance = std::move(advance)](Iterator&) { return advance(); }) {}
  /// One that has something to say of itself where it ends.
  explicit Iterator(std::function<Value(Iterator&)> advance)
      : AbstractValue(kKind), advance_(std::move(advance)) {}
  std::shared_ptr<const void> owner() const override { return weak_from_this().lock(); }
  Value next() {
    ++taken;
    return advance_(*this);
  }
  uint64_t taken = 0;            ///< how often `next` was asked: no snapshot can undo that
  PyTypeObject* type = nullptr;  ///< its class, where that is known: a generator
  Value returned;                ///< at its end, the value of `yield from` it; null: None

 private:
  std::function<Value(Iterator&)> advance_;
};

/// super(type, self)
struct Super final : AbstractValue {
  static constexpr auto kKind = ValueKind::super;
  Super(Value type, Value self)
      : AbstractValue(kKind), type(std::move(type)), self(std::move(self)) {}
  Value type, self;
};

class Interpreter;

/// A callable of the interpreter's own, such as a virtual list's `append`.
struct Native final : AbstractValue {
  static constexpr auto kKind = ValueKind::native;
  using Function = std::function<Value(Interpreter&, const CallArguments&)>;
  Native(std::string name, Function function)
      : AbstractValue(kKind), name(std::move(name)), function(std::move(function)) {}
  std::string name;
  Function function;
};

/// A context manager that the interpreter knows (torch.no_grad(), ...).
struct ContextManager final : AbstractValue {
  static constexpr auto kKind = ValueKind::context;
  ContextManager() : AbstractValue(kKind) {}
  std::function<Value(Interpreter&)> enter;
  std::function<void(Interpreter&)> exit;
  /// Of a generator, in place of `exit`: its `__exit__`.
  Native::Function leave;
  bool handles = false;      ///< Once it is entered: `leave` may handle an exception.
  bool sees_errors = false;  ///< The same: it does something where what it surrounds fails.
  /// It can decorate functions: each call then runs between enter and exit.
  bool decorates = false;
};

struct Deferred final : AbstractValue {
  static constexpr auto kKind = ValueKind::deferred;
  Deferred() : AbstractValue(kKind) {}
  speculate::Template recipe;
  python::Object type;  ///< exact class of what it will be
};

/// A test of the program, where its outcomes were counted.
struct TestKey {
  python::Object facts_key;
  int fact = -1;
  bool operator==(const TestKey& other) const {
    return facts_key.is(other.facts_key.get()) && fact == other.fact;
  }
};

/// None unless the flag holds.
struct Optional final : AbstractValue {
  static constexpr auto kKind = ValueKind::optional;
  Optional(graph::Value* flag, Value value, TestKey test)
      : AbstractValue(kKind), flag(flag), value(std::move(value)), test(std::move(test)) {}
  graph::Value* flag;
  Value value;
  TestKey test;  ///< of the branch that it came from
};

/// One of two values that can't become one, as a branch left them: numbers of two kinds anywhere,
/// other things only in variables and on their way there. What is done with it is done with both,
/// on two sides of a branch (for_both).
struct Either final : AbstractValue {
  static constexpr auto kKind = ValueKind::either;
  Either(graph::Value* flag, Value if_true, Value if_false, TestKey test, std::string why)
      : AbstractValue(kKind),
        flag(flag),
        if_true(std::move(if_true)),
        if_false(std::move(if_false)),
        test(std::move(test)),
        why(std::move(why)) {}
  graph::Value* flag;
  Value if_true, if_false;  ///< of numbers: a float before an int, an int before a bool
  TestKey test;             ///< of the branch or loop that it came from
  std::string why;          ///< they are not one value
};

/// What a function gives of which some sides return and some raise.
struct Outcome final : AbstractValue {
  static constexpr auto kKind = ValueKind::outcome;
  Outcome(Value raises, Value value, Value exception, TestKey test)
      : AbstractValue(kKind),
        raises(std::move(raises)),
        value(std::move(value)),
        exception(std::move(exception)),
        test(std::move(test)) {}
  Value raises;            ///< a bool
  Value value, exception;  ///< null: there is none
  TestKey test;            ///< of the branch that decides it
};

/// What nothing reads unless it was set first (what a loop returns, before it does): it goes
/// together with anything.
struct Undefined final : AbstractValue {
  static constexpr auto kKind = ValueKind::undefined;
  Undefined() : AbstractValue(kKind) {}
};

/// A variable after a branch whose sides left different things in it. Only variables hold it;
/// reading one gives up the merge (frontend/control/branches.h).
struct Unmerged final : AbstractValue {
  static constexpr auto kKind = ValueKind::unmerged;
  Unmerged(TestKey test, std::string why, bool in_first_iteration = false, bool in_sizes = false)
      : AbstractValue(kKind),
        test(std::move(test)),
        why(std::move(why)),
        in_first_iteration(in_first_iteration),
        in_sizes(in_sizes) {}
  TestKey test;
  std::string why;
  bool in_first_iteration;  ///< CannotMerge::in_first_iteration
  bool in_sizes;            ///< CannotMerge::in_sizes
};

/// The value as a T if that is its kind, else null.
template <class T>
T* as(const Value& value) {
  return value != nullptr && value->kind == T::kKind ? static_cast<T*>(value.get()) : nullptr;
}
template <class T>
std::shared_ptr<T> shared_as(const Value& value) {
  return value != nullptr && value->kind == T::kKind ? std::static_pointer_cast<T>(value) : nullptr;
}

/// The object that it is known to be, borrowed; null if that is not known.
inline PyObject* known_object(const Value& value) {
  const auto* known = as<Known>(value);
  return known == nullptr ? nullptr : known->object.get();
}

/// Whether it is Python's None.
inline bool is_none(const Value& value) { return known_object(value) == Py_None; }

}  // namespace janus::frontend
