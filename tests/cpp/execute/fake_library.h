// Tensors and a few operators for tests of the executor, with counters of what was done.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "execute/library/library.h"
#include "graph/op.h"

namespace janus::execute::fake {

/// Counted by hand; what a handle points to.
struct Tensor {
  int references = 1;
  Layout layout;
  std::shared_ptr<std::vector<char>> storage;  ///< without bytes: memory of somebody else
  char* data = nullptr;
  int64_t version = 0;
};

/// What run_placed does with the results of operators.
enum class Placing {
  none,       ///< leaves them where they are
  exact,      ///< puts each into its place
  swapped,    ///< puts each into the place of another one
  transposed  ///< puts each into its place, with the strides of a transposed tensor
};

class Library : public execute::Library {
 public:
  Library();

  Layout layout(const Slot& tensor) const override;
  using execute::Library::has_layout;
  bool has_layout(const Slot& tensor, graph::DType dtype, std::span<const int64_t> sizes,
                  std::span<const int64_t> strides) const override;
  void* data(const Slot& tensor) const override;
  const void* storage(const Slot& tensor) const override;
  bool has_no_other_owner(const Slot& tensor) const override;
  Slot take_over(Slot& tensor) override;
  Slot allocate(const Layout& layout) override;
  Slot over_memory(void* memory, const Layout& layout) override;
  void repoint(Slot& tensor, void* memory) override;
  Slot share(const Slot& base, int64_t byte_offset, const Layout& layout) override;
  void copy(Slot& to, const Slot& from) override;
  Slot sum(const Slot& one, const Slot& other) override;
  void bump_version(Slot& tensor, int64_t by) override;
  std::unique_ptr<Operation> bind(const graph::Node& node, const SymbolLookup& symbols) override;
  bool is_certain(const graph::Node& node) const override;
  void run_placed(Operation& operation, const Operands& operands,
                  std::span<Placement> placements) override;
  void run_beside(std::span<const OperationCall> calls) override;
  std::unique_ptr<RandomState> random_state() override;
  std::optional<Failure> protect(Unlock unlock, void (*body)(void*), void* context) override;

  int allocations = 0;
  int copies = 0;
  int calls = 0;       ///< of operators with tensors of their own making
  int calls_into = 0;  ///< of operators into given tensors
  int groups = 0;      ///< of operators that ran side by side
  size_t largest_group = 0;
  int random_state_now = 0;
  Placing placing = Placing::none;
  bool products_run_beside = false;
  std::string throw_in;           ///< name of an operator that throws
  std::set<std::string> certain;  ///< names of operators that can't fail
};

/// A contiguous f32 tensor with these elements.
Slot tensor(Library& library, std::vector<int64_t> sizes, std::vector<float> elements);
std::vector<float> elements(const Library& library, const Slot& tensor);
Tensor& get(const Slot& tensor);
/// Tensors that exist now.
int alive();

}  // namespace janus::execute::fake
