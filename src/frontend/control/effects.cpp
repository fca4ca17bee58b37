#include "frontend/control/effects.h"

#include <algorithm>

#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"

namespace janus::frontend {

using python::Object;
using speculate::Template;

void show_effect(Interpreter& interpreter, Template call) {
  interpreter.effects.push_back({std::move(call), interpreter.user_span()});
  interpreter.mark(speculate::LineMark::Kind::effect);
}

bool may_be_conditional(const Template& call) {
  if (call.kind == Template::Kind::replay) return true;  // of nothing, where it is not made
  static PyObject* const set_default = imported("builtins.dict.setdefault");
  if (call.kind == Template::Kind::call && call.object.is(set_default)) return false;
  return std::ranges::all_of(call.children, may_be_conditional);
}

/// operator.call((nothing, callable)[flag], ...); `"".format` takes whatever it is given.
Template conditional_call(Template call, size_t flag, bool outcome) {
  if (call.kind == Template::Kind::replay) return call;
  static PyObject* const nothing = python::attribute(python::string("").get(), "format").release();
  Template is = constant_template(call.object), is_not = constant_template(Object::borrow(nothing));
  Template callee = outcome ? chosen(std::move(is_not), std::move(is), flag)
                            : chosen(std::move(is), std::move(is_not), flag);
  call.object = Object::borrow(imported("operator.call"));
  call.children.insert(call.children.begin(), std::move(callee));
  return call;
}

Template chosen(Template if_false, Template if_true, size_t flag) {
  Template form;
  form.kind = Template::Kind::call;
  form.object = Object::borrow(imported("operator.getitem"));
  Template& both = form.children.emplace_back();
  both.kind = Template::Kind::tuple;
  both.children.push_back(std::move(if_false));
  both.children.push_back(std::move(if_true));
  Template& which = form.children.emplace_back();
  which.kind = Template::Kind::result;
  which.index = flag;
  return form;
}

Template constant_template(Object object) {
  Template form;
  form.object = std::move(object);
  return form;
}

}  // namespace janus::frontend
