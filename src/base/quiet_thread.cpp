#include "base/quiet_thread.h"

#include <signal.h>

#include <system_error>
#include <thread>

#include "base/free_memory.h"

namespace janus {

namespace {

class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

bool start_quiet_thread(void (*run)(), int64_t bytes) {
  if (!has_free_memory(bytes)) return false;
  try {
    const WithoutSignals blocked;
    std::thread(run).detach();
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

}  // namespace janus
