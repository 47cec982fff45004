# SPDX-License-Identifier: Apache-2.0
# cmake -D OUT=dir/name -D FILES=a.varlink,b.varlink -P embed_text.cmake
#
# Writes name.h and name.c with one NUL-terminated string for each file:
# io.shmview.varlink becomes name_io_shmview. Every byte is written as a hex
# escape, because some characters of the text have a meaning in CMake or C.

get_filename_component(name "${OUT}" NAME)
string(TOUPPER "${name}_H" guard)
string(REPLACE "," ";" files "${FILES}")

set(declarations "")
set(definitions "")
foreach(file IN LISTS files)
  get_filename_component(symbol "${file}" NAME_WLE)
  string(MAKE_C_IDENTIFIER "${name}_${symbol}" symbol)
  file(READ "${file}" text HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" text "${text}")
  string(REPLACE "\\x0a" "\\x0a\"\n    \"" text "${text}")
  string(APPEND declarations "extern const char ${symbol}[];\n")
  string(APPEND definitions "\nconst char ${symbol}[] =\n    \"${text}\";\n")
endforeach()

set(header "/* Generated from *.varlink. */
#ifndef ${guard}
#define ${guard}

${declarations}
#endif
")
set(source "/* Generated from *.varlink. */\n#include \"${name}.h\"\n${definitions}")
file(WRITE "${OUT}.h" "${header}")
file(WRITE "${OUT}.c" "${source}")
