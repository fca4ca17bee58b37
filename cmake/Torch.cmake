# Python and the installed torch as imported targets. find_package(Torch) would leave out torch_python and
# drag in Caffe2's logic.
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS Development.Embed)
execute_process(
  COMMAND ${Python_EXECUTABLE} -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
  OUTPUT_VARIABLE torch_root OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
# Its minor version: a library fits this one only (torchjanus/library.py).
file(STRINGS ${torch_root}/version.py torch_minor REGEX "^__version__ = ")
string(REGEX REPLACE "^__version__ = '([0-9]+\\.[0-9]+).*$" "\\1" torch_minor "${torch_minor}")
add_library(janus_cpython INTERFACE)
target_include_directories(janus_cpython SYSTEM INTERFACE ${Python_INCLUDE_DIRS})
add_library(janus_torch_headers INTERFACE)
target_include_directories(janus_torch_headers SYSTEM INTERFACE
  ${torch_root}/include ${torch_root}/include/torch/csrc/api/include)
target_link_libraries(janus_torch_headers INTERFACE janus_cpython
  ${torch_root}/lib/libc10.so ${torch_root}/lib/libtorch_cpu.so ${torch_root}/lib/libtorch_python.so)
