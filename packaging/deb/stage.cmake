# SPDX-License-Identifier: Apache-2.0
# CPack runs this after it has installed the components and before it packs them. It adds the files
# that only a Debian package has, and compresses those that Debian's policy wants compressed.

find_program(gzip gzip REQUIRED)

function(compress file)
  execute_process(COMMAND "${gzip}" -9nf "${file}" COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(add from to)
  configure_file("${from}" "${to}" COPYONLY
                 FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endfunction()

function(stage root package)
  set(deb "${CPACK_SHMVIEW_SOURCE_DIR}/packaging/deb")
  set(doc "${root}/usr/share/doc/${package}")
  add("${deb}/copyright" "${doc}/copyright")
  add("${CPACK_SHMVIEW_SOURCE_DIR}/CHANGELOG.md" "${doc}/changelog")
  configure_file("${deb}/changelog.in" "${doc}/changelog.Debian" @ONLY)
  add("${deb}/lintian-overrides" "${root}/usr/share/lintian/overrides/${package}")
  if(package STREQUAL "shmviewd")
    add("${deb}/shmviewd.json" "${root}/etc/shmviewd.json")
    file(MAKE_DIRECTORY "${root}/etc/shmviewd.d")
  endif()

  file(GLOB_RECURSE pages "${root}/usr/share/man/*.[1-8]")
  foreach(file IN LISTS pages ITEMS "${doc}/changelog" "${doc}/changelog.Debian")
    compress("${file}")
  endforeach()
  # Debian's loader finds the library without a run path.
  file(GLOB_RECURSE objects "${root}/usr/lib/*.so" "${root}/usr/bin/*")
  foreach(object IN LISTS objects)
    if(NOT IS_SYMLINK "${object}")
      file(RPATH_REMOVE FILE "${object}")
    endif()
  endforeach()
endfunction()

set(deb_version "${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER "${component}" prefix)
  stage("${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}" "${CPACK_DEBIAN_${prefix}_PACKAGE_NAME}")
endforeach()
