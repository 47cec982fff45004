# SPDX-License-Identifier: Apache-2.0
# The folders in the files for pkg-config. All are relative to the file, so that `cmake --install --prefix` works too;
# CMAKE_INSTALL_LIBDIR and the like may be absolute paths.

set(pc_dir "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig")
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY "${pc_dir}" OUTPUT_VARIABLE PC_PREFIX)
string(PREPEND PC_PREFIX "\${pcfiledir}/")
foreach(name IN ITEMS LIBDIR INCLUDEDIR)
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_${name} BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" OUTPUT_VARIABLE PC_${name})
endforeach()
