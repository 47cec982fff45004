# SPDX-License-Identifier: Apache-2.0
# What a build with SHMVIEW_FAST, which `make check` makes, leaves out to take less time: the tests are
# compiled without optimisation, and linked by a faster linker if there is one. The product is not.

if(SHMVIEW_FAST)
  include(CheckLinkerFlag)
  foreach(linker gold lld)
    check_linker_flag(C -fuse-ld=${linker} SHMVIEW_HAS_${linker})
    if(SHMVIEW_HAS_${linker})
      set(SHMVIEW_LINKER -fuse-ld=${linker})
      break()
    endif()
  endforeach()
endif()

# For the targets of this folder and of those below.
macro(shmview_tests_fast)
  if(SHMVIEW_FAST)
    # the first because _FORTIFY_SOURCE warns without optimisation; SHELL: lest CMake drop a repeated option
    add_compile_options("SHELL:-U _FORTIFY_SOURCE" -O0)
    add_link_options(${SHMVIEW_LINKER})
  endif()
endmacro()
