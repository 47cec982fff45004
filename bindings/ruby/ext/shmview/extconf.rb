# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0
# Builds the extension for the gem. It links the libshmview that pkg-config finds; if there is none,
# the first build folder in the tree around this file, so that a developer needs no installation.
# $SHMVIEW_BUILD_DIR names a build folder and overrides both. CMake builds the extension without this
# file.

require "mkmf"

# Adds a folder of headers and one of libraries, where the extension also looks when it is loaded.
def use(include, library)
  $INCFLAGS << " -I#{include}"
  $LDFLAGS << " -L#{library} -Wl,-rpath,#{library}"
end

# Returns the first build folder that has libshmview, or nil.
def built
  folders = [ENV.fetch("SHMVIEW_BUILD_DIR", nil)].compact
  folders.concat(Dir[File.expand_path("../../../../build/{release,dev,*}", __dir__)])
  folders.find { |folder| File.exist?("#{folder}/client/libshmview.so") }
end

# Returns the source tree of a build folder.
def source_of(folder)
  File.read("#{folder}/CMakeCache.txt")[/^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$/, 1]
end

unless !ENV.key?("SHMVIEW_BUILD_DIR") && pkg_config("shmview")
  folder = built or abort "no libshmview: neither pkg-config has shmview nor is there a build; install libshmview-dev, " \
                          "or set SHMVIEW_BUILD_DIR to a build folder"
  use("#{source_of(folder)}/include", "#{folder}/client")
end
abort "Ruby 3.1 or later is needed, for ruby/memory_view.h" unless have_header("ruby/memory_view.h")
abort "no shmview/shmview.h; install libshmview-dev" unless have_header("shmview/shmview.h")
abort "libshmview cannot be linked" unless have_library("shmview", "shmview_version")
have_func("rb_thread_lock_native_thread", "ruby/thread.h") # Ruby 3.4 and later

$defs << "-D_GNU_SOURCE"
$CFLAGS << " -std=c11 -fvisibility=hidden"
create_makefile("shmview/core")
