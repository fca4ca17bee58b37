// Speed of fused element-wise kernels, beside that of memcpy.
//
//   kernels [path of libtorch_cpu.so]
//
// With torch's library in the process kernels call Sleef's vector functions; without, the C
// library's, lane by lane. GB/s count what is read and written once; µs are the best of many runs,
// on one thread and on all.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "base/thread_pool.h"
#include "graph/text.h"
#include "kernels/compilation.h"
#include "ops/list.h"

namespace {

using janus::graph::DType;
using janus::graph::Graph;
using janus::graph::Node;
using janus::graph::Value;
using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

template <class Function>
double best_time(Function&& function) {
  const auto start = Clock::now();
  function();
  const int repeats = std::clamp(static_cast<int>(200 / microseconds_since(start)), 1, 10000);
  double best = 1e30;
  for (int round = 0; round < 50; ++round) {
    const auto begin = Clock::now();
    for (int i = 0; i < repeats; ++i) function();
    best = std::min(best, microseconds_since(begin) / repeats);
  }
  return best;
}

struct Row {
  const char* title;
  const char* text;  ///< a graph with one `fused` node, all of its sizes numbers
};

constexpr Row kRows[] = {
    {"a + b, 10", R"(graph @g(%a: f32[10], %b: f32[10]) {
      %y = fused %a, %b : f32[10] { (%p: f32[10], %q: f32[10])
        %one = constant {value=1} : i64
        %r = add %p, %q, %one : f32[10]
        yield %r }
      return %y })"},
    {"a + b, 64k", R"(graph @g(%a: f32[65536], %b: f32[65536]) {
      %y = fused %a, %b : f32[65536] { (%p: f32[65536], %q: f32[65536])
        %one = constant {value=1} : i64
        %r = add %p, %q, %one : f32[65536]
        yield %r }
      return %y })"},
    {"relu(a + bias), 128x1024", R"(graph @g(%a: f32[128,1024], %b: f32[1024]) {
      %y = fused %a, %b : f32[128,1024] { (%p: f32[128,1024], %q: f32[1024])
        %one = constant {value=1} : i64
        %s = add %p, %q, %one : f32[128,1024]
        %r = relu %s : f32[128,1024]
        yield %r }
      return %y })"},
    {"a * column, 128x1024", R"(graph @g(%a: f32[128,1024], %b: f32[128,1]) {
      %y = fused %a, %b : f32[128,1024] { (%p: f32[128,1024], %q: f32[128,1])
        %r = mul %p, %q : f32[128,1024]
        yield %r }
      return %y })"},
    {"relu(a + channel), 50x32x28x28", R"(graph @g(%a: f32[50,32,28,28], %b: f32[32,1,1]) {
      %y = fused %a, %b : f32[50,32,28,28] { (%p: f32[50,32,28,28], %q: f32[32,1,1])
        %one = constant {value=1} : i64
        %s = add %p, %q, %one : f32[50,32,28,28]
        %r = relu %s : f32[50,32,28,28]
        yield %r }
      return %y })"},
    {"exp, 64k", R"(graph @g(%a: f32[65536]) {
      %y = fused %a : f32[65536] { (%p: f32[65536])
        %r = exp %p : f32[65536]
        yield %r }
      return %y })"},
    {"tanh, 64k", R"(graph @g(%a: f32[65536]) {
      %y = fused %a : f32[65536] { (%p: f32[65536])
        %r = tanh %p : f32[65536]
        yield %r }
      return %y })"},
    {"sigmoid, 64k", R"(graph @g(%a: f32[65536]) {
      %y = fused %a : f32[65536] { (%p: f32[65536])
        %r = sigmoid %p : f32[65536]
        yield %r }
      return %y })"},
    {"gelu, 64k", R"(graph @g(%a: f32[65536]) {
      %y = fused %a : f32[65536] { (%p: f32[65536])
        %r = gelu %p : f32[65536]
        yield %r }
      return %y })"},
    {"a / sqrt(b), 64k", R"(graph @g(%a: f32[65536], %b: f32[65536]) {
      %y = fused %a, %b : f32[65536] { (%p: f32[65536], %q: f32[65536])
        %s = sqrt %q : f32[65536]
        %r = div %p, %s : f32[65536]
        yield %r }
      return %y })"},
    {"momentum step, 1M", R"(graph @g(%w: f32[1048576], %g: f32[1048576], %v: f32[1048576]) {
      %x, %u = fused %w, %g, %v : f32[1048576], f32[1048576] {
        (%p: f32[1048576], %q: f32[1048576], %m: f32[1048576])
        %one = constant {value=1} : i64
        %decay = constant {value=0.9} : f64
        %rate = constant {value=-0.01} : f64
        %old = mul %m, %decay : f32[1048576]
        %new = add %old, %q, %one : f32[1048576]
        %r = add %p, %new, %rate : f32[1048576]
        yield %r, %new }
      return %x, %u })"},
    {"bf16 a * b, 64k", R"(graph @g(%a: bf16[65536], %b: bf16[65536]) {
      %y = fused %a, %b : bf16[65536] { (%p: bf16[65536], %q: bf16[65536])
        %r = mul %p, %q : bf16[65536]
        yield %r }
      return %y })"},
};

/// A contiguous tensor of small positive numbers, and its strides in the kernel's space.
struct Operand {
  std::vector<std::byte> memory;
  std::vector<int64_t> strides;

  Operand(const janus::graph::Type& type, size_t rank) : strides(rank, 0) {
    int64_t count = 1;
    for (size_t i = 0; i < type.shape.size(); ++i) {
      const int64_t size = type.shape[type.shape.size() - 1 - i].value();
      strides[rank - 1 - i] = size == 1 ? 0 : count;
      count *= size;
    }
    memory.resize(static_cast<size_t>(count * janus::graph::byte_size(type.dtype)));
    if (type.dtype != DType::f32) return;
    for (int64_t i = 0; i < count; ++i) {
      const float value = static_cast<float>(1 + i % 97) / 50.0f;
      std::memcpy(memory.data() + 4 * i, &value, 4);
    }
  }
};

void measure(const Row& row, int threads) {
  const Graph graph = janus::graph::parse(row.text, janus::ops::table());
  const Node& fused = *graph.results()[0]->definition;
  const auto start = Clock::now();
  const auto kernel = janus::kernels::compile(fused);
  const double milliseconds = microseconds_since(start) / 1000;

  std::vector<int64_t> sizes;
  for (const auto& dim : fused.output()->type.shape) sizes.push_back(dim.value());
  std::vector<Operand> operands;
  for (const Value* value : fused.inputs) operands.emplace_back(value->type, sizes.size());
  for (const Value* value : fused.outputs) operands.emplace_back(value->type, sizes.size());
  std::vector<janus::kernels::TensorOperand> tensors;
  size_t bytes = 0;
  for (Operand& operand : operands) {
    tensors.push_back({operand.memory.data(), operand.strides.data()});
    bytes += operand.memory.size();
  }
  double times[2];
  for (int i = 0; i < 2; ++i) {
    janus::set_thread_count(i == 0 ? 1 : threads);
    times[i] = best_time([&] { kernel->run({sizes, tensors, {}}); });
  }
  std::vector<std::byte> from(bytes / 2), to(bytes / 2);
  const double copy = best_time([&] {
    std::memcpy(to.data(), from.data(), from.size());
    asm volatile("" : : "r"(to.data()) : "memory");
  });
  const auto speed = [&](double time) { return static_cast<double>(bytes) / time / 1000; };
  std::printf("%-32s %7.1f ms %10.2f us %6.1f GB/s %10.2f us %6.1f GB/s   memcpy %6.1f GB/s\n",
              row.title, milliseconds, times[0], speed(times[0]), times[1], speed(times[1]),
              speed(copy));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && dlopen(argv[1], RTLD_LAZY) == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::printf("%-32s %10s %24s %16s%d threads\n", "", "compile", "one thread", "", threads);
  for (const Row& row : kRows) measure(row, threads);
}
