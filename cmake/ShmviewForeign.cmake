# SPDX-License-Identifier: Apache-2.0
# Interpreters that load what was built with sanitizers, and are not built for them themselves.

# Sets out to what their environment needs, with other variables behind it. The allocator of the
# interpreter gives way, and what it leaks is its own; so are the stacks it has for signals, which
# the sanitizer would unmap as if they were its.
function(shmview_foreign_environment out)
  set(variables)
  if(SHMVIEW_SANITIZE MATCHES "address")
    foreach(library asan ubsan)
      execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=lib${library}.so
                      OUTPUT_VARIABLE path OUTPUT_STRIP_TRAILING_WHITESPACE)
      list(APPEND preload "${path}")
    endforeach()
    list(JOIN preload ":" preload)
    list(APPEND variables "LD_PRELOAD=${preload}" PYTHONMALLOC=malloc
         ASAN_OPTIONS=detect_leaks=0:strict_string_checks=1:use_sigaltstack=0
         UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1)
  endif()
  set(${out} ${variables} PARENT_SCOPE)
endfunction()
