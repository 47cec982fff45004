# SPDX-License-Identifier: Apache-2.0
# `cpack` makes Debian packages of a build whose prefix is /usr: one for each component that was
# built. The files in packaging/deb/PACKAGE belong to that package only; stage.cmake adds the files
# that all packages have.

if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr" OR NOT TARGET shmview OR NOT TARGET shmviewd)
  return()
endif()
find_program(SHMVIEW_DPKG dpkg)
if(NOT SHMVIEW_DPKG)
  return()
endif()

set(maintainer "shmview maintainers <shmview@localhost.localdomain>")
if(DEFINED ENV{DEBEMAIL})
  set(maintainer "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()
set(SHMVIEW_MAINTAINER "${maintainer}" CACHE STRING "Who packages: NAME <ADDRESS>")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "${SHMVIEW_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SOURCE shmview)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}/client")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/packaging/deb/stage.cmake")
set(CPACK_SHMVIEW_SOURCE_DIR "${PROJECT_SOURCE_DIR}")

set(library libshmview${PROJECT_VERSION_MAJOR})
set(this_library "${library} (>= ${PROJECT_VERSION})")
file(CONFIGURE OUTPUT packages/shlibs
     CONTENT "libshmview ${PROJECT_VERSION_MAJOR} ${this_library}\n")

# shmview_package(COMPONENT PACKAGE SECTION MULTIARCH DESCRIPTION FIELD VALUE...)
#
# CPack has no variable for the field Multi-Arch before 3.31, so it is appended to Section.
set(CPACK_COMPONENTS_ALL "")
macro(shmview_package component package section multiarch description)
  string(TOUPPER ${component} prefix)
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  set(CPACK_DEBIAN_${prefix}_PACKAGE_NAME ${package})
  set(CPACK_DEBIAN_${prefix}_PACKAGE_SECTION "${section}\nMulti-Arch: ${multiarch}")
  set(CPACK_DEBIAN_${prefix}_DESCRIPTION "${description}
A segment has a name, a lock that survives the death of its holder, and typed
views of the same bytes. A small daemon allocates segments and hands them out;
reading, writing and locking are memory operations between the programs.")
  file(GLOB control CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/packaging/deb/${package}/*")
  set(CPACK_DEBIAN_${prefix}_PACKAGE_CONTROL_EXTRA ${control})
  set(fields ${ARGN})
  while(fields)
    list(POP_FRONT fields field value)
    set(CPACK_DEBIAN_${prefix}_PACKAGE_${field} "${value}")
  endwhile()
endmacro()

shmview_package(daemon shmviewd admin foreign
                "daemon that allocates named shared-memory segments
This package has the daemon, its units for systemd and its configuration.
"
                DEPENDS "systemd | systemd-standalone-sysusers | systemd-sysusers"
                SUGGESTS shmview-tools)
shmview_package(library ${library} libs same
                "named shared-memory segments with a lock and typed views
This package has the library that programs use.
"
                RECOMMENDS shmviewd)
list(APPEND CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA "${PROJECT_BINARY_DIR}/packages/shlibs")
shmview_package(development libshmview-dev libdevel same
                "named shared-memory segments - files for development
This package has the headers for C and C++, what pkg-config and CMake need,
the manual pages, and the interface that the daemon speaks.
"
                DEPENDS "${library} (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})"
                SUGGESTS shmview-tools
                SHLIBDEPS OFF)
if(TARGET shmview_python)
  math(EXPR next "${SHMVIEW_PYTHON_MINOR} + 1")
  shmview_package(python python3-shmview python no
                  "named shared-memory segments for Python 3
This package has the module shmview: segments whose lock is a context manager,
and views that are buffers, numpy's arrays and DLPack tensors without a copy.
"
                  DEPENDS "${this_library}, python3 (>= 3.${SHMVIEW_PYTHON_MINOR}~), \
python3 (<< 3.${next}), python3:any"
                  RECOMMENDS shmviewd
                  SUGGESTS "python3-numpy, libshmview-dev")
endif()
if(TARGET shmview_ruby)
  execute_process(
    COMMAND "${SHMVIEW_RUBY}" -e "puts RUBY_VERSION[/\\d+\\.\\d+/]"
    OUTPUT_VARIABLE ruby OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  shmview_package(ruby ruby-shmview ruby no
                  "named shared-memory segments for Ruby
This package has the library shmview: segments, their locks and phases, and
views that other extensions use through Ruby's MemoryView.
"
                  DEPENDS "${this_library}, libruby${ruby}, ruby"
                  RECOMMENDS shmviewd)
endif()
if(TARGET shmviewctl)
  shmview_package(tools shmview-tools utils foreign
                  "named shared-memory segments - command-line tools
This package has shmviewctl, which shows segments, their locks and their users,
reads and writes elements, and scripts all of it.
"
                  DEPENDS "${this_library}"
                  RECOMMENDS shmviewd)
endif()

include(CPack)
