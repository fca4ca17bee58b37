// A question is an object whose attributes call what it holds, whatever they are named: paths have
// no calls. Reports show the name.
#include "frontend/core/entry_answers.h"

#include <algorithm>

namespace janus::frontend {

using python::Object;

namespace {

struct Question {
  PyObject_HEAD;
  PyObject* callable;
  PyObject* argument;  ///< null: it takes none
};

PyObject* answer(PyObject* self, PyObject* /*name*/) {
  const auto* question = reinterpret_cast<Question*>(self);
  return question->argument == nullptr
             ? PyObject_CallNoArgs(question->callable)
             : PyObject_CallOneArg(question->callable, question->argument);
}

void destroy(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  Py_XDECREF(reinterpret_cast<Question*>(self)->callable);
  Py_XDECREF(reinterpret_cast<Question*>(self)->argument);
  type->tp_free(self);
  Py_DECREF(type);
}

PyTypeObject* question_type() {
  static PyType_Slot slots[] = {{Py_tp_getattro, reinterpret_cast<void*>(answer)},
                                {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                                {0, nullptr}};
  static PyType_Spec spec = {"torchjanus._core.Question", sizeof(Question), 0, Py_TPFLAGS_DEFAULT,
                             slots};
  static PyObject* const type = python::check(PyType_FromSpec(&spec)).release();
  return reinterpret_cast<PyTypeObject*>(type);
}

bool asks(const Source& source, PyObject* callable, PyObject* argument) {
  if (source.kind != Source::Kind::constant || !Py_IS_TYPE(source.key.get(), question_type()))
    return false;
  const auto* question = reinterpret_cast<Question*>(source.key.get());
  return question->callable == callable && question->argument == argument;
}

/// One question of its kind in each graph, so that an entry asks it once.
const Source* question_path(Interpreter& interpreter, PyObject* callable, PyObject* argument) {
  const auto& all = interpreter.sources().all();
  const auto earlier = std::ranges::find_if(
      all, [&](const Source& source) { return asks(source, callable, argument); });
  if (earlier != all.end()) return &*earlier;
  const Object made = interpreter.must(question_type()->tp_alloc(question_type(), 0));
  auto* const question = reinterpret_cast<Question*>(made.get());
  question->callable = Py_NewRef(callable);
  question->argument = Py_XNewRef(argument);
  return interpreter.sources().root(Source::Kind::constant, made);
}

}  // namespace

namespace {

/// "getrecursionlimit()", "dispatch(int)", "is_missing('xarray')"
Object name_of_question(const Frames& frames, PyObject* callable, PyObject* argument) {
  const auto text = [&](PyObject* object) {
    if (PyUnicode_Check(object)) return frames.must(PyObject_Repr(object));
    return frames.must(PyObject_GetAttrString(object, "__name__"));
  };
  const Object name =
      frames.must(argument == nullptr
                      ? PyUnicode_FromFormat("%S()", text(callable).get())
                      : PyUnicode_FromFormat("%S(%S)", text(callable).get(), text(argument).get()));
  PyObject* interned = Py_NewRef(name.get());
  PyUnicode_InternInPlace(&interned);
  return Object::steal(interned);
}

}  // namespace

const Source* answer_path(Interpreter& interpreter, PyObject* callable, PyObject* argument) {
  return interpreter.sources().step(Source::Kind::attribute,
                                    question_path(interpreter, callable, argument),
                                    name_of_question(interpreter, callable, argument));
}

}  // namespace janus::frontend
