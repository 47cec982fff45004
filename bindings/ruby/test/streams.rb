# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

require_relative "helper"

# What the tests of streams share: a stream "s" whose frames are ten equal numbers and a gain.
class StreamTest < ShmviewTest
  PATIENCE = 60

  def create(name = "s", **options, &block)
    Shmview.create_stream(name, numbers: ["i8", 10], gain: "f4", **options, &block)
  end

  def opened(name = "s", access = :read) = Shmview.open_stream(name, access).join

  # Publishes a frame of these numbers; returns its sequence number.
  def write(stream, number)
    stream.loan(timeout: 0) { |frame| frame.tap { frame["numbers"].fill(number) } }.sequence
  end

  def number_of(frame)
    numbers = frame["numbers"].to_a.uniq
    assert_equal 1, numbers.size
    numbers[0]
  end

  def read(stream) = stream.take(timeout: 0) { |frame| number_of(frame) }
  def assert_empty_stream(stream) = assert_raises(Shmview::TimedOut) { stream.take(timeout: 0) }

  # Returns how many slots are in each state.
  def states(stream) = stream.status.slots.map(&:state).tally

  # Yields a process that runs source with the stream called name opened for writing, once it has printed a
  # line, and a Proc that kills it.
  def with_writer(source, name = "s")
    script = "stream = Shmview.open_stream(ARGV[0], :write); #{source}; puts :ready; $stdout.flush; $stdin.read"
    Open3.popen2(RbConfig.ruby, "-rshmview", "-e", script, name) do |input, output, thread|
      assert_equal "ready\n", output.gets
      yield thread.pid, -> { kill(thread) }
    ensure
      kill(thread)
      input.close
    end
  end
end
