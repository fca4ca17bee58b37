// dict.keys(), dict.values() and dict.items(): what they show is the dict as it is when somebody
// looks. As a value such a view is a Sequence that names its dict; its elements are those of the
// moment in which an expression gave it.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// The keys, values or items of the dict.
Value view_of(Interpreter& interpreter, const std::shared_ptr<Dictionary>& dictionary,
              const std::string& part);
/// A view with what its dict holds now; any other value as it is.
Value current(Interpreter& interpreter, const Value& value);
bool is_view(const Value& value);
/// Whether it is one that Python takes for a set: keys and items.
bool is_set_view(const Value& value);
/// Whether two views of one dict may be one object: a look at a view makes it anew where its dict
/// has changed.
bool may_be_one_view(const Value& left, const Value& right);
/// What `==` and `<` of views give that are not compared as sets (sets.cpp); null: none of the two
/// is a view.
Value compare_views(Interpreter& interpreter, syntax::CompareOperator op, const Value& left,
                    const Value& right);
/// A method of a view; null: it has none of that name.
Value view_method(Interpreter& interpreter, const std::shared_ptr<Sequence>& view,
                  const std::string& name);
/// The view as an object of Python's, of a dict whose parts are known.
python::Object folded_view(Interpreter& interpreter, const Sequence& view);

}  // namespace janus::frontend
