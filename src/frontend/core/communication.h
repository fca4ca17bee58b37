// Communication between processes. If one of them makes a collective twice, or not at all, or in
// another order than the others, all of them wait for ever or mix up their data. So a graph has
// those that it knows, in the program's order (torch_library/program_collectives.h), and Python
// makes the others where the program does.
#pragma once

#include <string_view>

#include "frontend/values/value.h"

namespace janus::frontend {

class Frames;
class GraphWriter;
class Interpreter;

/// Collectives that are begun from its construction on, in the block that was at hand then.
class CollectivesSince {
 public:
  explicit CollectivesSince(GraphWriter& writer);
  bool any() const;

 private:
  const graph::Block* block_;
  size_t nodes_;  ///< that it had
};

/// Whether the operator ("_c10d_functional::all_reduce") communicates. Its schema may say that it
/// only computes.
bool is_communication(std::string_view operator_name);

/// Whether the operator is the program's own, with a kernel in Python (torch.library). The schema
/// of one that communicates says that it only computes.
bool is_written_in_python(const Interpreter& interpreter, std::string_view operator_name);

/// torch.distributed.group, whose WORLD is the group of the process; null: torch was built without.
PyObject* process_groups();

/// Whether the process belongs to a group of those that train together, which is assumed.
bool is_in_process_group(Interpreter& interpreter);

/// Refuses to show the class if it stands for one of torch's (torchjanus.communication).
void expect_own_class(const Frames& frames, const PyTypeObject* type);

/// Whether objects of the class are torch's process groups, pending works, reducers and the like,
/// which are written in C++.
bool is_communication_class(PyTypeObject* type);

/// The attribute of such an object, which is a Known: its rank, size and name are known as long as
/// it is there. Null if the object has no such attribute. Refuses the others.
Value communication_attribute(Interpreter& interpreter, const Value& self,
                              const python::Object& name);

}  // namespace janus::frontend
