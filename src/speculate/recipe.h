// A Template in a form that can be built at every call: sources are positions among the captured
// objects.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "execute/values/slot.h"
#include "speculate/generated.h"

namespace janus::speculate {

/// Stands for an unbound variable in the result of a run of statements.
PyObject* unbound_marker();
/// Stands there for a variable that the run has not touched.
PyObject* untouched_marker();

/// A graph result or rebound value as a Python object. The object takes over a tensor; the slot
/// then refers to it. Throws python::ErrorSet.
python::Object to_object(execute::Slot& slot);

class Recipe {
 public:
  /// Gives the position of a source among the captured objects.
  using Capture = std::function<size_t(const Source*)>;
  Recipe() = default;
  Recipe(const Template& form, const Capture& capture);

  /// The objects built so far in this run, by place. The result, the heap writes and the effects
  /// can share them.
  using Made = std::vector<python::Object>;
  /// Builds a new object. Throws python::ErrorSet where a call raises.
  python::Object build(std::span<const python::Object> captured, std::span<execute::Slot> results,
                       Made& made) const;

 private:
  /// The values that it is built of.
  struct Given {
    std::span<const python::Object> captured;
    std::span<execute::Slot> results;
    Made& made;
    std::span<const python::Object> items;  ///< of `each`: the elements at the current position
  };
  python::Object build(const Given& given) const;
  python::Object build_parts(const Given& given) const;
  python::Object make_call(std::span<const python::Object> parts) const;
  std::vector<python::Object> build_children(const Given& given) const;
  python::Object build_shell() const;
  void fill(PyObject* shell, std::span<const python::Object> parts) const;
  // --- of `each`
  std::vector<python::Object> build_lists(const Given& given) const;
  python::Object build_at(const Given& given, std::span<const python::Object> lists,
                          Py_ssize_t position) const;
  python::Object build_each(const Given& given) const;
  void replay(const Given& given) const;

  Template::Kind kind_ = Template::Kind::constant;
  python::Object object_;
  size_t index_ = 0;
  size_t place_ = Template::kNoPlace;
  std::vector<Recipe> children_;
  python::Object keyword_names_;  ///< tuple of str, or null
};

}  // namespace janus::speculate
