#include "ops/eager_rules.h"

namespace janus::ops {

EagerRules& eager_rules() {
  static EagerRules instance;
  return instance;
}

}  // namespace janus::ops
