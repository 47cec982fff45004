# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

require "timeout"
require_relative "streams"

# Waits for frames and what ends them, deaths of writers and readers, wait_any, IO.select.
class TestStreamWaits < StreamTest
  def test_a_wait_lets_other_threads_run
    stream = create
    reader = opened
    taker = Thread.new { read_one(reader) }
    await { taker.status == "sleep" }
    write(stream, 5)
    assert_equal 5, taker.value
  end

  def read_one(reader) = reader.take(timeout: PATIENCE) { |frame| number_of(frame) }

  def test_what_ends_a_wait
    stream = create(slots: 2, lossless: true)
    reader = opened
    waits = [-> { reader.take }, -> { reader.latest }, -> { reader.each { nil } }, -> { Shmview.wait_any(reader) }]
    check_interrupts(waits)
    2.times { |i| write(stream, i) }
    check_interrupts([-> { stream.loan }])
    assert_equal([0, 1], Array.new(2) { read(reader) }) # none was lost
    assert_empty_stream(reader)
  end

  def check_interrupts(waits)
    waits.each do |wait|
      [->(t) { t.raise(Interrupt) }, ->(t) { t.kill }].each do |interrupt|
        thread = Thread.new do
          wait.call
        rescue Interrupt
          :interrupted
        end
        await { thread.status == "sleep" }
        interrupt.call(thread)
        assert thread.join(PATIENCE)
      end
      assert_raises(Timeout::Error) { Timeout.timeout(0.02) { wait.call } }
    end
  end

  def test_signal_handlers_run_during_a_wait
    stream = create
    reader = opened
    handled = 0
    before = trap(:USR1) { handled += 1 }
    thread = Thread.new do
      3.times do |i|
        Process.kill(:USR1, Process.pid)
        await { handled > i }
      end
      write(stream, 6)
    end
    assert_equal 6, read_one(reader)
    thread.join
    assert_equal 3, handled
  ensure
    trap(:USR1, before || "DEFAULT")
  end

  def test_the_death_of_a_writer
    create(lossless: true, lifetime: :manual).close
    reader = opened
    writer = with_writer("stream.loan { |f| f['numbers'].fill(1) }; $kept = stream.loan") do |pid, kill|
      assert_equal 1, read(reader)
      kill.call
      error = assert_raises(Shmview::WriterDied) { reader.take(timeout: PATIENCE) }
      assert_equal ["s", pid, 0], [error.name, error.pid, error.code]
      assert_match(/\Aruby/, error.command)
      assert_match(/\Aprocess #{pid} \(ruby.*\), a writer of stream 's', died\z/, error.message)
      assert_in_delta Time.now, error.died_at, PATIENCE
      assert_equal [pid, "s"], [reader.death.pid, reader.death.name]
      assert_empty_stream(reader) # it is reported once
      pid
    end
    stream = opened("s", :write)
    write(stream, 2)
    assert_equal 2, read(reader) # of the next writer
    assert_equal [1, writer], [stream.status.deaths, reader.death.pid]
    stream.remove
  end

  # The iteration raises, and another one goes on.
  def test_iteration_over_a_death
    create(lifetime: :manual, slots: 4).close
    reader = opened
    with_writer("2.times { |i| stream.loan { |f| f['numbers'].fill(i) } }") { |_, kill| kill.call }
    seen = []
    assert_raises(Shmview::WriterDied) { reader.each(timeout: PATIENCE) { |frame| seen << number_of(frame) } }
    stream = opened("s", :write)
    write(stream, 7)
    stream.finish
    reader.each(timeout: PATIENCE) { |frame| seen << number_of(frame) }
    assert_equal [0, 1, 7], seen
    stream.remove
  end

  def test_the_death_of_a_reader
    stream = create(slots: 2, lossless: true)
    script = "$reader = Shmview.open_stream(ARGV[0]).join; puts :ready; $stdout.flush; $frames = Array.new(2) { $reader.take }; " \
             "puts :held; $stdout.flush; $stdin.read"
    Open3.popen2(RbConfig.ruby, "-rshmview", "-e", script, "s") do |input, output, thread|
      assert_equal "ready\n", output.gets
      2.times { |i| write(stream, i) }
      assert_equal "held\n", output.gets
      error = assert_raises(Shmview::TimedOut) { stream.loan(timeout: 0.01) }
      assert_match(/pid #{thread.pid}/, error.message)
      kill(thread)
      assert_equal 3, stream.loan(timeout: PATIENCE, &:itself).sequence
      input.close
    end
  end

  def test_waiting_for_any
    left = create("left")
    right = create("right")
    readers = [opened("left"), opened("right")]
    seg = Shmview.create("seg", 100, layouts: { one: { A: "i4" } })
    assert_match(/none of 2 entries/, assert_raises(Shmview::TimedOut) { Shmview.wait_any(*readers, timeout: 0) }.message)
    write(right, 1)
    2.times { assert_same readers[1], Shmview.wait_any(*readers, timeout: PATIENCE) } # it takes nothing
    read(readers[1])
    { -> { seg.notify } => seg, -> { write(left, 1) } => readers[0] }.each do |wake, entry|
      waiting = Thread.new { Shmview.wait_any(*readers, seg) }
      await { waiting.status == "sleep" }
      assert_raises(Shmview::Busy) { readers[0].close }
      wake.call
      assert_same entry, waiting.value
    end
    read(readers[0])
    change = [:change, seg, seg.change - 1]
    assert_same change, Shmview.wait_any(readers[1], change)
    phase = ["phase", seg, seg.generation]
    assert_raises(Shmview::TimedOut) { Shmview.wait_any(phase, timeout: 0.01) }
    seg.synchronize { seg.switch("one") }
    assert_same phase, Shmview.wait_any(phase, timeout: 0)
    [[], [left] * 65, [[:pause, seg, 1]], [[:phase, seg, 1 << 32]]].each do |wrong|
      assert_match(/wait_any/, assert_raises(ArgumentError) { Shmview.wait_any(*wrong) }.message)
    end
    [[1], [[:phase, 1, 1]], [[:change, left, 1]]].each { |wrong| assert_raises(TypeError) { Shmview.wait_any(*wrong) } }
    left.close
    assert_raises(Shmview::Closed) { Shmview.wait_any(left) }
  end

  def test_io_select
    stream = create
    reader = opened
    io = reader.to_io
    refute IO.select([reader], nil, nil, 0)
    2.times do |i|
      write(stream, i)
      assert IO.select([i.zero? ? reader : io], nil, nil, PATIENCE)
      assert_equal i, read(reader)
      await("the last wake-up") { quiet?(reader, io) } # the release of the frame makes it readable too
    end
  end

  def quiet?(reader, io)
    nil while io.read_nonblock(64, exception: false).is_a?(String)
    assert_empty_stream(reader)
    !IO.select([io], nil, nil, 0.02)
  end

  # Several threads of one process share a reader; each frame goes to one of them.
  def test_threads
    stream = create(slots: 8, lossless: true)
    reader = opened
    takers = Array.new(4) { Thread.new { reader.map { |frame| number_of(frame) } } }
    200.times { |i| stream.loan(timeout: PATIENCE) { |frame| frame["numbers"].fill(i) } }
    stream.finish
    assert_equal (0...200).to_a, takers.flat_map(&:value).sort
  end
end
