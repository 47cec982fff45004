# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

require "fiddle"
require_relative "helper"

# Forked children, Ractors, and the end of interpreters: what a child may use, and what is left when
# a process ends.
class TestProcess < ShmviewTest
  def test_children
    seg = Shmview.create("seg", 80)
    view = seg.cast("q", 10)
    add = -> { 200.times { seg.synchronize { view[0] += 1 } } }
    children = 3.times.map { fork { add.call; exit!(0) } }
    add.call
    children.each { |pid| Process.wait(pid) && assert_predicate($?, :success?) }
    assert_equal 800, view[0]
  end

  # The parent holds the lock, not the child. Segments that the child creates are its own.
  def test_forked_while_it_is_held
    seg = Shmview.create("seg", 80)
    view = seg.cast("q", 10)
    memory_view = Shmview::MemoryView.new(view)
    seg.synchronize do
      said = in_child do
        free = seg.try_lock
        refused = begin
          seg.unlock
        rescue Shmview::NotOwner => e
          e.class.name
        end
        view[1] = 5
        new = Shmview.create("new", 10)
        [free, refused, memory_view[1], new.size, seg.lock_status.parties.map(&:role)]
      end
      assert_equal [false, "Shmview::NotOwner", 5, 10, ["holds"]], said
      assert_equal 5, view[1]
    end
    assert_equal(6, in_child { seg.synchronize { view[2] = 6 } })
    assert_equal(6, in_child { Thread.new { seg.shared { view[2] } }.value })
    memory_view.release
  end

  # Threads of the parent that hold a lock do not exist in the child.
  def test_forked_beside_a_thread_that_holds
    seg = Shmview.create("seg", 80)
    done = Queue.new
    thread = Thread.new { seg.synchronize { done.pop } }
    await { seg.lock_status.held }
    assert_equal([false, ["holds"]], in_child { [seg.try_lock, seg.lock_status.parties.map(&:role)] })
    done << 1
    thread.join
    assert_equal(true, in_child { seg.try_lock.tap { seg.unlock } })
  end

  # The extension does not permit other Ractors there.
  def skip_without_ractors
    skip "Ruby 3.3 moves Threads of Ractors between native threads" if RUBY_VERSION.start_with?("3.3.")
  end

  def test_ractors
    skip_without_ractors
    said = run_ruby(<<~RUBY)
      Warning[:experimental] = false
      seg = Shmview.create(nil, 80, layouts: {one: {A: ["q", 10]}}, phase: :one)
      writer = seg.cast("q", 10)
      other = Shmview.attach(seg.name)
      shared = Ractor.make_shareable(seg.cast("q", 10))
      writer = nil
      fails = ->(error, &use) { begin; use.call; false; rescue error; true; end }
      p [shared, seg, seg.connection].map { |o| [o.frozen?, Ractor.shareable?(o)] }.uniq
      p fails.(FrozenError) { seg.close }, fails.(FrozenError) { shared[0] = 1 }, fails.(FrozenError) { shared.release }
      p shared.readonly?, Shmview::MemoryView.new(shared).tap { |mv| $mv = mv }.readonly?, $mv.release
      ractors = 3.times.map do |i|
        Ractor.new(shared, i) do |view, i|
          mine = Shmview.attach(view.segment.name)
          counter = mine.cast("q", 10)
          100.times { mine.synchronize { counter[0] += 1 } }
          100.times { view.segment.synchronize { counter[0] += 1 } }
          refused = begin; view[0, 0]; rescue Shmview::Bounds => e; e.code; end
          frozen = begin; view[0] = 1; rescue FrozenError; true; end
          found = [mine["A"][0].class, refused, frozen, Shmview::MemoryView.new(view).then { |m| m[1].tap { m.release } }, view.segment.phase]
          mine.close
          found
        end
      end
      p ractors.map(&:take).uniq, other.cast("q", 1)[0], shared[0]
    RUBY
    assert_equal ["[[true, true]]", "true", "true", "true", "true", "true", "nil", '[[Integer, 14, true, 0, "one"]]', "600", "600"],
                 said.lines.map(&:chomp)
  end

  # From Ruby 3.4 on these Threads share native threads until they take a lock.
  def test_threads_of_ractors_sleep_inside
    skip_without_ractors
    said = run_ruby(<<~RUBY)
      Warning[:experimental] = false
      seg = Shmview.create(nil, 80)
      ractors = 2.times.map do
        Ractor.new(seg.name) do |name|
          mine = Shmview.attach(name)
          counter = mine.cast("q", 10)
          add = -> { mine.synchronize { counter[0].then { |n| sleep(0.001) && counter[0] = n + 1 } } }
          4.times.map { Thread.new { 10.times { add.call } } }.each(&:join)
          mine.close
        end
      end
      p ractors.map(&:take), seg.cast("q", 1)[0]
    RUBY
    assert_equal "[nil, nil]\n80\n", said
  end

  # The first call makes the connection, under a mutex, which Ruby refuses to handlers.
  def test_handlers_of_signals_use_the_default_connection
    said = run_ruby(<<~RUBY)
      Shmview.list
      found = []
      trap(:USR1) { found << Shmview.exist?("nobody") << Shmview.create(nil, 100, &:size) }
      2.times do |n|
        Process.kill(:USR1, Process.pid)
        Thread.pass until found.size > n * 2
      end
      p found
    RUBY
    assert_equal "[false, 100, false, 100]\n", said
  end

  # Each way in which a program can end leaves nothing.
  ENDS = {
    globals: "$seg = Shmview.create(nil, 100); $v = $seg.buf; $m = Fiddle::MemoryView.new($v); $o = Shmview::MemoryView.new($v)",
    many: "$all = 300.times.map { Fiddle::MemoryView.new(Shmview.create(nil, 100).buf) }",
    wrapped: "$w = 50.times.map { Shmview.wrap(Fiddle::Pointer['abc' * 100]) }; $m = $w.map { |w| Fiddle::MemoryView.new(w) }",
    consumers: "$m = 50.times.map { Shmview::MemoryView.new(Fiddle::Pointer['abc' * 100]) }",
    exporters: "require 'exporter'; $m = 300.times.map { |i| o = Exporter.new('abc', nil, 1, nil, nil); i.even? ? Shmview::MemoryView.new(o) : Shmview.wrap(o) }",
    closed: "c = Shmview.connect; Shmview.create(nil, 100).close; c.close",
    locked: "$seg = Shmview.create(nil, 100); $seg.lock",
    at_exit: "at_exit { $v[0] = 1; $seg.synchronize { p $v[0] if $v[0] != 1 }; Shmview::MemoryView.new($v)[0] }; $seg = Shmview.create(nil, 100); $v = $seg.buf",
    early: "BEGIN { at_exit { $m = Shmview::MemoryView.new($v); $m.release; $w = Shmview.wrap(Fiddle::Pointer['abc']) } }; $v = Shmview.create(nil, 100).buf",
    finalizer: "$seg = Shmview.create(nil, 100); ObjectSpace.define_finalizer(Object.new, proc { $seg.lock; $seg.buf[0] = 1; $seg.unlock })",
    thread: "$seg = Shmview.create(nil, 100); o = Shmview.attach($seg.name); o.lock; t = Thread.new { $seg.lock }; Thread.pass until t.stop?",
    held: "$seg = Shmview.create(nil, 100); Thread.new { $seg.lock; Thread.exit }.join",
    fork: "$seg = Shmview.create(nil, 100); $m = Fiddle::MemoryView.new($seg); Process.wait(fork { })",
    io_buffer: "Warning[:experimental] = false; $b = Shmview.create(nil, 100).buf.io_buffer; $c = $b.slice(0, 10)",
    cycle: "c = Class.new { attr_accessor :a, :b }.new; c.a = Shmview.create(nil, 100); c.b = [c, c.a.buf, Fiddle::MemoryView.new(c.a)]",
    enumerator: "$seg = Shmview.create(nil, 100); $e = $seg.buf.each; $e.next; $f = Fiber.new { $seg.synchronize { Fiber.yield } }; $f.resume",
    compact: "$seg = Shmview.create(nil, 100); $m = Fiddle::MemoryView.new($seg.buf); GC.compact"
  }.freeze

  ENDS.each do |name, source|
    define_method(:"test_the_end_with_#{name}") do
      2.times { run_ruby("require 'fiddle'; #{source}") }
      await("the end of its segments") { DAEMON.objects.empty? }
    end
  end

  def test_segments_end_with_killed_processes
    source = '$all = 10.times.map { Shmview.create(nil, 10_000) }; puts "made"; $stdout.flush; sleep'
    IO.popen([RbConfig.ruby, "-rshmview", "-e", source]) do |io|
      assert_equal "made\n", io.gets
      assert_equal 30, DAEMON.objects.size
      Process.kill(:KILL, io.pid)
    end
    await("the end of its segments") { DAEMON.objects.empty? }
  end
end
