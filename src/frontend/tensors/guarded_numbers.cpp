#include "frontend/tensors/guarded_numbers.h"

namespace janus::frontend {

void assume_compares(Interpreter& interpreter, const graph::OpDef& comparison, graph::Value* number,
                     int64_t bound) {
  graph::Builder& builder = interpreter.builder();
  graph::Value* limit = number->type.kind == graph::Type::Kind::f64
                            ? builder.constant(static_cast<double>(bound))
                            : builder.constant(bound);
  interpreter.follow(comparison(builder, {number, limit}), python::Object::borrow(Py_True),
                     /*fact_number=*/-1);
}

}  // namespace janus::frontend
