# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0
# Against the libshmview that pkg-config finds, else against the one that was built in the tree this
# file lies in. $SHMVIEW_BUILD_DIR names another build folder of a tree.

require "mkmf"

def use(include, library)
  $INCFLAGS << " -I#{include}"
  $LDFLAGS << " -L#{library} -Wl,-rpath,#{library}"
end

def built
  folders = [ENV.fetch("SHMVIEW_BUILD_DIR", nil)].compact
  folders.concat(Dir[File.expand_path("../../../../build/{release,dev,*}", __dir__)])
  folders.find { |folder| File.exist?("#{folder}/client/libshmview.so") }
end

# The sources of the tree that a build folder belongs to.
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

$defs << "-D_GNU_SOURCE"
$CFLAGS << " -std=c11 -fvisibility=hidden"
create_makefile("shmview/core")
