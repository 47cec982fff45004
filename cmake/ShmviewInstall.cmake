# SPDX-License-Identifier: Apache-2.0
# What `make install` puts where.

if(NOT TARGET shmview OR NOT TARGET shmviewd)
  return()
endif()
include(CMakePackageConfigHelpers)

install(TARGETS shmviewd RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS shmview EXPORT shmview-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/shmview DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(FILES common/io.shmview.varlink DESTINATION ${CMAKE_INSTALL_DATADIR}/shmview)

install(FILES docs/shmviewd.json DESTINATION ${CMAKE_INSTALL_DOCDIR})

file(GLOB pages CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/man/*.[1-8]")
foreach(page IN LISTS pages)
  string(REGEX MATCH "[1-8]$" section "${page}")
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()

# systemd looks below /usr and /usr/local. The units name the program where this installation
# puts it, whatever the prefix was when it was configured.
foreach(unit IN ITEMS shmviewd.service user/shmviewd.service)
  install(CODE "
    set(SHMVIEWD \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/shmviewd\")
    configure_file(\"${PROJECT_SOURCE_DIR}/systemd/${unit}.in\"
                   \"${PROJECT_BINARY_DIR}/systemd/${unit}\" @ONLY)")
endforeach()
install(FILES "${PROJECT_BINARY_DIR}/systemd/shmviewd.service" systemd/shmviewd.socket
        DESTINATION lib/systemd/system)
install(FILES "${PROJECT_BINARY_DIR}/systemd/user/shmviewd.service" systemd/user/shmviewd.socket
        DESTINATION lib/systemd/user)
install(FILES systemd/shmviewd.sysusers DESTINATION lib/sysusers.d RENAME shmviewd.conf)
install(FILES systemd/shmviewd.tmpfiles DESTINATION lib/tmpfiles.d RENAME shmviewd.conf)

# pkg-config and CMake both find the rest from where their own file lies, so
# that `cmake --install --prefix` is right as well.
cmake_path(SET pc_dir "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig")
cmake_path(RELATIVE_PATH pc_dir BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" OUTPUT_VARIABLE pc_from)
set(PC_PREFIX "\${pcfiledir}")
string(REGEX MATCHALL "[^/]+" steps "${pc_from}")
foreach(step IN LISTS steps)
  string(APPEND PC_PREFIX "/..")
endforeach()
configure_file(client/libshmview.pc.in shmview.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/shmview.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/shmview)
install(EXPORT shmview-targets NAMESPACE shmview:: DESTINATION ${config_dir})
configure_package_config_file(cmake/shmview-config.cmake.in shmview-config.cmake
                              INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(shmview-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/shmview-config.cmake"
              "${PROJECT_BINARY_DIR}/shmview-config-version.cmake" DESTINATION ${config_dir})
