// A segment without its storages, so that it can be kept: what is merged with others of its family.
#pragma once

#include <c10/util/SmallVector.h>

#include <vector>

#include "lazy/segment.h"
#include "lazy/storage_identities.h"

namespace janus::lazy {

struct RecordedSegment {
  struct Call {
    const CallKind* kind = nullptr;
    struct Operand {
      uint32_t storage = 0;
      int64_t offset = 0;
    };
    c10::SmallVector<Operand, 4> operands;     ///< as kind->places
    c10::SmallVector<c10::Scalar, 2> numbers;  ///< as kind->numbers
    c10::SmallVector<uint32_t, 1> results;     ///< storages of the new results
  };
  struct Storage {
    bool is_made = false, is_written = false, is_wanted = false;  ///< as Segment::Storage
    StorageIdentity identity = 0;                                 ///< of one that is not made
  };
  std::vector<Call> calls;
  std::vector<Storage> storages;  ///< as the segment numbers them

  RecordedSegment(const Segment& segment, StorageIdentities& identities);
};

}  // namespace janus::lazy
