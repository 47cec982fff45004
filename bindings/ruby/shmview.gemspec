# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

# The gem has the version of libshmview, which only its header states.
header = File.expand_path("../../include/shmview/shmview.h", __dir__)

Gem::Specification.new do |spec|
  spec.name = "shmview"
  spec.version = File.read(header).scan(/define SHMVIEW_VERSION_\w+ +(\d+)/).join(".")
  spec.summary = "Named shared-memory segments with a lock and typed views"
  spec.description = "Segments that programs share by name, whose lock survives the death of its holder, and whose " \
                     "bytes are seen through typed views, also by extensions that use MemoryViews."
  spec.authors = ["The shmview maintainers"]
  spec.license = "Apache-2.0"
  spec.required_ruby_version = ">= 3.1"
  spec.files = Dir.chdir(__dir__) { Dir["LICENSE", "lib/**/*.rb", "ext/**/*.{c,h,rb}", "examples/*.rb"].sort }
  spec.extensions = ["ext/shmview/extconf.rb"]
  spec.metadata["rubygems_mfa_required"] = "true"
end
