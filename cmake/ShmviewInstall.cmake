# SPDX-License-Identifier: Apache-2.0
# The files that `make install` installs, and their places. Each file has a component: daemon,
# library, development, python, ruby or tools. debian/*.install divides them into packages.

if(NOT TARGET shmview OR NOT TARGET shmviewd)
  return()
endif()
include(CMakePackageConfigHelpers)

install(TARGETS shmviewd RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT daemon)
if(BUILD_SHARED_LIBS)
  install(TARGETS shmview EXPORT shmview-targets
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
                  NAMELINK_COMPONENT development)
endif()
if(TARGET shmview_archive)
  install(FILES "${PROJECT_BINARY_DIR}/client/libshmview.a" DESTINATION ${CMAKE_INSTALL_LIBDIR}
          COMPONENT development)
endif()
install(DIRECTORY include/shmview DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp" PATTERN "mpi*.h" EXCLUDE) # those by mpi/
install(FILES common/wire/io.shmview.varlink DESTINATION ${CMAKE_INSTALL_DATADIR}/shmview
        COMPONENT development)

install(FILES docs/shmviewd.json DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT daemon)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development
        FILES_MATCHING PATTERN "*.md" PATTERN "images/web-*.png")

file(GLOB pages CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/man/*.[1-8]")
foreach(page IN LISTS pages)
  string(REGEX MATCH "[1-8]$" section "${page}")
  cmake_path(GET page FILENAME name)
  if(name MATCHES "^shmviewd")
    set(component daemon)
  elseif(section EQUAL 1)
    if(NOT TARGET shmviewctl)
      continue()
    endif()
    set(component tools)
  else()
    set(component development)
  endif()
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT ${component})
endforeach()

# A page for each public call, made from the headers. Without Python there are none, and the archive
# of the sources for pip has none.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_Interpreter_FOUND AND EXISTS "${PROJECT_SOURCE_DIR}/site/manpages.py")
  file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/shmview/*.h")
  add_custom_command(OUTPUT "${PROJECT_BINARY_DIR}/man3.stamp"
    COMMAND "${Python3_EXECUTABLE}" -B "${PROJECT_SOURCE_DIR}/site/manpages.py" "${PROJECT_BINARY_DIR}/man3"
    COMMAND "${CMAKE_COMMAND}" -E touch "${PROJECT_BINARY_DIR}/man3.stamp"
    DEPENDS site/manpages.py site/headers.py ${headers} COMMENT "Writing the manual pages of the calls" VERBATIM)
  add_custom_target(manpages ALL DEPENDS "${PROJECT_BINARY_DIR}/man3.stamp")
  install(DIRECTORY "${PROJECT_BINARY_DIR}/man3/" DESTINATION ${CMAKE_INSTALL_MANDIR}/man3
          COMPONENT development FILES_MATCHING PATTERN "*.3")
endif()

# Without libsystemd the daemon neither takes the socket of a unit nor reports that it is alive.
if(TARGET PkgConfig::SYSTEMD)
  set(managers system user)
else()
  set(managers "")
endif()

# systemd reads units below /usr and /usr/local. A unit names the program at the prefix of this
# installation, which may differ from the prefix at configuration. The unit is therefore written
# during the installation, and not into the build, because several installations may run at once.
foreach(manager IN LISTS managers)
  set(from "${PROJECT_SOURCE_DIR}/systemd")
  if(manager STREQUAL "user")
    string(APPEND from "/user")
  endif()
  install(CODE "
    set(SHMVIEWD \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/shmviewd\")
    set(unit \"\${CMAKE_INSTALL_PREFIX}/lib/systemd/${manager}/shmviewd.service\")
    message(STATUS \"Installing: \$ENV{DESTDIR}\${unit}\")
    configure_file(\"${from}/shmviewd.service.in\" \"\$ENV{DESTDIR}\${unit}\" @ONLY)
    list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${unit}\")" COMPONENT daemon)
  install(FILES "${from}/shmviewd.socket" DESTINATION lib/systemd/${manager} COMPONENT daemon)
endforeach()
install(FILES systemd/run-shmhuge.mount DESTINATION lib/systemd/system COMPONENT daemon)
install(FILES systemd/shmviewd.sysusers DESTINATION lib/sysusers.d RENAME shmviewd.conf
        COMPONENT daemon)
install(FILES systemd/shmviewd.tmpfiles DESTINATION lib/tmpfiles.d RENAME shmviewd.conf
        COMPONENT daemon)

configure_file(client/libshmview.pc.in shmview.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/shmview.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
        COMPONENT development)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/shmview)
if(BUILD_SHARED_LIBS) # a program finds the archive by pkg-config --static
  install(EXPORT shmview-targets NAMESPACE shmview:: DESTINATION ${config_dir}
          COMPONENT development)
  configure_package_config_file(cmake/shmview-config.cmake.in shmview-config.cmake
                                INSTALL_DESTINATION ${config_dir})
  write_basic_package_version_file(shmview-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES "${PROJECT_BINARY_DIR}/shmview-config.cmake"
                "${PROJECT_BINARY_DIR}/shmview-config-version.cmake" DESTINATION ${config_dir}
          COMPONENT development)
endif()

if(NOT TARGET shmviewctl)
  return()
endif()
install(TARGETS shmviewctl RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)

# Completions go where each shell looks for them; Debian's zsh has another folder for packages.
set(zsh_dir ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr" AND EXISTS /etc/debian_version)
  set(zsh_dir ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
endif()
install(FILES cli/completion/shmviewctl.bash RENAME shmviewctl COMPONENT tools
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES cli/completion/_shmviewctl DESTINATION ${zsh_dir} COMPONENT tools)
