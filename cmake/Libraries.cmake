# What an installation consists of. One shared library has all rooms that need no torch; it is made once for a Python,
# and holds all state that a process has once. Beside it there is, for each torch, an extension module torchjanus._core
# with the rooms that know torch, in a folder for that minor version (torchjanus/library.py chooses).
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
                OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)
nanobind_build_library(nanobind-static)
include(cmake/OldLinux.cmake)
set(libraries ${CMAKE_BINARY_DIR}/libraries)

# A library shows our own names and none of what is linked into it: neither LLVM's nor the C++ library's.
set(exports ${CMAKE_SOURCE_DIR}/cmake/exports.map)
function(janus_link_library target)
  target_link_options(${target} PRIVATE -Wl,--gc-sections -Wl,--version-script=${exports})
  set_target_properties(${target} PROPERTIES LINK_DEPENDS ${exports})
  janus_link_for_old_linux(${target})
endfunction()

get_property(rooms GLOBAL PROPERTY JANUS_ROOMS)
set(objects "")
foreach(room IN LISTS rooms)
  janus_room_target(target ${room})
  list(APPEND objects $<TARGET_OBJECTS:${target}>)
endforeach()
add_library(janus SHARED ${objects})
target_link_libraries(janus PRIVATE janus_llvm Threads::Threads)
# What it has itself it does not look for elsewhere, but for variables of inline functions, which have to be there once.
target_link_options(janus PRIVATE -Wl,-Bsymbolic-functions)
set_target_properties(janus PROPERTIES OUTPUT_NAME torchjanus SUFFIX .${Python_SOABI}.so LINKER_LANGUAGE CXX
                      LIBRARY_OUTPUT_DIRECTORY ${libraries})
janus_link_library(janus)
install(TARGETS janus LIBRARY DESTINATION torchjanus/libraries)

# What was built for other torches goes with another core.
file(GLOB others ${libraries}/torch-*)
list(TRANSFORM janus_torches PREPEND ${libraries}/torch- OUTPUT_VARIABLE built)
foreach(other IN LISTS others)
  if(NOT other IN_LIST built)
    file(REMOVE_RECURSE ${other})
  endif()
endforeach()

foreach(torch IN LISTS janus_torches)
  target_link_libraries(janus_bind-${torch} PRIVATE nanobind-static)
  janus_precompile_targets(TARGETS janus_torch-${torch} janus_lazy-${torch}
                           HEADERS <ATen/ATen.h> ${standard_headers} <torch/tensor.h> <ops/list.h>)
  janus_precompile_targets(TARGETS janus_bind-${torch}
                           HEADERS <nanobind/nanobind.h> ${standard_headers} <speculate/dispatch.h>)
  nanobind_add_module(_core-${torch} NB_STATIC NOMINSIZE $<TARGET_OBJECTS:janus_torch-${torch}>
                      $<TARGET_OBJECTS:janus_lazy-${torch}> $<TARGET_OBJECTS:janus_bind-${torch}>)
  target_link_libraries(_core-${torch} PRIVATE janus janus_torch_headers-${torch})
  set_target_properties(_core-${torch} PROPERTIES OUTPUT_NAME _core SUFFIX .${Python_SOABI}.so INSTALL_RPATH $ORIGIN/..
                        LIBRARY_OUTPUT_DIRECTORY ${libraries}/torch-${torch})
  janus_link_library(_core-${torch})
  install(TARGETS _core-${torch} LIBRARY DESTINATION torchjanus/libraries/torch-${torch})
endforeach()

# What is installed, and nothing else.
list(TRANSFORM janus_torches PREPEND _core- OUTPUT_VARIABLE modules)
add_custom_target(libraries DEPENDS janus ${modules})
