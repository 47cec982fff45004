# SPDX-License-Identifier: Apache-2.0
# Language, warnings, hardening and sanitizers of every target.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)

include(CheckPIESupported)
check_pie_supported(LANGUAGES C)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

add_compile_definitions(_GNU_SOURCE)
add_compile_options(-Wall -Wextra -Wconversion -Wshadow -Wvla -Wformat=2 -Wundef
                    "$<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes;-Wmissing-prototypes>")
if(SHMVIEW_WERROR)
  add_compile_options(-Werror)
endif()

if(SHMVIEW_SANITIZE)
  set(SHMVIEW_SANITIZE_FLAGS -fsanitize=${SHMVIEW_SANITIZE} -fno-sanitize-recover=all
      -fno-omit-frame-pointer)
  add_compile_options(${SHMVIEW_SANITIZE_FLAGS})
  add_link_options(${SHMVIEW_SANITIZE_FLAGS})
  if(SHMVIEW_SANITIZE MATCHES "thread" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    # gcc warns that the sanitizer does not see fences; code that relies on them is tested with atomics
    add_compile_options(-Wno-tsan)
  endif()
else()
  # The run time of a sanitizer is resolved when a program starts, so -z defs cannot be used with it.
  add_compile_options(-fstack-protector-strong)
  add_link_options(-Wl,-z,relro -Wl,-z,now -Wl,-z,defs)
  # _FORTIFY_SOURCE warns without optimisation, and Debug has none. With it, clang calls functions such as
  # __pread_chk, which the tests do not replace.
  if(NOT (SHMVIEW_TESTS AND CMAKE_C_COMPILER_ID MATCHES "Clang"))
    add_compile_options($<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE>
                        $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
  endif()
endif()
