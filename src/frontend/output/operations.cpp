// Each row names the function of a later room that implements the operation.
#include "frontend/output/operations.h"

#include "frontend/autograd/requires_grad.h"
#include "frontend/core/operations.h"
#include "frontend/language/calls.h"
#include "frontend/language/comparison.h"
#include "frontend/language/conditions.h"
#include "frontend/language/operators.h"
#include "frontend/objects/entry_containers.h"
#include "frontend/objects/iteration.h"
#include "frontend/output/epilogue.h"
#include "frontend/recursion/list_calls.h"
#include "frontend/torch_library/special_callables.h"

namespace janus::frontend {

void install_operations() {
  set_operations({.call = call_value,
                  .binary = compute_binary,
                  .compare = compare_values,
                  .identical = are_identical,
                  .truth_of = compute_truth,
                  .opened = open_container,
                  .elements_of = list_elements,
                  .call_decorated = call_decorated_function,
                  .call_on_list = call_list_operator,
                  .switch_requires_grad = set_requires_grad,
                  .make_template = template_of});
}

}  // namespace janus::frontend
