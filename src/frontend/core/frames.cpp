#include "frontend/core/frames.h"

#include <algorithm>
#include <utility>

#include "base/options.h"
#include "frontend/core/exception_values.h"
#include "frontend/core/torch_objects.h"
#include "frontend/values/constants.h"
#include "frontend/values/time_spent.h"
#include "speculate/reason_record.h"

namespace janus::frontend {

using python::Object;

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

/// Torch's files, what its deprecated functions are wrapped in, and our own programs for what torch
/// has no text of.
bool is_library_file(const std::shared_ptr<const std::string>& file) {
  static const std::string wrappers = text_of(imported("typing_extensions.__file__"));
  static const std::string recurrent = text_of(imported("torchjanus.recurrent.__file__"));
  static const std::string communication = text_of(imported("torchjanus.communication.__file__"));
  return file != nullptr && (file->starts_with(torch_folder()) || *file == wrappers ||
                             *file == recurrent || *file == communication);
}

}  // namespace

// --- where we are -------------------------------------------------------------------------------

const graph::SourceSpan& Frames::user_span() const {
  const Frame* frame = frame_;
  while (frame->is_library && frame->caller != nullptr) frame = frame->caller;
  return frame->span;
}

void Frames::at(const syntax::Node& node) {
  ++steps_;
  frame_->span = node.span;
  writer_.builder().set_span(user_span());
}

const speculate::NodeFact* Frames::fact(int number) const {
  const speculate::Facts* facts = frame_->facts;
  if (facts == nullptr || number < 0 || static_cast<size_t>(number) >= facts->nodes.size())
    return nullptr;
  return &facts->nodes.at(static_cast<size_t>(number));
}

void Frames::mark(speculate::LineMark::Kind kind, std::string note) {
  mark(kind, std::move(note), user_span());
}

void Frames::mark(speculate::LineMark::Kind kind, std::string note, const graph::SourceSpan& span) {
  writer_.note_line(kind, std::move(note), span);
}

bool Frames::is_library(const syntax::Tree& tree) { return is_library_file(tree.file); }

// --- new frames ---------------------------------------------------------------------------------

Frame Frames::make_frame(std::shared_ptr<const Code> code, std::shared_ptr<Variables> variables,
                         std::string name) {
  Frame frame;
  frame.is_library = is_library_file(code->tree->file);
  frame.facts = code->facts_key ? profiles_.find(code->facts_key.get()) : nullptr;
  frame.code = std::move(code);
  frame.variables = std::move(variables);
  frame.name = std::move(name);
  return frame;
}

Value Frames::run_frame(Frame& frame, const std::function<Value()>& body) {
  const int64_t limit = options().deepest_inlining;
  const int own = call_.function != nullptr ? 2 : 1;  // frames of the call itself
  if (depth_ >= limit + own)
    refuse(ReasonCode::limit, cat("calls are nested more than ", limit, " deep"));
  frame.caller = frame_;
  frame.span = frame_ != nullptr ? frame_->span : graph::SourceSpan();
  struct Restore {
    Frames& frames;
    Frame* previous;
    ~Restore() {
      frames.frame_ = previous;
      --frames.depth_;
      if (previous != nullptr) frames.writer_.builder().set_span(frames.user_span());
    }
  };
  // A refusal is built while the frame still stands, so the frame may go on unwinding.
  Restore restore{*this, frame_};
  frame_ = &frame;
  frame.open_scopes = scopes_.open_scopes();
  frame.uncounted = std::exchange(uncounted_of_next, 0);
  deepest = std::max(deepest, ++depth_);
  try {
    return body();
  } catch (const graph::TypeError& error) {  // here the line is still known
    refuse(ReasonCode::shape_mismatch, error.what());
  } catch (const graph::DimError& error) {
    refuse(ReasonCode::limit, cat("a size or an index: ", error.what()));
  }
}

void Frames::in_frame(Frame& frame, const std::function<void()>& body) {
  Frame* const inner = std::exchange(frame_, &frame);
  try {
    body();
  } catch (...) {
    frame_ = inner;
    throw;
  }
  frame_ = inner;
}

// --- giving up ----------------------------------------------------------------------------------

void Frames::refuse(ReasonCode code, std::string details) const {
  speculate::record(code, details);
  if (frame_ == nullptr) throw Refusal{{code, std::move(details), {}}};
  Object callee;
  for (const Frame* frame = frame_; frame != nullptr; frame = frame->caller)
    if (!frame->is_library && frame->code != nullptr && frame->code->function &&
        !frame->code->function.is(call_.function))
      callee = frame->code->function;
  throw Refusal{{code, std::move(details), user_span(), -1, std::move(callee)}};
}

void Frames::refuse_around(std::string what, Object module) const {
  try {
    refuse(ReasonCode::communication, std::move(what));
  } catch (Refusal& refusal) {
    refusal.reason.module_within = std::move(module);
    throw;
  }
}

void Frames::refuse_raised() const {
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
    if (owned_type && owned_type.is(ordinary) && awaits(ordinary))
      throw Raised{exception_of(owned_type, owned_value)};
  refuse(ReasonCode::would_raise, message);
}

Object Frames::must(PyObject* new_reference) const {
  if (new_reference == nullptr) refuse_raised();
  return Object::steal(new_reference);
}

void Frames::check_size() {
  const int64_t most = options().most_operations;
  if (static_cast<int64_t>(writer_.builder().block().nodes.size()) > most)
    refuse(ReasonCode::limit, cat("the graph has more than ", most, " operations"));
  if (TimeBudget::is_spent()) refuse(ReasonCode::limit, time_spent(writer_.output().graph));
}

// --- exceptions that the program handles --------------------------------------------------------

void Frames::await(PyObject* type) { frame_->awaiting.push_back({type, scopes_.open_scopes()}); }

bool Frames::awaits(PyObject* type) const {
  for (const Frame* frame = frame_; frame != nullptr; frame = frame->caller) {
    for (auto each = frame->awaiting.rbegin(); each != frame->awaiting.rend(); ++each) {
      if (each->type == nullptr) return false;
      if (type != nullptr && PyErr_GivenExceptionMatches(type, each->type) == 0) continue;
      return scopes_.only_branches_since(each->open_scopes);
    }
  }
  return false;
}

}  // namespace janus::frontend
