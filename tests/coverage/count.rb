# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0
# RUBYOPT=-r.../count.rb: each Ruby process counts, and writes its counters into $SHMVIEW_RUBY_COUNTERS when it ends,
# also by exit!. `ruby count.rb FOLDER` adds the counters of all processes, and prints them like gcovr --json-summary.

require "coverage"

# The counters of the files of the package: {path => {lines: [n, ...], branches: {condition => {way => n}}}}.
module Counters
  ROOT = File.realpath("../..", __dir__)
  PACKAGE = File.join(ROOT, "bindings/ruby/lib/")

  def self.write
    counted = Coverage.peek_result.filter_map do |path, counts|
      path = File.realpath(path) if File.exist?(path)
      [path, counts] if path.start_with?(PACKAGE)
    end
    return if counted.empty?

    name = File.join(ENV.fetch("SHMVIEW_RUBY_COUNTERS"), "#{Process.pid}.#{Process.clock_gettime(Process::CLOCK_MONOTONIC)}")
    File.binwrite(name, Marshal.dump(counted.to_h))
  rescue SystemCallError
    nil # another user's process
  end

  def self.add(one, other)
    case one
    when Hash then one.merge(other) { |_, mine, its| add(mine, its) }
    when Array then one.zip(other).map { |mine, its| add(mine, its) }
    when Integer then one + other
    end
  end

  def self.summary(path, counts)
    lines = counts[:lines].compact
    ways = counts[:branches].values.flat_map(&:values)
    { filename: path.delete_prefix("#{ROOT}/"), line_covered: lines.count(&:positive?), line_total: lines.size,
      branch_covered: ways.count(&:positive?), branch_total: ways.size,
      missing_lines: counts[:lines].each_index.select { |i| counts[:lines][i]&.zero? }.map(&:succ) }
  end

  # Before an exit without handlers.
  module Exit
    def exit!(...)
      Counters.write
      super
    end
  end
end

if $PROGRAM_NAME == __FILE__
  require "json"
  all = Dir.glob(File.join(ARGV.fetch(0), "*")).map { |name| Marshal.load(File.binread(name)) }
  puts JSON.generate(files: all.reduce({}) { |sum, one| Counters.add(sum, one) }.map { |path, counts| Counters.summary(path, counts) })
elsif ENV["SHMVIEW_RUBY_COUNTERS"]
  Coverage.start(lines: true, branches: true)
  Kernel.prepend(Counters::Exit)
  Process.singleton_class.prepend(Counters::Exit)
  at_exit { Counters.write }
end
