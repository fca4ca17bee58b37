#include "base/call_tree.h"

#include <algorithm>
#include <utility>

namespace janus {

void CallTree::begin_window(const std::vector<Active>& active, double now) {
  window_start_ = now;
  for (const auto& [key, is_covered] : active) enter(key, now, is_covered);
}

void CallTree::enter(Key key, double now, bool is_covered) {
  Node& caller = active_.empty() ? root_ : *active_.back().node;
  std::unique_ptr<Node>& node = caller.callees[key];
  if (node == nullptr) node = std::make_unique<Node>();
  node->is_covered = is_covered;
  active_.push_back({key, node.get(), now});
}

void CallTree::leave(double now) {
  if (active_.empty()) return;  // of a function above those that were active at the beginning
  const Call call = active_.back();
  active_.pop_back();
  call.node->time += now - call.since;
  ++call.node->calls;
}

void CallTree::mark() {
  // A node with a mark has one on each node above it.
  for (auto call = active_.rbegin(); call != active_.rend() && !call->node->is_marked; ++call)
    call->node->is_marked = true;
}

void CallTree::end_window(double now) {
  for (const Call& call : active_) call.node->time += now - call.since;
  active_.clear();
  watched_ += now - window_start_;
}

std::set<CallTree::Key> CallTree::helpers() const {
  std::map<Key, Key> caller_of;
  std::set<Key> found;
  const auto search = [&](const auto& self, Key caller, const Node& node) -> void {
    for (const auto& [key, callee] : node.callees) {
      if (!callee->is_marked) continue;
      const bool is_recursive = caller == key;
      if (!is_recursive && caller_of.try_emplace(key, caller).first->second != caller)
        found.insert(key);
      self(self, key, *callee);
    }
  };
  search(search, nullptr, root_);
  return found;
}

std::set<CallTree::Key> CallTree::covered() const {
  std::set<Key> found;
  const auto search = [&](const auto& self, const Node& node, bool is_within) -> void {
    for (const auto& [key, callee] : node.callees) {
      const bool is_covered = is_within || callee->is_covered;
      if (is_covered) found.insert(key);
      self(self, *callee, is_covered);
    }
  };
  search(search, root_, false);
  return found;
}

std::vector<CallTree::Key> CallTree::repeated(const Threshold& least,
                                              const std::function<Choice(Key)>& choose) const {
  const std::set<Key> shared = helpers(), left_out = covered();
  std::vector<std::pair<double, Key>> found;
  const auto search = [&](const auto& self, const Node& caller, uint64_t calls) -> void {
    for (const auto& [key, node] : caller.callees) {
      if (!node->is_marked || node->time < least.share * watched_) continue;
      if (left_out.contains(key)) continue;
      const bool is_asked = node->calls >= calls && !shared.contains(key);
      const Choice choice = is_asked ? choose(key) : Choice::below;
      if (choice == Choice::take) found.emplace_back(node->time, key);
      if (choice != Choice::below) continue;
      const bool may_be_step = node->calls > 0 && node->calls < calls;
      self(self, *node, may_be_step ? std::max(calls, least.within) : calls);
    }
  };
  search(search, root_, least.calls);
  std::ranges::sort(found, std::ranges::greater(), &std::pair<double, Key>::first);
  std::vector<Key> keys;
  for (const auto& [time, key] : found)
    if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  return keys;
}

void CallTree::clear() {
  root_ = {};
  watched_ = 0;
}

}  // namespace janus
