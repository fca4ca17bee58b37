// See frame.h.
#include "execute/frame/frame.h"

namespace janus::execute {

void Frame::give_up_as_lying_otherwise(const graph::Node& node) {
  lies_otherwise = true;
  failure = failure_of(Failure::Kind::operation, node,
                       "the result's sizes or strides differ from those of earlier runs");
}

}  // namespace janus::execute
