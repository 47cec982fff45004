# SPDX-License-Identifier: Apache-2.0
# The environment of interpreters (Python, Ruby) that load libraries built with sanitizers, although
# they are built without sanitizers themselves.

# Sets out to the environment that they need, followed by the other arguments. Python's allocator is
# replaced by malloc(), so that the sanitizer sees every allocation. Leaks are not reported, because
# those of the interpreter are not ours. The sanitizer must not use alternate signal stacks, because
# it would unmap those of the interpreter. tests/support/fork is about forks beside other threads.
function(shmview_foreign_environment out)
  set(variables)
  if(SHMVIEW_SANITIZE MATCHES "address")
    foreach(library asan ubsan)
      execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=lib${library}.so
                      OUTPUT_VARIABLE path OUTPUT_STRIP_TRAILING_WHITESPACE)
      list(APPEND preload "${path}")
    endforeach()
    if(TARGET shmview_quiet_fork)
      list(APPEND preload $<TARGET_FILE:shmview_quiet_fork>)
    endif()
    list(JOIN preload ":" preload)
    list(APPEND variables "LD_PRELOAD=${preload}" PYTHONMALLOC=malloc
         ASAN_OPTIONS=detect_leaks=0:strict_string_checks=1:use_sigaltstack=0
         UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1)
  endif()
  set(${out} ${variables} PARENT_SCOPE)
endfunction()
