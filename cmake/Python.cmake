# The Python that libraries are made for: the one that runs, or another of which only the headers are there, so that
# wheels for all are built on one machine.
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS Development.Embed)
set(TORCHJANUS_PYTHON_HEADERS "" CACHE STRING "Folders of the headers of another Python, that of Python.h first")
if(TORCHJANUS_PYTHON_HEADERS)
  list(GET TORCHJANUS_PYTHON_HEADERS 0 folder)
  file(STRINGS ${folder}/patchlevel.h version REGEX "#define PY_VERSION ")
  string(REGEX REPLACE ".*\"([0-9]+)\\.([0-9]+).*" "cpython-\\1\\2-${CMAKE_LIBRARY_ARCHITECTURE}" Python_SOABI "${version}")
  set(Python_INCLUDE_DIRS ${TORCHJANUS_PYTHON_HEADERS})
  set(Python_Development.Embed_FOUND OFF)
endif()
add_library(janus_cpython INTERFACE)
target_include_directories(janus_cpython SYSTEM INTERFACE ${Python_INCLUDE_DIRS})
