# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

require_relative "helper"

# The examples, and those in the documentation, print the lines that their text shows.
class TestExamples < ShmviewTest
  SOURCE = ENV.fetch("SHMVIEW_SOURCE_DIR")

  def run_file(name)
    out, err, status = Open3.capture3(RbConfig.ruby, "-w", File.join(SOURCE, "bindings/ruby/examples/#{name}.rb"))
    assert_predicate status, :success?, err
    assert_empty err
    out.lines(chomp: true)
  end

  def test_array
    lines = run_file("array")
    assert_equal ["before: 0", "after: 262146", "bytes: 0 0 1 0 2 0 3 0 4 0",
                  "Fiddle: format s, shape [5], last 4"], lines[0..3]
    assert_match(/\Arefused: .*3.*align/, lines[4])
  end

  def test_phases
    lines = run_file("phases")
    assert_equal ["float: 1.0 1999.0 1000000.0", "int: [0, 1, 0, 1, 0, 1] 1000.0"], lines.values_at(0, 2)
    assert_match(/\Astale: the view is of phase 1/, lines[1])
  end

  def test_frames
    lines = run_file("frames")
    bright = (8..11).map { |i| "image #{i}: #{40 + i} x 160 pixels, from 0 to #{20 * i}" }
    assert_equal bright + ["filter: true, printer: true, third reader: killed by KILL",
                           "12 and 4 images in the stages; 0 of 4 slots held"], lines
  end

  # Every block of Ruby in the documents runs. A line that ends with "# => x" must have the value x.
  def test_documents
    %w[README.md docs/RUBY.md].each do |name|
      blocks = File.read(File.join(SOURCE, name)).scan(/^```ruby\n(.*?)^```/m).flatten
      refute_empty blocks, name
      source = blocks.join("\n").gsub(/^(.*\S) +# => (.*)$/) { "check((#{$1}), (#{$2}), #{$1.dump})" }
      run_ruby("require 'fiddle'; def check(is, said, what) = is == said || raise(\"\#{what}: \#{is.inspect}\")\n#{source}")
    end
  end
end
