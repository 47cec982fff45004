# SPDX-License-Identifier: Apache-2.0
# cmake -D OUT=dir/name -D FROM=folder -D FILES=a.js,b.css,c.css=/path/of/d.css,e.js=/path/of/f.js=F -P embed_files.cmake
#
# Writes name.h and name.c with a table of struct file (web/http/files.h): the bytes of each file, its
# path on the server and its type. A file with a path of its own need not be in the folder. A script
# that sets a variable, F, becomes a module that exports it, because the page has no other scripts.

get_filename_component(name "${OUT}" NAME)
string(REPLACE "," ";" files "${FILES}")

set(arrays "")
set(rows "")
foreach(file IN LISTS files)
  set(path "${FROM}/${file}")
  set(more "")
  if(file MATCHES "^([^=]+)=(.+[.][a-z]+)(=([A-Za-z]+))?$")
    set(file "${CMAKE_MATCH_1}")
    set(path "${CMAKE_MATCH_2}")
    if(CMAKE_MATCH_4)
      string(HEX "\nexport default ${CMAKE_MATCH_4};\n" more)
    endif()
  endif()
  string(MAKE_C_IDENTIFIER "${file}" symbol)
  get_filename_component(extension "${file}" EXT)
  if(extension STREQUAL ".html")
    set(type "text/html; charset=utf-8")
  elseif(extension STREQUAL ".js")
    set(type "text/javascript; charset=utf-8")
  elseif(extension STREQUAL ".css")
    set(type "text/css; charset=utf-8")
  elseif(extension STREQUAL ".svg")
    set(type "image/svg+xml")
  else()
    message(FATAL_ERROR "${file}: no type is known for this extension")
  endif()
  file(READ "${path}" hex HEX)
  string(APPEND hex "${more}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "(................................................................................)"
         "\\1\n    " bytes "${bytes}")
  string(APPEND arrays "\nstatic const unsigned char ${symbol}[] = {\n    ${bytes}\n};\n")
  string(APPEND rows "    {\"/${file}\", \"${type}\", ${symbol}, sizeof ${symbol}},\n")
endforeach()

file(WRITE "${OUT}.h" "/* Generated. */
#ifndef PAGE_FILES_H
#define PAGE_FILES_H

#include \"web/http/files.h\"

extern const struct file page_files[];
extern const size_t page_files_n;

#endif
")
file(WRITE "${OUT}.c" "/* Generated. */
#include \"${name}.h\"
${arrays}
const struct file page_files[] = {
${rows}};
const size_t page_files_n = sizeof page_files / sizeof page_files[0];
")
