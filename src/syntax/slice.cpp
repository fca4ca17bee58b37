#include "syntax/slice.h"

#include <algorithm>

#include "syntax/scope.h"

namespace janus::syntax {
namespace {

struct Part {
  std::shared_ptr<const Tree> whole;
  Tree tree;
};

}  // namespace

std::shared_ptr<const Tree> slice(const std::shared_ptr<const Tree>& whole, size_t begin,
                                  size_t end, std::vector<std::string> assigned) {
  TORCHJANUS_CHECK(begin < end && end <= whole->body.size(), "slice: statements ", begin, " to ",
                   end, " of ", whole->body.size());
  const auto made = std::make_shared<Part>();
  made->whole = whole;
  Tree& tree = made->tree;
  tree.body.assign(whole->body.begin() + static_cast<std::ptrdiff_t>(begin),
                   whole->body.begin() + static_cast<std::ptrdiff_t>(end));
  tree.scope = tree.make_scope();
  *tree.scope = *whole->scope;
  std::sort(assigned.begin(), assigned.end());
  assigned.erase(std::unique(assigned.begin(), assigned.end()), assigned.end());
  tree.scope->assigned = std::move(assigned);
  tree.name = whole->name;
  tree.file = whole->file;
  tree.class_name = whole->class_name;
  tree.fact_count = whole->fact_count;
  tree.ends_function = whole->ends_function && end == whole->body.size();
  return {made, &made->tree};
}

}  // namespace janus::syntax
