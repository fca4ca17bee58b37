// The reducer of DistributedDataParallel, as far as its state concerns a step that is a graph.
//
// A forward pass with gradients tells the reducer to wait for them; the end of backward() tells it
// that they have come. A step that is a graph does neither.
#pragma once

#include <cstddef>
#include <unordered_map>

#include "python/object.h"

namespace c10d {
class Reducer;
}

namespace janus::torch {

/// The reducer of C++ that the object stands for; null: it is none that torch shows.
c10d::Reducer* reducer_of(PyObject* object);

/// The reducer of the wrapper whose module Python is calling; null: there is none. Takes Python's
/// lock to be held.
c10d::Reducer* reducer_of_call();

/// By the address of a parameter (at::TensorImpl) the number of the bucket that its gradient is
/// sent in. Buckets are sent in their order.
std::unordered_map<const void*, size_t> bucket_numbers(c10d::Reducer& reducer);

/// No gradients are on their way, as at the end of backward(). After a forward pass without
/// backward() the reducer would wait on, and take the gradients of some later step.
void stop_waiting(c10d::Reducer& reducer);

/// Gradients are on their way, as behind a forward pass whose backward() is yet to come.
void start_waiting(c10d::Reducer& reducer);

/// Whether a backward() has begun to share gradients and has not shared all: it has not reached all
/// parameters, or has raised. The next forward pass raises then.
bool is_reducing(c10d::Reducer& reducer);

/// Whether a forward pass has told it that gradients are on their way.
bool is_waiting(c10d::Reducer& reducer);

/// Whether it has a communication hook, of Python or of torch's own.
bool has_communication_hook(c10d::Reducer& reducer);

}  // namespace janus::torch
