#include "lazy/storage_identities.h"

#include <algorithm>

#include "base/policy.h"

namespace janus::lazy {

StorageIdentity StorageIdentities::of(c10::StorageImpl& storage) {
  const auto found = known_.find(&storage);
  // A weak reference keeps the address, so a known storage at this address is this one.
  if (found != known_.end()) {
    if (++found->second.found == policy::kTimesFoundToLast)
      lasting_.emplace(found->second.identity, &storage);
    return found->second.identity;
  }
  if (known_.size() >= most_) forget_dead();
  const auto strong = c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(&storage);
  known_.emplace(&storage, Known{next_, 1, c10::weak_intrusive_ptr<c10::StorageImpl>(strong)});
  return next_++;
}

bool StorageIdentities::is_lasting(StorageIdentity identity) const {
  const auto found = lasting_.find(identity);
  return found != lasting_.end() && !known_.at(found->second).storage.expired();
}

void StorageIdentities::forget_dead() {
  std::erase_if(known_, [&](const auto& each) {
    const bool is_dead = each.second.storage.expired();
    if (is_dead) lasting_.erase(each.second.identity);
    return is_dead;
  });
  most_ = std::max<size_t>(1024, 2 * known_.size());
}

}  // namespace janus::lazy
