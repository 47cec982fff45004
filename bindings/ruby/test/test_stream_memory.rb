# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

require "fiddle"
require_relative "streams"

# The memory of a frame: views end with it, consumers keep its slot; the collector and forks.
class TestStreamMemory < StreamTest
  MV = Shmview::MemoryView

  def test_views_end_with_their_frame
    stream = create
    reader = opened
    views = stream.loan { |frame| [frame["numbers"], frame["numbers"][1..], frame["gain"]].each { |view| view.fill(7) } }
    views += reader.take { |frame| [frame["numbers"], frame["gain"], frame["numbers"].reshape(2, 5)].each(&:to_a) }
    views << reader.tap { write(stream, 1) }.take.then { |frame| frame["numbers"].tap { frame.release } }
    views << stream.loan.then { |frame| frame["gain"].tap { frame.discard } }
    views.each do |view|
      assert_predicate view, :released?
      assert_raises(Shmview::Closed) { view[0] }
      refute MV.available?(view)
    end
  end

  # The memory of a consumer must not change under it, whatever the frame and the writer do.
  def test_a_consumer_keeps_the_slot
    stream = create(slots: 3)
    reader = opened
    [MV, Fiddle::MemoryView].each do |kind|
      write(stream, 42)
      there = reader.latest { |frame| kind.new(frame["numbers"]) }
      9.times { |i| write(stream, i) }
      assert_equal [42, 42], [there[0], there[9]] if kind == Fiddle::MemoryView
      assert_equal [42, 42], [there.item(0), there.item(9)] if kind == MV
      assert_equal({ held: 1 }, states(stream).slice(:held))
      assert_match(/consumers still have the memory of 1 frames/, assert_raises(Shmview::Busy) { reader.close }.message)
      there.release
      refute_includes states(stream), :held
    end
    frame = reader.latest
    frame["numbers"].io_buffer do |buffer|
      assert_match(/consumers/, assert_raises(Shmview::Busy) { frame.release }.message)
      refute_predicate frame, :released?
      assert_equal 80, buffer.size
    end
    assert_nil frame.release
  end

  # A writer that publishes while it has a consumer goes on to see the bytes that it has published.
  def test_a_writer_keeps_what_a_consumer_shows
    stream = create(slots: 3)
    reader = opened
    there = stream.loan { |frame| MV.new(frame["numbers"].fill(5)) }
    assert_equal 5, read(reader)
    9.times { |i| write(stream, i) }
    assert_equal 5, there.item(3)
    assert_equal 1, states(stream).values_at(:held, :loaned).compact.sum
    there.release
    assert_equal 0, states(stream).values_at(:held, :loaned).compact.sum
    there = stream.loan.then { |frame| MV.new(frame["numbers"]).tap { frame.discard } }
    assert_equal({ loaned: 1 }, states(stream).slice(:loaned))
    there.release
    refute_includes states(stream), :loaned
  end

  def test_closing_ends_the_frames
    stream = create(slots: 4)
    reader = opened
    write(stream, 1)
    loaned = stream.loan
    taken = reader.take
    view = taken["numbers"]
    there = MV.new(loaned["gain"])
    assert_raises(Shmview::Busy) { stream.close }
    refute_predicate stream, :closed?
    there.release
    reader.close
    stream.close
    assert_raises(Shmview::Closed) { view[0] }
    [loaned, taken].each { |frame| assert_predicate frame, :released? }
    assert_raises(Shmview::Closed) { loaned["gain"] }
  end

  def test_close_while_a_thread_waits
    stream = create
    waiting = Thread.new { stream.take }
    await { waiting.status == "sleep" }
    assert_match(/1 threads are in calls of 's'/, assert_raises(Shmview::Busy) { stream.close }.message)
    waiting.kill.join
    assert_nil stream.close
  end

  # Nobody can release a frame that nobody references. A call that waits collects such frames first.
  def test_forgotten_frames_are_collected_before_a_wait
    stream = create(slots: 8, lossless: true)
    reader = opened
    GC.disable # until the call
    Thread.new { 8.times { |i| write(stream, i) && reader.take["numbers"][0] } }.join
    assert_equal 8, states(stream)[:held]
    GC.enable
    frame = stream.loan(timeout: PATIENCE)
    assert_equal "#<Shmview::Frame of 's', loaned>", frame.inspect
  ensure
    GC.enable
  end

  # Nothing but a frame refers to its stream here, and nothing but a view to its frame.
  def test_a_frame_keeps_its_stream
    stream = create(slots: 8)
    frames = Array.new(2) do
      reader = opened
      write(stream, 6)
      reader.take
    end
    view = frames.pop["numbers"]
    GC.start
    Array.new(1000) { Object.new }
    assert_equal [6, 6], [number_of(frames[0]), view[9]]
    assert_equal ["s", false], [frames[0].stream.name, frames[0].stream.closed?]
  end

  def test_frames_and_views_survive_the_collector
    stream = create(slots: 8)
    reader = opened
    work = lambda do
      write(stream, 3)
      view = reader.latest["numbers"] # its frame has no other reference
      GC.start unless GC.stress
      there = Fiddle::MemoryView.new(view)
      [view.to_a.sum, there[9], reader.status.readers.size, stream.loan { |f| f["gain"][] = 1.5 }].tap { there.release }
    end
    calm = work.call
    GC.stress = true
    stressed = work.call
    GC.stress = false
    assert_equal [30, 3, 1, 1.5], calm
    assert_equal calm, stressed
    frames = Array.new(3) { stream.loan }
    GC.verify_compaction_references(toward: :empty, double_heap: true)
    frames.each { |frame| frame["numbers"].fill(9) }
    assert_equal [%w[numbers gain], "s"], [stream.views, stream.name]
    frames.each(&:publish)
  ensure
    GC.stress = false
  end

  # At the end of a process its objects are freed in any order.
  def test_the_end_of_a_process
    create(slots: 8, lifetime: :manual).close
    run_ruby(<<~RUBY)
      require "fiddle"
      stream = Shmview.open_stream("s", :write)
      reader = Shmview.open_stream("s").join
      2.times { stream.loan { |frame| frame["gain"][] = 1 } }
      $kept = [stream, reader, stream.loan, reader.take, reader.take["numbers"], Fiddle::MemoryView.new(stream.loan["gain"])]
    RUBY
    stream = opened("s", :write)
    await("the end of the process") { stream.status.readers.size == 1 && write(stream, 1) }
    refute_includes states(stream), :loaned
    stream.remove
  end

  # A child joins by itself. The frames that it inherits are of no effect, and its own ones are its own.
  def test_fork
    stream = create(slots: 4, lossless: true, many_writers: true)
    reader = opened
    write(stream, 1)
    held = reader.take
    loaned = stream.loan
    found = in_child do
      refusals = [-> { held["gain"] }, -> { loaned["gain"] }, -> { loaned.publish }].map do |use|
        use.call
      rescue Shmview::Error => e
        e.class.name
      end
      held.release
      reader.join
      assert_empty_stream(reader)
      [refusals, reader.status.readers.size]
    end
    assert_equal [["Shmview::NotOwner"] * 3, 2], found
    assert_equal [1, 1], states(stream).values_at(:held, :loaned)
    loaned.discard
    held.release
    # the child writes with a role of its own, and both get its frame
    assert_equal([2, 7], in_child { reader.join && [write(stream, 7), read(reader)] })
    assert_equal 7, read(reader)
  end
end
