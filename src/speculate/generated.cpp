// Holds the generator that frontend/ provides at start-up.
#include "speculate/generated.h"

namespace janus::speculate {
namespace {

Generator generator_of_process = nullptr;

}  // namespace

void set_generator(Generator generator) { generator_of_process = generator; }
Generator generator() { return generator_of_process; }

}  // namespace janus::speculate
