// Values that an interpretation makes itself: constants, numbers of the graph, dimensions.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "frontend/core/dimension_table.h"
#include "frontend/core/dimensions.h"
#include "frontend/core/frames.h"
#include "frontend/core/graph_writer.h"
#include "frontend/values/value.h"

namespace janus::frontend {

class ValueMaker {
 public:
  ValueMaker(GraphWriter& writer, const Frames& frames, const DimensionTable& table,
             Dimensions& dimensions)
      : writer_(writer), frames_(frames), table_(table), dimensions_(dimensions) {}
  ValueMaker(const ValueMaker&) = delete;
  ValueMaker& operator=(const ValueMaker&) = delete;

  /// An object made at generation time (literals, folded results) or immortal. A null object:
  /// making it raised.
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

 private:
  GraphWriter& writer_;
  const Frames& frames_;
  const DimensionTable& table_;
  Dimensions& dimensions_;
};

}  // namespace janus::frontend
