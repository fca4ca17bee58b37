// What lazy execution has to know of functions of torch's Python module that look at memory without
// the dispatcher.
#pragma once

namespace janus::bind {

/// Puts code of ours in front of those functions. They stay the objects that they are. Called once.
void watch_torch_methods();

}  // namespace janus::bind
