#include "lazy/recorded_segment.h"

namespace janus::lazy {

RecordedSegment::RecordedSegment(const Segment& segment, StorageIdentities& identities) {
  calls.reserve(segment.events.size());
  for (const Event* event : segment.events) {
    Call& call = calls.emplace_back(Call{.kind = event->kind});
    for (const Event::Operand& each : event->operands)
      call.operands.push_back({each.node->number, each.offset});
    call.numbers.assign(event->numbers.begin(), event->numbers.end());
    for (const StorageNode::Pointer& each : event->results) call.results.push_back(each->number);
  }
  for (const Segment::Storage& each : segment.storages) {
    Storage& storage =
        storages.emplace_back(Storage{each.is_made, each.is_written, each.is_wanted});
    if (!each.is_made)
      storage.identity = identities.of(*each.node->contents().unsafeGetStorageImpl());
  }
}

}  // namespace janus::lazy
