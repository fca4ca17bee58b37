// The order of the tables does not matter: each path names one callable.
#include "frontend/output/special_callables.h"

#include "frontend/autograd/special_callables.h"
#include "frontend/language/special_callables.h"
#include "frontend/library/special_callables.h"
#include "frontend/objects/special_callables.h"
#include "frontend/tensors/special_callables.h"
#include "frontend/torch_library/special_callables.h"

namespace janus::frontend {

void register_special_callables() {
  static constexpr CallableTable tables[] = {
      autocast_callables,
      mask_callables,
      packed_callables,
      requires_grad_callables,
      copy_callables,
      partial_callables,
      deque_callables,
      dict_callables,
      set_callables,
      numpy_callables,
      numpy_number_callables,
      python_callables,
      builtin_callables,
      builtin_container_callables,
      context_variable_callables,
      effect_callables,
      import_callables,
      json_callables,
      library_callables,
      lock_callables,
      mapping_proxy_callables,
      pattern_callables,
      signature_callables,
      standard_library_callables,
      array_callables,
      attention_callables,
      autograd_callables,
      checkpoint_callables,
      collective_callables,
      custom_gradient_callables,
      foreach_callables,
      fused_callables,
      grad_mode_callables,
      gradient_scaler_callables,
      legacy_tensor_callables,
      module_callables,
      optimizer_callables,
      recurrent_callables,
      sharding_callables,
      shared_gradient_callables,
      tensor_callables,
  };
  register_callables(tables);
}

}  // namespace janus::frontend
