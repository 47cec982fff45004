# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

require "open3"
require "timeout"
require_relative "helper"

# Events: their kinds and members, waits and what ends them, IO.select, forks, and a daemon that starts
# again.
class TestEvents < ShmviewTest
  def teardown
    ObjectSpace.each_object(Shmview::Events, &:close)
    super
  end

  # Returns the events up to the first one of this kind.
  def up_to(events, kind)
    found = []
    found << events.next(timeout: 60) until found.last&.kind == kind
    found
  end

  def test_the_life_of_a_segment
    events = Shmview.events("seg")
    seg = Shmview.create("seg", 100, layouts: { one: { A: "i4" } }, phase: :one)
    Shmview.create("other", 1) { nil }
    seg.close
    found = up_to(events, :removed)
    assert_equal %i[subscribed created attached phase detached removed], found.map(&:kind)
    assert_equal %w[seg], found.filter_map(&:segment).uniq
    created, attached, phase = found[1..3]
    assert_equal [100, Process.uid, Process.pid], [created.size, created.uid, created.pid]
    assert_equal [:write, nil], [attached.access, attached.held]
    assert_equal ["one", 1, 1], [phase.layout, phase.generation, phase.switches]
    assert_equal found.map(&:serial).sort, found.map(&:serial)
    assert_in_delta Time.now.to_f, created.time.to_f, 600
    assert_match(/\A#<Shmview::Event serial=\d+, time=.*, kind=:created, segment="seg", id=\d+, uid=\d+, pid=\d+, .*size=100>\z/,
                 created.inspect)
    assert_raises(Shmview::TimedOut) { events.next(timeout: 0) }
    case created
    in { kind: :created, segment: }
      assert_equal "seg", segment
    end
  end

  def test_a_death
    Shmview.create("seg", 100) do
      events = Shmview.events("seg", kinds: %i[died owner_died])
      with_holder("seg") do |pid, kill|
        kill.call
        died, owner = up_to(events, :owner_died).last(2)
        assert_equal [[pid, :died, :exclusive], [pid, :owner_died, :exclusive]], [died, owner].map { |e| [e.pid, e.kind, e.held] }
        assert_match(/\Aruby/, owner.command)
      end
      Shmview.attach("seg").recover { nil }
    end
  end

  def test_streams
    events = Shmview.events("cam", kinds: %i[attached died])
    stream = Shmview.create_stream("cam", image: ["uint8", [4]], slots: 3, lossless: true)
    script = "$reader = Shmview.open_stream(ARGV[0]).join; puts; $stdout.flush; $frame = $reader.take; Process.kill(9, $$)"
    Open3.popen2(RbConfig.ruby, "-rshmview", "-e", script, "cam") do |_, output, thread|
      output.gets
      stream.loan { |frame| frame["image"].fill(1) }
      thread.value
      attached, died = up_to(events, :died).last(2)
      assert_equal [:lossless, 3, nil], [attached.stream, attached.stream_slots, attached.stream_role]
      assert_equal [thread.pid, :lossless, :reader, 1], [died.pid, died.stream, died.stream_role, died.held_frames]
    end
    stream.close
  end

  def test_an_enumerator_and_a_block
    events = Shmview.events(kinds: :created)
    creator = Thread.new { %w[a b].each { |name| Shmview.create(name, 1, lifetime: :manual) } }
    assert_equal %w[a b], events.lazy.select { |e| e.kind == :created }.map(&:segment).first(2)
    creator.join
    assert_kind_of Enumerator, events.each
    assert_raises(Shmview::TimedOut) { events.each(timeout: 0.01).first(5) }
    serials = []
    found = Shmview.events(after: 0, kinds: :created, timeout: 60) do |e|
      serials << e.serial
      break e.segment if e.segment == "b"
    end
    assert_equal "b", found
    after = Shmview.events(after: serials[-2], kinds: :created) { |e| break e.segment if e.kind == :created }
    assert_equal "b", after
    %w[a b].each { |name| Shmview.remove(name) }
  end

  def test_io_select
    events = Shmview.events("seg")
    assert_equal([:subscribed], await { events.poll.then { |found| found unless found.empty? } }.map(&:kind))
    refute IO.select([events], nil, nil, 0)
    assert_empty events.poll
    seg = Shmview.create("seg", 1)
    assert IO.select([events], nil, nil, 60)
    found = []
    await { (found += events.poll).size >= 2 }
    assert_equal %i[created attached], found.map(&:kind)
    seg.close
  end

  def test_what_ends_a_wait
    events = Shmview.events("seg")
    events.next
    [-> (t) { t.raise(Interrupt) }, ->(t) { t.kill }].each do |interrupt|
      thread = Thread.new do
        events.next
      rescue Interrupt
        :interrupted
      end
      await { thread.status == "sleep" }
      assert_match(/another thread/, assert_raises(Shmview::Busy) { events.next }.message)
      interrupt.call(thread)
      assert thread.join(20)
    end
    assert_raises(Timeout::Error) { Timeout.timeout(0.05) { events.next } }
    Shmview.create("seg", 1) { assert_equal :created, events.next(timeout: 60).kind }
  end

  def test_closing
    events = Shmview.events
    refute_predicate events, :closed?
    assert_nil events.close
    assert_nil events.close
    assert_predicate events, :closed?
    [-> { events.next }, -> { events.poll }, -> { events.to_io }].each { |use| assert_raises(Shmview::Closed, &use) }
    assert_raises(NoMethodError) { Shmview::Events.new }
    assert_match(/subscribed, lost/, assert_raises(ArgumentError) { Shmview.events(kinds: :none) }.message)
    assert_raises(TypeError) { Shmview.events(after: "now") }
    assert_raises(Shmview::Closed) { Shmview.events(connection: Shmview::Connection.new.tap(&:close)) }
  end

  # A wait ends when another thread closes the subscription.
  def test_closing_during_a_wait
    found = []
    waits = [->(events) { events.next }, ->(events) { events.each { |e| found << e.kind } }].map do |use|
      events = Shmview.events("seg")
      events.next
      thread = Thread.new do
        use.call(events) && :over
      rescue Shmview::Closed
        :closed
      end
      await { thread.status == "sleep" }
      assert_nil events.close
      assert_predicate events, :closed?
      assert_raises(Shmview::Closed) { events.poll }
      thread.value
    end
    assert_equal [%i[closed over], []], [waits, found]
    events = Shmview.events
    assert_same events, events.each { events.close }
  end

  def test_a_child_cannot_use_it
    events = Shmview.events
    said = in_child do
      refused = begin
        events.next
      rescue Shmview::Closed => e
        e.message
      end
      each = begin
        events.each { flunk }
      rescue Shmview::Closed => e
        e.message
      end
      events.close
      [refused, each, Shmview.events { |e| break e.kind }]
    end
    theirs = "the subscription belongs to the parent process; open another one"
    assert_equal [theirs, theirs, :subscribed], said
    assert_equal :subscribed, events.next.kind
  end

  # The wait of the child ends before the next event, which the parent gets.
  def test_a_handler_forks_during_a_wait
    said = in_child do
      events = Shmview.events("seg", kinds: :created)
      events.next
      main = Thread.current
      pid = parent = Process.pid
      trap(:USR1) { pid = fork }
      creator = Thread.new do
        await { main.status == "sleep" }
        Process.kill(:USR1, parent)
        await { pid != parent }
        Process.wait(pid)
        status = $?.exitstatus
        Shmview.create("seg", 1) { status }
      end
      found = begin
        events.next(timeout: 20).kind
      rescue Shmview::Closed => e
        e.message
      end
      exit!(found.to_s.include?("parent") ? 2 : 3) if Process.pid != parent
      [found, creator.value]
    end
    assert_equal [:created, 2], said
  end

  # The daemon's end is no error: the subscription continues with the next daemon.
  def test_the_daemon_starts_again
    events = Shmview.events
    events.next
    DAEMON.stop
    assert_raises(Shmview::Disconnected, Shmview::TimedOut) { events.next(timeout: 0.01) }
    assert_empty events.poll
    assert_raises(Shmview::Disconnected) { events.to_io }
    DAEMON.start
    seg = await { Shmview.create("seg", 1) rescue nil }
    found = up_to(events, :created)
    assert_includes found.map(&:kind), :subscribed
    [events, seg].each(&:close)
    Shmview.connect.ping
    @before = [descriptors, mappings] # those of the new daemon
  end

  def test_attach_wakes_by_events
    waiter = Thread.new { Shmview.attach("late", timeout: nil, &:size) }
    await { waiter.status == "sleep" }
    Shmview.create("late", 7) { assert_equal 7, waiter.value }
    assert_raises(Shmview::NotFound) { Shmview.attach("never", timeout: 0.05) }
  end

  # If the daemon has no room for one more subscription, attach polls.
  def test_attach_without_a_subscription
    all = []
    assert_raises(Shmview::Quota, Shmview::Limit) { loop { all << Shmview.events("other") } }
    waiter = Thread.new { Shmview.attach("late", timeout: 60, &:size) }
    await { waiter.status == "sleep" }
    Shmview.create("late", 7) { assert_equal 7, waiter.value }
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    assert_raises(Shmview::NotFound) { Shmview.attach("never", timeout: 0.2) }
    assert_operator Process.clock_gettime(Process::CLOCK_MONOTONIC) - began, :>=, 0.2
    all.each(&:close)
  end

  def test_stress
    events = Shmview.events("seg", kinds: %i[created removed])
    GC.stress = true
    Shmview.create("seg", 1, &:close)
    kinds = up_to(events, :removed).map(&:kind)
    GC.stress = false
    assert_equal %i[subscribed created removed], kinds
    20.times { Shmview.events }
    GC.start
  ensure
    GC.stress = false
  end
end
