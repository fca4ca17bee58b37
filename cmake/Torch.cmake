# What each torch that libraries are made for has to offer, as imported targets. find_package(Torch) would leave out
# torch_python and drag in Caffe2's logic.
set(TORCHJANUS_TORCHES "" CACHE STRING "Folders of the torches that libraries are made for; else the installed one's")
if(NOT TORCHJANUS_TORCHES)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    OUTPUT_VARIABLE installed_torch OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(TORCHJANUS_TORCHES ${installed_torch})
endif()

# janus_torches has their minor versions, as a library fits one of them only (torchjanus/library.py). The target of
# the headers of 2.13 is janus_torch_headers-2.13.
set(janus_torches "")
foreach(folder IN LISTS TORCHJANUS_TORCHES)
  file(STRINGS ${folder}/version.py version REGEX "^__version__ = ")
  string(REGEX REPLACE "^__version__ = '([0-9]+\\.[0-9]+).*$" "\\1" version "${version}")
  list(APPEND janus_torches ${version})
  set(headers janus_torch_headers-${version})
  add_library(${headers} INTERFACE)
  target_include_directories(${headers} SYSTEM INTERFACE
    ${folder}/include ${folder}/include/torch/csrc/api/include)
  target_link_libraries(${headers} INTERFACE janus_cpython
    ${folder}/lib/libc10.so ${folder}/lib/libtorch_cpu.so ${folder}/lib/libtorch_python.so)
  if(version VERSION_GREATER_EQUAL 2.15 AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
    # Behind the headers of 2.15, clang warns of what libstdc++'s own headers use.
    target_compile_options(${headers} INTERFACE -Wno-error=deprecated-declarations)
  endif()
endforeach()
