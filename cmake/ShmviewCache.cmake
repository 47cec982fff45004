# SPDX-License-Identifier: Apache-2.0
# Compiles with ccache if it is installed and can write to its cache. If it could not write, for
# instance because $HOME does not exist, every compilation would fail. A launcher that the user has
# set is kept.

if(NOT SHMVIEW_CCACHE)
  return()
endif()
find_program(SHMVIEW_CCACHE_PROGRAM ccache)
mark_as_advanced(SHMVIEW_CCACHE_PROGRAM)
if(NOT SHMVIEW_CCACHE_PROGRAM)
  return()
endif()
set(trial "${PROJECT_BINARY_DIR}/CMakeFiles/ccache_trial")
file(WRITE "${trial}.c" "int ccache_trial;\n")
execute_process(COMMAND "${SHMVIEW_CCACHE_PROGRAM}" "${CMAKE_C_COMPILER}" -c "${trial}.c" -o "${trial}.o"
                RESULT_VARIABLE unusable OUTPUT_QUIET ERROR_QUIET)
foreach(language C CXX)
  if(NOT unusable AND NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER
     AND NOT DEFINED ENV{CMAKE_${language}_COMPILER_LAUNCHER})
    set(CMAKE_${language}_COMPILER_LAUNCHER "${SHMVIEW_CCACHE_PROGRAM}")
  endif()
endforeach()
