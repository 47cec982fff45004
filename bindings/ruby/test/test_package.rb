# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

require "rubygems"
require_relative "helper"

# The package is documented, and gem builds and installs it without network.
class TestPackage < ShmviewTest
  ROOT = File.expand_path("..", __dir__)

  # RDoc finds a comment for every class and every public method.
  def test_everything_is_documented
    said, = Open3.capture2e("rdoc", "-C", "#{ROOT}/lib", *Dir["#{ROOT}/ext/shmview/*.c"], chdir: DIRECTORY)
    %w[Classes Attributes Methods].each { |kind| assert said.match?(/^ *#{kind}: +[1-9]\d* +\( *0 undoc/), "#{kind}\n#{said}" }
  end

  # The commands of RUBY.md, with a gem that this test builds.
  def test_gem
    skip "what is built with sanitizers is loaded with them" if SANITIZED
    commands = File.read("#{ROOT}/../../docs/RUBY.md").scan(/^    (.*gem (?:build|install).*)$/).flatten
    assert_equal 2, commands.length
    build = ENV.fetch("SHMVIEW_BUILD_DIR")
    Dir.mktmpdir("shmview-gem-") do |directory|
      home = { "HOME" => directory, "GEM_HOME" => directory, "GEM_SPEC_CACHE" => directory, "RUBYLIB" => nil, "MAKEFLAGS" => nil }
      commands.each do |command|
        command = command.sub("$PWD/build/release", build).sub(%r{"\$PWD/build/shmview.gem"|build/shmview.gem}, "#{directory}/shmview.gem")
        run_in("#{ROOT}/../..", home, "sh", "-c", "#{command} --quiet")
      end
      said = run_in(directory, home, RbConfig.ruby, "-w", "-e",
                    'gem "shmview"; require "shmview"; p Shmview.create(nil, 10).buf.nbytes, $LOADED_FEATURES.grep(/core.so/)')
      assert_match(/\A10\n\["#{Regexp.escape(directory)}/, said)
      licences = Dir["#{directory}/gems/shmview-*/LICENSE"].map { |path| File.read(path) }
      assert_equal [File.read("#{ROOT}/../../LICENSE")], licences
    end
  end

  def run_in(folder, environment, *command)
    said, status = Open3.capture2e(environment, *command, chdir: folder)
    assert status.success?, said
    said
  end

  def test_version
    header = File.read(File.join(ENV.fetch("SHMVIEW_SOURCE_DIR"), "include/shmview/shmview.h"))
    assert_equal header.scan(/define SHMVIEW_VERSION_\w+ +(\d+)/).join("."), Shmview::VERSION
  end
end
