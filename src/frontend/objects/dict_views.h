// dict.keys(), dict.values() and dict.items(). A view shows its dict as it is when somebody looks.
// As a value it is a Sequence that names its dict; its elements are those of the moment in which an
// expression gave it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// The keys, values or items of the dict.
Value view_of(ValueMaker& maker, const std::shared_ptr<Dictionary>& dictionary,
              const std::string& part);

/// What a view of that part shows of an item: its key, its value, or both.
Value dictionary_part(ValueMaker& maker, const std::pair<python::Object, Value>& item,
                      const std::string& part);

bool is_view(const Value& value);

/// Whether it is a view that Python takes for a set: keys and items.
bool is_set_view(const Value& value);

/// A view with what its dict holds now; any other value as it is.
Value refreshed(ValueMaker& maker, const Value& value);

/// Whether two views of one dict may be one object: a look at a view makes it anew where its dict
/// has changed.
bool may_be_one_view(const Value& left, const Value& right);

/// The comparison of views that are not compared as sets (set_methods.h); null: none of the two is
/// a view.
Value compare_views(Interpreter& interpreter, syntax::CompareOperator op, const Value& left,
                    const Value& right);

}  // namespace janus::frontend
