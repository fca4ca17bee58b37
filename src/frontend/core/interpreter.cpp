// The driver: runs the entry's body in a frame of its own, keeps frames, names and assumptions.
#include "frontend/core/interpreter.h"

#include <algorithm>

#include "frontend/core/exceptions.h"
#include "frontend/core/met_writes_state.h"
#include "frontend/core/recursion_state.h"
#include "frontend/values/formula.h"
#include "frontend/values/time_spent.h"
#include "ops/list.h"
#include "speculate/finalizers.h"
#include "speculate/reason_record.h"
#include "speculate/recipe.h"
#include "speculate/test_number.h"
#include "syntax/source.h"
#include "frontend/values/constants.h"
#include "frontend/values/restart.h"
#include "frontend/core/torch_objects.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/flags.h"
#include "frontend/core/operations.h"
#include "frontend/core/settled.h"

namespace janus::frontend {

using graph::Type;
using python::Object;
using syntax::NameKind;

namespace {

/// Folder of the installed torch, with a slash: code in it is library code.
const std::string& torch_folder() {
  static const std::string folder = [] {
    Object torch = Object::steal(PyImport_ImportModule("torch"));
    Object file = torch ? Object::steal(PyObject_GetAttrString(torch.get(), "__file__")) : Object();
    PyErr_Clear();
    std::string path = text_of(file.get());
    return path.empty() ? std::string("\n") : path.substr(0, path.rfind('/') + 1);
  }();
  return folder;
}

/// Torch's files, and our own programs for what torch has no text of.
bool is_library_file(const std::shared_ptr<const std::string>& file) {
  static const std::string own = text_of(imported("torchjanus.recurrent.__file__"));
  return file != nullptr && (file->starts_with(torch_folder()) || *file == own);
}

PyObject* code_object(PyObject* function) { return PyFunction_GetCode(function); }

}  // namespace

Interpreter::Interpreter(const speculate::Call& call, speculate::ProfileStore& profiles,
                         const std::vector<CannotMerge>& followed,
                         const std::set<std::string>& varying)
    : call_(call),
      profiles_(profiles),
      output_(graph::Graph(call.tree->name)),
      builder_(output_.graph),
      followed_(followed),
      varying_(varying) {
  output_.sources = std::make_shared<speculate::SourceTable>();
}

Interpreter::~Interpreter() = default;

void Interpreter::attach(std::unique_ptr<RecursionState> recursion,
                         std::unique_ptr<MetWritesState> met_writes) {
  recursion_ = std::move(recursion);
  met_writes_ = std::move(met_writes);
}

// --- where we are -------------------------------------------------------------------------------

const graph::SourceSpan& Interpreter::user_span() const {
  const Frame* frame = frame_;
  while (frame->is_library && frame->caller != nullptr) frame = frame->caller;
  return frame->span;
}

void Interpreter::at(const syntax::Node& node) {
  frame_->span = node.span;
  builder_.set_span(user_span());
}

const speculate::NodeFact* Interpreter::fact(int number) const {
  const speculate::Facts* facts = frame_->facts;
  if (facts == nullptr || number < 0 || static_cast<size_t>(number) >= facts->nodes.size())
    return nullptr;
  return &facts->nodes.at(static_cast<size_t>(number));
}

// --- giving up ----------------------------------------------------------------------------------

void Interpreter::refuse(ReasonCode code, std::string details) const {
  speculate::record(code, details);
  if (frame_ == nullptr) throw Refusal{{code, std::move(details), {}}};
  Object callee;
  for (const Frame* frame = frame_; frame != nullptr; frame = frame->caller)
    if (!frame->is_library && frame->code != nullptr && frame->code->function &&
        !frame->code->function.is(call_.function))
      callee = frame->code->function;
  throw Refusal{{code, std::move(details), user_span(), -1, std::move(callee)}};
}

void Interpreter::refuse_raised() const {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  Object owned_type = Object::steal(type), owned_value = Object::steal(value),
         owned_traceback = Object::steal(traceback);
  std::string message = "an error";
  if (owned_type) {
    Object name = Object::steal(PyObject_GetAttrString(owned_type.get(), "__name__"));
    Object text = owned_value ? Object::steal(PyObject_Str(owned_value.get())) : Object();
    message = text_of(name.get()) + ": " + text_of(text.get());
    PyErr_Clear();
  }
  // Others may be our own: of what was only tried.
  for (PyObject* ordinary : {PyExc_IndexError, PyExc_KeyError, PyExc_StopIteration,
                             PyExc_ValueError, PyExc_ZeroDivisionError})
    if (owned_type && owned_type.is(ordinary) && is_awaited(*this, ordinary))
      throw Raised{exception_of(owned_type, owned_value)};
  refuse(ReasonCode::would_raise, message);
}

Object Interpreter::must(PyObject* new_reference) const {
  if (new_reference == nullptr) refuse_raised();
  return Object::steal(new_reference);
}

void Interpreter::check_size() {
  const int64_t most = options().most_operations;
  if (static_cast<int64_t>(builder_.block().nodes.size()) > most)
    refuse(ReasonCode::limit, cat("the graph has more than ", most, " operations"));
  if (TimeBudget::is_spent()) refuse(ReasonCode::limit, time_spent(output_.graph));
}

// --- assumptions --------------------------------------------------------------------------------

void Interpreter::assume(Assumption assumption) {
  if (assumption.source == nullptr) return;
  bool what_it_is = assumption.kind == Assumption::Kind::identity ||
                    assumption.kind == Assumption::Kind::exact_type ||
                    assumption.kind == Assumption::Kind::equals;
  if (what_it_is && assumption.source->kind == Source::Kind::constant) return;
  std::string key = cat(static_cast<int>(assumption.kind), '|', assumption.source, '|',
                        assumption.other, '|', assumption.object.get(), '|', assumption.number);
  if (!assumed_.insert(std::move(key)).second) return;
  assumption.span = frame_ != nullptr ? user_span() : graph::SourceSpan();
  output_.assumptions.push_back(std::move(assumption));
}

void Interpreter::assume(Assumption::Kind kind, const Source* source, Object object,
                         int64_t number) {
  Assumption assumption;
  assumption.kind = kind;
  assumption.source = source;
  assumption.object = std::move(object);
  assumption.number = number;
  assume(std::move(assumption));
}

void Interpreter::assume_identity(const Known& known) {
  if (known.source != nullptr && !is_immutable_constant(known.object.get()))
    assume(Assumption::Kind::identity, known.source, known.object);
}

void Interpreter::mark(speculate::LineMark::Kind kind, std::string note) {
  mark(kind, std::move(note), user_span());
}

void Interpreter::mark(speculate::LineMark::Kind kind, std::string note,
                       const graph::SourceSpan& span) {
  if (!span.known()) return;
  if (!output_.lines.empty()) {
    const speculate::LineMark& last = output_.lines.back();
    if (last.span.line == span.line && last.kind == kind && last.note == note) return;
  }
  output_.lines.push_back({span, kind, std::move(note)});
}

bool Interpreter::expected_outcome(int fact_number) const {
  const int number = speculate::test_number(fact_number, user_span().line);
  if (call_.chosen != nullptr)
    for (const auto& choice : *call_.chosen)
      if (choice.fact == number && frame_->code->facts_key.is(choice.facts_key.get()))
        return choice.outcome;
  const speculate::NodeFact* seen = fact(fact_number);
  // Of a test that was not counted either outcome is as good: the run says if it was the wrong one.
  return seen == nullptr || seen->taken >= seen->not_taken;
}

bool Interpreter::follow(graph::Value* test, const Object& example, int fact_number) {
  bool outcome = true;
  if (example) {
    int truth = PyObject_IsTrue(example.get());
    if (truth < 0) refuse_raised();
    outcome = truth != 0;
  } else {
    outcome = expected_outcome(fact_number);
  }
  speculate::GraphTest record;
  record.facts_key = frame_->code->facts_key;
  record.fact = fact_number;
  record.outcome = outcome;
  record.span = user_span();
  auto id = static_cast<int64_t>(output_.tests.size());
  output_.tests.push_back(std::move(record));
  graph::Value* condition =
      outcome ? test
              : (test->type.is_tensor() ? op::logical_not : op::scalar_not)(builder_, {test});
  builder_.append(op::guard, {condition}, {{"id", id}, {"reason", std::string("branch_changed")}});
  // A test that the source does not show (that a slice ends within the tensor) is written out.
  std::string note = fact_number < 0 ? cat("assumes ", formula(*condition))
                     : outcome       ? "assumes true"
                                     : "assumes false";
  const CannotMerge* why = followed({frame_->code->facts_key, fact_number});
  if (why != nullptr && !why->why.empty()) note += cat("; no branch in the graph: ", why->why);
  mark(speculate::LineMark::Kind::assumed, std::move(note));
  learn_classes(test, outcome);
  guarded_.try_emplace(test, Guarded{&builder_.block(), outcome});
  return outcome;
}

std::optional<bool> Interpreter::outcome_of(const graph::Value* flag) const {
  bool negated = false;
  for (;;) {
    for (const Scope* scope : open_scopes_)
      if (const auto outcome = scope->outcome(flag)) return *outcome != negated;
    if (auto known = guarded_.find(flag); known != guarded_.end() && is_open(known->second.block))
      return known->second.outcome != negated;
    if (flag->definition == nullptr || flag->definition->op != &op::scalar_not) return std::nullopt;
    flag = flag->definition->inputs[0];
    negated = !negated;
  }
}

int64_t Interpreter::kinds_test(int fact_number) {
  speculate::GraphTest record;
  record.facts_key = frame_->code->facts_key;
  record.fact = fact_number;
  record.is_about_kinds = true;
  record.span = user_span();
  output_.tests.push_back(std::move(record));
  return static_cast<int64_t>(output_.tests.size() - 1);
}

void Interpreter::guard_kinds(graph::Value* flag, int fact_number) {
  builder_.append(op::guard, {flag},
                  {{"id", kinds_test(fact_number)}, {"reason", std::string("kind_changed")}});
}

void Interpreter::learn_classes(const graph::Value* flag, bool outcome) {
  auto test = class_tests.find(flag);
  if (test == class_tests.end()) return;
  const ClassTest& known = test->second;
  known_classes[known.object] = outcome ? KnownClasses{known.yes, known.yes_is_certain}
                                        : KnownClasses{known.no, known.no_is_certain};
}

graph::Value* Interpreter::negated_flag(graph::Value* flag) {
  graph::Value* negated = op::scalar_not(builder_, {flag});
  auto test = class_tests.find(flag);
  if (test != class_tests.end()) {
    ClassTest opposite = test->second;
    std::swap(opposite.yes, opposite.no);
    std::swap(opposite.yes_is_certain, opposite.no_is_certain);
    class_tests[negated] = std::move(opposite);
  }
  return negated;
}

// --- branches -----------------------------------------------------------------------------------

graph::Builder Interpreter::root_builder() {
  graph::Builder builder(output_.graph);
  builder.set_span(builder_.span());
  return builder;
}

void Interpreter::enter_block(graph::Block& block) {
  graph::SourceSpan span = builder_.span();
  builder_ = graph::Builder(output_.graph, block);
  builder_.set_span(std::move(span));
}

bool Interpreter::is_open(const graph::Block* block) const {
  if (block == &output_.graph.body()) return true;
  for (const Scope* scope : open_scopes_)
    if (scope->is_inside(block)) return true;
  return false;
}

bool Interpreter::may_come_again(const Tensor& tensor) {
  const graph::Block* here = &builder_.block();
  auto scope = std::find_if(open_scopes_.rbegin(), open_scopes_.rend(),
                            [&](const Scope* each) { return each->is_inside(here); });
  if (scope == open_scopes_.rend() && here != &output_.graph.body()) scope = open_scopes_.rbegin();
  return std::any_of(scope, open_scopes_.rend(),
                     [&](const Scope* each) { return each->keeps(tensor); });
}

bool Interpreter::only_branches_since(size_t count) const {
  return std::all_of(open_scopes_.begin() + static_cast<std::ptrdiff_t>(count), open_scopes_.end(),
                     [](const Scope* scope) { return scope->is_branch(); });
}

void Interpreter::existed_before(Changeable& object) {
  for (Scope* scope : open_scopes_) scope->add_entry_object(object);
}

void Interpreter::begin_scope(Scope& scope) {
  open_scopes_.push_back(&scope);
  ++scope_count_;
  suspect(scope.test());
}

void Interpreter::end_scope(Scope& scope) {
  TORCHJANUS_CHECK(!open_scopes_.empty() && open_scopes_.back() == &scope,
                   "branches and loops end out of order");
  open_scopes_.pop_back();
  suspect(open_scopes_.empty() ? scope.test() : open_scopes_.back()->test());
}

void Interpreter::abandon_scopes(const Scope& scope) {
  while (open_scopes_.back() != &scope) open_scopes_.pop_back();
  suspect(scope.test());
}

bool Interpreter::is_library(const syntax::Tree& tree) { return is_library_file(tree.file); }

void Interpreter::suspect(const TestKey* test) {
  suspect_ = test == nullptr ? std::nullopt : std::optional(*test);
}

const CannotMerge* Interpreter::followed(const TestKey& test) const {
  for (const CannotMerge& each : followed_)
    if (each.test == test && !each.in_first_round && !each.in_sizes) return &each;
  return nullptr;
}

bool Interpreter::takes_first_round(const TestKey& test) const {
  return std::ranges::any_of(
      followed_, [&](const CannotMerge& each) { return each.test == test && each.in_first_round; });
}

bool Interpreter::leaves_sizes(const TestKey& test) const {
  return std::ranges::any_of(
      followed_, [&](const CannotMerge& each) { return each.test == test && each.in_sizes; });
}

std::string Interpreter::add_cell(speculate::CellBinding::Kind kind, const Source* source,
                                  Object key) {
  std::string name = source->describe();
  if (kind == speculate::CellBinding::Kind::grad) name += ".grad";
  if (kind == speculate::CellBinding::Kind::data) name += ".data";
  auto taken = [&](const std::string& candidate) {
    for (const speculate::CellBinding& cell : output_.cells)
      if (cell.name == candidate) return true;
    return false;
  };
  std::string unique = name;
  for (int i = 2; taken(unique); ++i) unique = cat(name, "#", i);
  output_.cells.push_back({unique, kind, source, std::move(key), 0});
  return unique;
}

// --- frames -------------------------------------------------------------------------------------

void Interpreter::in_frame(Frame& frame, const std::function<void()>& body) {
  Frame* const inner = std::exchange(frame_, &frame);
  try {
    body();
  } catch (...) {
    frame_ = inner;
    throw;
  }
  frame_ = inner;
}

Value Interpreter::run_frame(Frame& frame, const std::function<Value()>& body) {
  const int64_t limit = options().deepest_inlining;
  const int own = call_.function != nullptr ? 2 : 1;  // frames of the call itself
  if (depth_ >= limit + own)
    refuse(ReasonCode::limit, cat("calls are nested more than ", limit, " deep"));
  frame.caller = frame_;
  frame.span = frame_ != nullptr ? frame_->span : graph::SourceSpan();
  struct Restore {
    Interpreter& interpreter;
    Frame* previous;
    ~Restore() {
      interpreter.frame_ = previous;
      --interpreter.depth_;
      if (previous != nullptr) interpreter.builder_.set_span(interpreter.user_span());
    }
  };
  // A refusal is built while the frame still stands, so the frame may go on unwinding.
  Restore restore{*this, frame_};
  frame_ = &frame;
  frame.open_scopes = open_scopes_.size();
  deepest = std::max(deepest, ++depth_);
  try {
    return body();
  } catch (const graph::TypeError& error) {  // here the line is still known
    refuse(ReasonCode::shape_mismatch, error.what());
  }
}

Frame Interpreter::make_frame(std::shared_ptr<const Code> code,
                              std::shared_ptr<Variables> variables, std::string name) {
  Frame frame;
  frame.is_library = is_library_file(code->tree->file);
  frame.facts = code->facts_key ? profiles_.find(code->facts_key.get()) : nullptr;
  frame.code = std::move(code);
  frame.variables = std::move(variables);
  frame.name = std::move(name);
  return frame;
}

std::shared_ptr<const Code> Interpreter::code_of(PyObject* function, const Source* source) {
  const syntax::Source& found = syntax::source_of(function);
  if (found.tree == nullptr) {
    Object name = Object::steal(PyObject_GetAttrString(function, "__qualname__"));
    PyErr_Clear();
    refuse(ReasonCode::no_source, cat(text_of(name.get()), ": ", found.why_not));
  }
  auto code = std::make_shared<Code>();
  code->tree = found.tree.get();
  code->function = Object::borrow(function);
  code->function_source =
      source != nullptr ? source : sources().root(Source::Kind::constant, Object::borrow(function));
  code->facts_key = Object::borrow(code_object(function));
  // The body that was read is that of the function's code object. A function of torch is reached by
  // many paths: one assumption stands for all of them.
  const Source* owner = is_library_file(found.tree->file)
                            ? sources().root(Source::Kind::constant, code->function)
                            : code->function_source;
  assume(Assumption::Kind::identity, sources().step(Source::Kind::code, owner), code->facts_key);
  return code;
}

// --- names --------------------------------------------------------------------------------------

std::string Interpreter::mangled(const std::string& name) const {
  return name.starts_with("__") ? frame_->code->tree->mangle(name) : name;
}

Value* Interpreter::find_variable(const std::string& name) {
  for (Variables* scope = frame_->variables.get(); scope != nullptr; scope = scope->parent.get()) {
    if (scope->scope == nullptr) continue;
    bool statements = scope->scope->kind == syntax::Scope::Kind::statements;
    auto kind = scope->scope->names.find(name);
    bool here = kind != scope->scope->names.end() &&
                (kind->second == NameKind::local || kind->second == NameKind::cell);
    if (!here && !statements) continue;
    auto value = scope->values.find(name);
    if (value != scope->values.end()) return &value->second;
    if (here && !statements) return &scope->values[name];  // unbound so far
  }
  return nullptr;
}

Value Interpreter::read_statement_variable(const std::string& name) {
  auto written = statement_run.variables->values.find(name);
  if (written != statement_run.variables->values.end()) {
    check_merged(written->second);
    if (written->second == nullptr)
      refuse(ReasonCode::would_raise, cat("NameError: name '", name, "' is not defined"));
    return written->second;
  }
  Object key = Object::steal(PyUnicode_FromStringAndSize(name.data(), Py_ssize_t(name.size())));
  const Source* source = sources().root(Source::Kind::variable, key);
  for (PyObject* dict : {call_.variables, call_.globals, PyEval_GetBuiltins()}) {
    if (dict == nullptr) continue;
    const Held changed = heap.find(*this, dict, key.get(), nullptr);
    if (changed.is_value()) return changed.value();
    if (changed.is_absent()) continue;
    Object value = Object::borrow(PyDict_GetItemWithError(dict, key.get()));
    if (PyErr_Occurred() != nullptr) refuse_raised();
    if (value) return wrap(value.get(), source);
  }
  refuse(ReasonCode::would_raise, cat("NameError: name '", name, "' is not defined"));
}

/// A function made before the run reads a variable of the frame that the statements stand in, which
/// they have written: its cell still holds what it was at entry. That is laid to who wrote it.
void Interpreter::check_not_written(const std::string& name, PyObject* cell) const {
  if (statement_run.variables == nullptr || !statement_run.variables->values.contains(name)) return;
  if (!may_be_variable(name, cell)) return;
  auto writer = statement_run.written_by.find(name);
  std::string details = cat("the variable ", name, " of a nested function");
  speculate::record(ReasonCode::heap_write, details);
  throw Refusal{{ReasonCode::heap_write, std::move(details), user_span(),
                 writer == statement_run.written_by.end() ? -1 : writer->second}};
}

Value Interpreter::read_closure_cell(const std::string& name) {
  const Code& code = *frame_->code;
  if (!code.function) refuse(ReasonCode::expression, cat("the free variable ", name));
  PyObject* function_code = code_object(code.function.get());
  Object names = must(PyObject_GetAttrString(function_code, "co_freevars"));
  PyObject* closure = PyFunction_GetClosure(code.function.get());
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.get()); ++i) {
    if (text_of(PyTuple_GET_ITEM(names.get(), i)) != name) continue;
    if (closure == nullptr || i >= PyTuple_GET_SIZE(closure)) break;
    const Held written = heap.find(*this, PyTuple_GET_ITEM(closure, i), Py_None, nullptr);
    if (written.is_value()) return written.value();
    if (written.is_absent())
      refuse(ReasonCode::would_raise, cat("NameError: free variable '", name, "' is unbound"));
    check_not_written(name, PyTuple_GET_ITEM(closure, i));
    Object value = Object::steal(PyCell_Get(PyTuple_GET_ITEM(closure, i)));
    if (!value) {
      PyErr_Clear();
      refuse(ReasonCode::would_raise, cat("NameError: free variable '", name, "' is unbound"));
    }
    return wrap(value.get(), sources().step(Source::Kind::closure, code.function_source,
                                            Object::borrow(PyTuple_GET_ITEM(names.get(), i)), i));
  }
  refuse(ReasonCode::expression, cat("the free variable ", name));
}

Value Interpreter::read_name(const std::string& written) {
  const std::string name = mangled(written);
  const syntax::Scope* scope = frame_->variables->scope;
  auto kind = scope->names.find(name);
  bool is_global = kind == scope->names.end() || kind->second == NameKind::global;
  bool statements = scope->kind == syntax::Scope::Kind::statements;
  if (is_global && !statements) {
    // Inside a comprehension or function of a run of statements, its variables come first.
    return read_global(name);
  }
  if (Value* found = find_variable(name)) {
    check_merged(*found);
    if (*found == nullptr)
      refuse(ReasonCode::would_raise,
             cat("UnboundLocalError: cannot access local variable '", name, "'"));
    return *found;
  }
  if (!frame_->code->function) return read_statement_variable(name);
  return read_closure_cell(name);
}

Value Interpreter::read_global(const std::string& name) {
  if (!frame_->code->function) return read_statement_variable(name);
  PyObject* globals = PyFunction_GetGlobals(frame_->code->function.get());
  if (statement_run.variables != nullptr && globals == call_.variables) {
    auto written = statement_run.variables->values.find(name);
    if (written != statement_run.variables->values.end() && written->second != nullptr) {
      check_merged(written->second);
      return written->second;
    }
  }
  Object key = Object::steal(PyUnicode_FromStringAndSize(name.data(), Py_ssize_t(name.size())));
  Object value;
  const Held written = heap.find(*this, globals, key.get(), nullptr);
  if (written.is_value()) return written.value();
  if (written.is_unknown()) value = Object::borrow(PyDict_GetItemWithError(globals, key.get()));
  if (!value && PyErr_Occurred() == nullptr) {
    Object builtins = Object::borrow(PyDict_GetItemString(globals, "__builtins__"));
    PyObject* dict = builtins && PyModule_Check(builtins.get()) ? PyModule_GetDict(builtins.get())
                     : builtins                                 ? builtins.get()
                                                                : PyEval_GetBuiltins();
    value = Object::borrow(PyDict_GetItemWithError(dict, key.get()));
  }
  if (PyErr_Occurred() != nullptr) refuse_raised();
  if (!value) refuse(ReasonCode::would_raise, cat("NameError: name '", name, "' is not defined"));
  return wrap(value.get(), sources().step(Source::Kind::global, globals_owner(), key));
}

const Source* Interpreter::globals_owner() {
  PyObject* globals = PyFunction_GetGlobals(frame_->code->function.get());
  if (call_.function != nullptr && globals == PyFunction_GetGlobals(call_.function))
    return sources().root(Source::Kind::function);
  return globals_owners_.try_emplace(globals, frame_->code->function_source).first->second;
}

/// Whether a closure's cell may be a variable of the function that a run of statements stands in:
/// frames do not show their cells.
bool Interpreter::may_be_variable(const std::string& name, PyObject* cell) const {
  if (call_.function != nullptr || call_.variables == call_.globals) return false;
  PyObject* value = PyDict_GetItemString(call_.variables, name.c_str());
  return value == PyCell_GET(cell);
}

void Interpreter::write_global(const std::string& name, const Value& value) {
  const Code& code = *frame_->code;
  Object key = Object::steal(PyUnicode_InternFromString(name.c_str()));
  PyObject* globals = PyFunction_GetGlobals(code.function.get());
  if (statement_run.variables != nullptr && globals == call_.variables) {
    // A variable of the run of statements itself, if it assigns it.
    const auto& assigned = call_.tree->scope->assigned;
    if (std::find(assigned.begin(), assigned.end(), name) != assigned.end()) {
      statement_run.variables->values[name] = value;
      return;
    }
  }
  Heap::Target target;
  target.table = globals;
  target.kind = speculate::HeapWrite::Kind::global;
  target.owner = globals_owner();
  target.object = code.function;
  write_place(*this, target, key, sources().step(Source::Kind::global, target.owner, key),
              Held::stored(value));
}

void Interpreter::write_closure_cell(const std::string& name, const Value& value) {
  const Code& code = *frame_->code;
  Object names = must(PyObject_GetAttrString(code_object(code.function.get()), "co_freevars"));
  PyObject* closure = PyFunction_GetClosure(code.function.get());
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.get()); ++i) {
    if (text_of(PyTuple_GET_ITEM(names.get(), i)) != name) continue;
    if (may_be_variable(name, PyTuple_GET_ITEM(closure, i)))
      refuse(ReasonCode::heap_write, cat("the variable ", name, " of an enclosing function"));
    Heap::Target target;
    target.table = PyTuple_GET_ITEM(closure, i);
    target.kind = speculate::HeapWrite::Kind::cell;
    target.owner = code.function_source;
    target.object = code.function;
    target.index = static_cast<size_t>(i);
    const Source* at_entry = sources().step(Source::Kind::closure, code.function_source, {}, i);
    return write_place(*this, target, Object::borrow(Py_None), at_entry, Held::stored(value));
  }
  refuse(ReasonCode::expression, cat("the free variable ", name));
}

namespace {

/// A graph frees what its variables held when it has run, behind all that it shows. An object whose
/// end the program sees has to go where the statement stands.
void check_freed_variable(const Interpreter& interpreter, const std::string& name) {
  PyObject* const variables = interpreter.call().variables;
  if (variables == nullptr || variables == interpreter.call().globals) return;
  PyObject* const held = PyDict_GetItemString(variables, name.c_str());
  constexpr Py_ssize_t kOurs = 5;  // the variable, its dict, and what the interpreter has of it
  if (speculate::would_run_finalizer(held, kOurs))
    interpreter.refuse(ReasonCode::unknown_callable, cat("the finalizer of ", name));
}

}  // namespace

void Interpreter::write_name(const std::string& written, Value value) {
  const std::string name = mangled(written);
  if (statement_run.at >= 0 && frame_->variables == statement_run.variables) {
    if (!statement_run.variables->values.contains(name)) check_freed_variable(*this, name);
    statement_run.written_by[name] = statement_run.at;
  }
  const syntax::Scope* scope = frame_->variables->scope;
  auto kind = scope->names.find(name);
  bool statements = scope->kind == syntax::Scope::Kind::statements;
  bool is_global = kind != scope->names.end() && kind->second == NameKind::global;
  if (statements || kind == scope->names.end() || kind->second == NameKind::local ||
      kind->second == NameKind::cell) {
    frame_->variables->values[name] = std::move(value);
    return;
  }
  if (is_global && frame_->code->function) return write_global(name, value);
  if (is_global) refuse(ReasonCode::heap_write, cat("the global ", name));
  Value* found = find_variable(name);
  if (found == nullptr) {
    if (!frame_->code->function && statement_run.variables != nullptr)
      statement_run.variables->values[name] = std::move(value);
    else
      write_closure_cell(name, value);
    return;
  }
  *found = std::move(value);
}

void Interpreter::delete_name(const std::string& name) {
  read_name(name);  // it must be bound
  write_name(name, nullptr);
}

void Interpreter::blame_writer_of(size_t index) {
  constexpr size_t kBeforeVariables = 2;  // how the statements ended, and what they returned
  statement_run.at = -1;
  const auto& assigned = call_.tree->scope->assigned;
  if (statement_run.variables == nullptr || index < kBeforeVariables) return;
  auto writer = statement_run.written_by.find(assigned.at(index - kBeforeVariables));
  if (writer != statement_run.written_by.end()) statement_run.at = writer->second;
}

}  // namespace janus::frontend
