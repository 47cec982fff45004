# SPDX-License-Identifier: Apache-2.0
# Helpers that list the source files of a room, so that a new file needs no edit of a CMakeLists.txt.

# Sets out to the *.c files of the current folder.
macro(shmview_sources out)
  file(GLOB ${out} CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.c")
endmacro()

# Sets out to the *.c files of the current folder and of the rooms in it.
macro(shmview_sources_of_rooms out)
  file(GLOB_RECURSE ${out} CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.c")
endmacro()

# Sets out to TRUE if one of the files includes a header of room, as "room/...". CMake runs again
# when one of the files changes.
function(shmview_includes_room out room)
  set(found FALSE)
  foreach(file IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(STRINGS "${file}" lines REGEX "^#include \"${room}/")
    if(lines)
      set(found TRUE)
    endif()
  endforeach()
  set(${out} ${found} PARENT_SCOPE)
endfunction()
