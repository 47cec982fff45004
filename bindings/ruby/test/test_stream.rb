# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

require_relative "streams"

# Streams: frames in order, the latest ones, history, what a frame carries, stages, and what is refused.
class TestStream < StreamTest
  def test_frames_come_in_order
    stream = create(slots: 4, lossless: true)
    reader = opened
    (1..20).each do |i|
      assert_equal i, write(stream, i * 100)
      reader.take(timeout: PATIENCE) { |frame| assert_equal [i, 0, i * 100], [frame.sequence, frame.missed, number_of(frame)] }
      assert_match(/no frame of stream 's'/, assert_empty_stream(reader).message)
    end
  end

  def test_backings
    stream = create("sealed", backing: :sealed)
    assert_equal :sealed, Shmview.stats("sealed").backing
    reader = opened("sealed")
    write(stream, 700)
    reader.take(timeout: PATIENCE) { |frame| assert_equal 700, number_of(frame) }
    error = assert_raises(ArgumentError) { create("wood", backing: :wood) }
    assert_equal "backing: :file or :sealed, not :wood", error.message
  end

  def test_facts
    stream = create("t", slots: 10, history: 2, stages: 3, many_writers: true)
    later = Shmview.open_stream("t:2", :peek)
    assert_equal Shmview::StreamInfo.new(false, 10, 2, 3, 2, true, later.info.frame_bytes), later.info
    assert_operator later.info.frame_bytes, :>=, 84
    assert_equal [%w[numbers gain], nil, 0], [stream.views, stream.death, stream.info.stage]
    assert_equal [%w[t t:2], %i[write peek]], [[stream, later].map(&:name), [stream, later].map(&:access)]
    assert_same Shmview.connect, stream.connection
    assert_equal "#<Shmview::Stream 't:2', latest, 10 slots, peek>", later.inspect
    assert_nil later.close
    assert_nil later.close
    assert_equal ["#<Shmview::Stream 't:2', closed>", true, false], [later.inspect, later.closed?, stream.closed?]
    Shmview.create_stream(image: ["u1", [4, 4]], lossless: true) do |unnamed|
      assert_match(/\Arb-#{Process.pid}-/, unnamed.name)
      assert unnamed.info.lossless
      stream = unnamed
    end
    assert_predicate stream, :closed?
  end

  def test_forms_of_views
    Shmview.create_stream("d", { "a" => "f8" }, b: ["u1", 3], c: ["i2", [2, 2]]) do |stream|
      assert_equal %w[a b c], stream.views
      frame = stream.loan
      assert_equal [0, 64, 128], %w[a b c].map { |name| frame[name].offset }
    end
    Shmview.create_stream("d", a: ["u1", 4, 48], b: ["u1", 2, 3]) do |stream|
      frame = stream.loan
      assert_equal 45, frame[:a].offset - frame[:b].offset
    end
    Shmview.create_stream("d", a: { format: "i4", shape: [3], strides: [-4] }, b: ["u1", 3]) do |stream|
      stream.loan do |frame|
        frame["a"][] = [1, 2, 3]
        frame["b"][] = [7, 8, 9]
        assert_equal [1, 2, 3], frame["a"].to_a
      end
    end
  end

  def test_the_latest_frames
    stream = create(slots: 4)
    reader = opened
    (1..10).each { |i| write(stream, i) }
    reader.take(timeout: 0) do |frame|
      assert_operator frame.missed, :>, 0
      assert_equal frame.sequence - 1, frame.missed
    end
    assert_equal([10, 10], reader.latest(timeout: 0) { |frame| [frame.sequence, number_of(frame)] })
    assert_raises(Shmview::TimedOut) { reader.latest(timeout: 0) }
    assert_raises(Shmview::TimedOut) { reader.latest(timeout: 0.01) }
  end

  def test_lossless_waits_for_the_slowest
    stream = create(slots: 3, lossless: true)
    reader = opened
    3.times { |i| write(stream, i) }
    error = assert_raises(Shmview::TimedOut) { stream.loan(timeout: 0.02) }
    assert_match(/pid #{Process.pid} .*has not taken 3 frames/, error.message)
    assert_equal "s", error.name
    waiting = Thread.new { stream.loan(timeout: PATIENCE) { |frame| frame["numbers"].fill(3) } }
    assert_equal 0, read(reader)
    waiting.join
    reader.leave
    9.times { |i| write(stream, i) }
    reader.join
    write(stream, 77)
    assert_equal 77, read(reader)
  end

  def test_history
    [false, true].each do |lossless|
      create(slots: 6, history: 3, lossless: lossless) do |stream|
        9.times { |i| write(stream, i) }
        reader = opened
        assert_equal([6, 7, 8], Array.new(3) { read(reader) })
        reader.close
      end
    end
  end

  def test_what_a_frame_carries
    stream = create
    reader = opened
    frame = stream.loan do |loaned|
      assert_equal [0, 0.0, "", 0], [loaned.sequence, loaned.time, loaned.user, loaned.missed]
      assert_equal "#<Shmview::Frame of 's', loaned>", loaned.inspect
      assert_same stream, loaned.stream
      loaned.user = "exposure 7"
      loaned.time_ns = 1_500_000_000
      assert_equal 1.5, loaned.time
      loaned.set_length("numbers", 3)
      loaned["numbers"][] = [1, 2, 3]
      loaned[:gain][] = 0.5
      loaned
    end
    assert_equal [1, true, "#<Shmview::Frame 1 of 's', published>"], [frame.sequence, frame.released?, frame.inspect]
    frame = reader.take
    assert_equal [1.5, 1_500_000_000, "exposure 7", [1, 2, 3], 0.5],
                 [frame.time, frame.time_ns, frame.user, frame["numbers"].to_a, frame["gain"][]]
    assert_equal [true, true, false], [frame["numbers"].readonly?, frame.intact?, frame.released?]
    assert_match(/\A#<Shmview::View of a Shmview::Frame, format 'q', shape \[3\], read-only>\z/, frame["numbers"].inspect)
    2.times { assert_nil frame.release }
    assert_equal [1, true, false, "#<Shmview::Frame 1 of 's', released>"],
                 [frame.sequence, frame.released?, frame.intact?, frame.inspect]
    before = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    frame = stream.loan(&:itself)
    assert_includes before..Process.clock_gettime(Process::CLOCK_MONOTONIC), frame.time
    assert_equal([10], reader.take { |taken| taken["numbers"].shape })
    frame = stream.loan { |loaned| loaned.tap { |f| f.time = 2.25 }.tap(&:discard) }
    assert_equal "#<Shmview::Frame 0 of 's', discarded>", frame.inspect
  end

  # A block that does not reach its end publishes nothing, and frees the slot.
  def test_discarded_frames_are_never_seen
    stream = create(slots: 2)
    reader = opened
    5.times do
      assert_raises(ZeroDivisionError) { stream.loan(timeout: 0) { 1 / 0 } }
      assert_equal(:broken, stream.loan(timeout: 0) { break :broken })
      assert_equal(:caught, catch(:out) { stream.loan(timeout: 0) { throw :out, :caught } })
      stream.loan(timeout: 0).discard
    end
    killed = Thread.new { stream.loan { sleep } }
    await { killed.status == "sleep" }
    assert killed.kill.join(PATIENCE)
    assert_empty_stream(reader)
    frame = stream.loan(timeout: 0)
    assert_equal 1, frame.publish
    frame.discard
    assert_match(/published or discarded/, assert_raises(Shmview::Closed) { frame.publish }.message)
    assert_equal(2, stream.loan { |f| f.publish })
    assert_equal(:next, stream.loan { next :next })
    assert_equal(3, reader.latest(timeout: 0, &:sequence))
  end

  def test_iteration
    stream = create(lossless: true)
    reader = opened
    5.times { |i| write(stream, i) }
    stream.finish
    frames = []
    assert_same(reader, reader.each { |frame| frames << [frame, number_of(frame)] })
    assert_equal [0, 1, 2, 3, 4], frames.map(&:last)
    assert(frames.all? { |frame, _| frame.released? })
    assert_empty reader.to_a
    error = assert_raises(Shmview::StreamEnded) { reader.take }
    assert_equal ["stream 's' has ended", "s"], [error.message, error.name]
    3.times { |i| write(stream, 5 + i) } # begins it again
    each = reader.each(timeout: PATIENCE)
    assert_kind_of Enumerator, each
    assert_equal([5, 6], Array.new(2) { number_of(each.next) })
    assert_equal({ held: 1 }, states(stream).slice(:held)) # until the next one is wanted
    assert_equal([7], reader.lazy.map { |frame| number_of(frame) }.first(1))
    assert_raises(Shmview::TimedOut) { reader.each(timeout: 0) { flunk } }
    write(stream, 8)
    assert_raises(ZeroDivisionError) { reader.each { 1 / 0 } }
    assert_equal({ held: 1 }, states(stream).slice(:held)) # that of the Enumerator
  end

  def test_stages
    stream = create(slots: 4, stages: 2, lossless: true)
    second = opened("s", :write)
    third = opened("s:1")
    12.times do |i|
      write(stream, i)
      slot = second.take do |frame|
        next unless (i % 3).zero?

        assert_equal (i / 3) + 1, frame.pass_on(1)
        assert_match(/in stage 1 already/, assert_raises(Shmview::Exists) { frame.pass_on(1) }.message)
        stream.status.readers.find { |reader| reader.stage.zero? }.holds
      end
      next unless slot

      third.take do |frame|
        assert_equal [i, (i / 3) + 1], [number_of(frame), frame.sequence]
        assert_equal slot, stream.status.readers.find { |reader| reader.stage == 1 }.holds # it was not copied
        assert_raises(Shmview::ReadOnly) { frame.pass_on(0) }
      end
    end
    later = Shmview.open_stream("s:1", :write)
    assert_match(/stage 1 of stream 's' gets its frames/, assert_raises(Shmview::Invalid) { later.loan }.message)
    write(stream, 0)
    frame = second.take
    [7, -1, 2**40].each { |stage| assert_raises(Shmview::Invalid) { frame.pass_on(stage) } }
    frame.release
    assert_match(/released/, assert_raises(Shmview::Closed) { frame.pass_on(1) }.message)
  end

  def test_peeking
    stream = create(slots: 3)
    peek = Shmview.open_stream("s", :peek)
    assert_raises(Shmview::TimedOut) { peek.take(timeout: 0.001) }
    write(stream, 1)
    frame = peek.take(timeout: 0)
    assert_predicate frame, :intact?
    assert_equal 1, number_of(frame)
    9.times { |i| write(stream, i) }
    refute_predicate frame, :intact?
    assert_raises(Shmview::NoLock) { peek.to_io }
  end

  def test_status
    stream = create(slots: 4, stages: 2)
    reader = opened
    write(stream, 1)
    loaned = stream.loan
    held = reader.take
    status = stream.status
    assert_equal [[1, 0], [false, false], 0, Process.pid], [status.published, status.ended, status.deaths, status.writer_pid]
    assert_match(/ruby/, status.writer_command)
    assert_equal 4, status.slots.size
    assert_equal [1, 1], %i[loaned held].map { |state| status.slots.map(&:state).count(state) }
    slot = status.slots.index { |each| each.state == :held }
    assert_equal [[1, 0], held.time, 1], [status.slots[slot].sequences, status.slots[slot].time, status.slots[slot].holders]
    assert_equal [Process.pid, 0, 2, 0, 0, [slot]], status.readers.map { |r| [r.pid, r.stage, r.next, r.lag, r.missed, r.holds] }.flatten(1)
    loaned.discard
    assert_equal [true, false], stream.finish.status.ended
  end

  def test_what_is_refused
    assert_match(/needs the views of a frame/, assert_raises(ArgumentError) { Shmview.create_stream("t") }.message)
    assert_match(/view 'a' is there twice/, assert_raises(ArgumentError) { Shmview.create_stream("t", { "a" => "i4" }, a: "i4") }.message)
    { { slots: 1 } => /1 slots/, { slots: 513 } => /513 slots/, { history: 7 } => /history of 7/,
      { stages: 7 } => /7 stages/ }.each do |options, text|
      assert_match text, assert_raises(Shmview::Invalid) { create("t", **options) }.message
    end
    { { slots: -1 } => /slots: a number/, { history: 1 << 40 } => /history: a number/,
      { lifetime: :x } => /lifetime/ }.each do |options, text|
      assert_match text, assert_raises(ArgumentError) { create("t", **options) }.message
    end
    assert_raises(Shmview::FormatError) { Shmview.create_stream("t", a: "nonsense") }
    Shmview.create("seg", 4096) do
      assert_match(/'seg': the segment is no stream/, assert_raises(Shmview::Invalid) { Shmview.open_stream("seg") }.message)
    end
    assert_equal("nobody", assert_raises(Shmview::NotFound) { Shmview.open_stream("nobody") }.name)
    assert_raises(Shmview::NotFound) { Shmview.open_stream("nobody", timeout: 0.01) }
    [Shmview::Stream, Shmview::Frame].each { |c| assert_raises(NoMethodError) { c.new } }
  end

  def test_what_a_stream_refuses
    stream = create
    assert_equal("s", assert_raises(Shmview::Exists) { create }.name)
    assert_match(/which has 1/, assert_raises(Shmview::Invalid) { Shmview.open_stream("s:1") }.message)
    assert_match(/access: :peek, :read or :write, not :all/, assert_raises(ArgumentError) { Shmview.open_stream("s", :all) }.message)
    reader = opened
    second = opened("s", :write)
    assert_match(/not opened for writing/, assert_raises(Shmview::ReadOnly) { reader.loan }.message)
    assert_raises(Shmview::ReadOnly) { reader.finish }
    write(stream, 1)
    assert_match(/stream 's' has a writer: pid #{Process.pid}/, assert_raises(Shmview::Busy) { second.loan }.message)
    assert_raises(ArgumentError) { reader.take(1) }
    assert_raises(ArgumentError) { stream.loan(time: 1) }
    assert_raises(ArgumentError) { reader.take(timeout: -1) }
    stream.close
    [-> { stream.loan }, -> { stream.take }, -> { stream.latest }, -> { stream.each { nil } }, -> { stream.finish },
     -> { stream.join }, -> { stream.leave }, -> { stream.status }, -> { stream.death }, -> { stream.to_io },
     -> { stream.remove }].each do |use|
      assert_match(/the stream is closed/, assert_raises(Shmview::Closed, &use).message)
    end
    assert_equal ["s", :write, 8], [stream.name, stream.access, stream.info.slots]
  end

  def test_what_a_frame_refuses
    stream = create
    reader = opened
    frame = stream.loan
    assert_equal({ view: "x" }, assert_raises(Shmview::NoLayout) { frame["x"] }.facts)
    assert_raises(Shmview::NoLayout) { frame.set_length("x", 1) }
    assert_match(/11 elements of view 'numbers', which has 10/, assert_raises(Shmview::Bounds) { frame.set_length("numbers", 11) }.message)
    assert_raises(Shmview::Bounds) { frame.set_length("gain", 1) }
    [-1, 2**64].each { |n| assert_match(/a length is/, assert_raises(ArgumentError) { frame.set_length("numbers", n) }.message) }
    assert_match(/65 bytes for a frame's user, the limit is 64/, assert_raises(ArgumentError) { frame.user = "x" * 65 }.message)
    assert_raises(TypeError) { frame.user = 5 }
    assert_match(/a time is/, assert_raises(ArgumentError) { frame.time = Float::NAN }.message)
    assert_match(/not taken/, assert_raises(Shmview::NotOwner) { frame.pass_on(1) }.message)
    frame.user = "x" * 64
    frame.publish
    frame = reader.take
    assert_equal "x" * 64, frame.user
    [-> { frame.user = "" }, -> { frame.time = 1 }, -> { frame.publish }, -> { frame.discard },
     -> { frame.set_length("numbers", 1) }].each do |change|
      assert_match(/only a loaned one can be changed/, assert_raises(Shmview::NotOwner, &change).message)
    end
    assert_raises(Shmview::ReadOnly) { frame["numbers"][0] = 1 }
    frame.release
    [-> { frame["gain"] }, -> { frame.user }, -> { frame.pass_on(0) }].each do |use|
      assert_match(/the frame was released/, assert_raises(Shmview::Closed, &use).message)
    end
  end

  def test_removing_and_waiting_for_creation
    found = Thread.new { Shmview.open_stream("late:0", timeout: PATIENCE) }
    await { found.status == "sleep" }
    stream = create("late", lifetime: :manual, mode: 0o640)
    assert_equal ["late", 0o640], [found.value.name, Shmview.get_access("late").mode]
    [found.value, stream].each(&:close)
    opened("late", :write).remove
    refute Shmview.exist?("late")
  end
end
