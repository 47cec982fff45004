# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

require "timeout"
require_relative "helper"

# The lock among threads and processes: exclusion, owners that die inside, what ends a wait, and
# attachments that the daemon has ended.
class TestLock < ShmviewTest
  def setup
    super
    @seg = Shmview.create("seg", 100, layouts: { one: { A: "i4" } }, phase: :one)
    @other = Shmview.attach("seg")
  end

  def roles(seg = @seg) = seg.lock_status.parties.map(&:role).sort

  def test_threads
    counter = @seg.cast("q", 1)
    4.times.map { Thread.new { 300.times { @seg.synchronize { counter[0] += 1 } } } }.each(&:join)
    assert_equal 1200, counter[0]
  end

  def test_recursive_and_shared
    assert_equal 5, @seg.synchronize { @seg.synchronize { @seg.shared { 5 } } }
    @seg.shared do
      assert_equal ["holds shared"], roles
      assert @other.try_lock(shared: true)
      @other.unlock
      refute @other.try_lock
      assert_raises(Shmview::Deadlock) { @seg.lock }
    end
    assert_same @seg, @seg.lock
    refute @other.try_lock(shared: true)
    assert_same @seg, @seg.unlock
    assert_raises(Shmview::NotOwner) { @seg.unlock }
    assert_raises(LocalJumpError) { @seg.synchronize }
    assert_empty roles
  end

  def test_timeouts
    @other.lock
    %i[lock synchronize shared recover].each do |name|
      error = assert_raises(Shmview::TimedOut) { @seg.public_send(name, timeout: 0.01) { flunk } }
      assert_equal "seg", error.name
    end
    assert_raises(Shmview::TimedOut) { @seg.lock(timeout: 0) }
    assert_raises(ArgumentError) { @seg.lock(timeout: -1) }
    assert_raises(TypeError) { @seg.synchronize(timeout: "soon") { flunk } }
    assert_raises(ArgumentError) { @seg.lock(patience: 1) }
    @other.unlock
    assert_equal 7, @seg.synchronize(timeout: 1) { 7 }
  end

  def test_left_by_whatever
    assert_raises(ZeroDivisionError) { @seg.synchronize { 1 / 0 } }
    catch(:out) { @seg.synchronize { throw :out } }
    [1].each { @seg.shared { break } }
    thread = Thread.new { @seg.synchronize { Thread.stop } }
    await { roles == ["holds"] }
    thread.kill
    thread.join
    assert_empty roles
    assert @other.try_lock
    @other.unlock
  end

  def test_owner_died
    with_holder("seg", "seg.buf[0] = 1") do |pid, kill|
      refute @seg.try_lock
      refute @seg.try_lock(shared: true)
      assert_raises(Shmview::TimedOut) { @seg.lock(timeout: 0.01) }
      kill.call
      died = nil
      [-> { @seg.synchronize { flunk } }, -> { @seg.lock }, -> { @seg.shared { flunk } }, -> { @seg.try_lock },
       -> { @seg.lock(shared: true) }].each do |take|
        died = assert_raises(Shmview::OwnerDied) { take.call }
        refute @seg.lock_status.held # a call that raises holds nothing
      end
      assert_equal ["seg", pid, "one", 1, 0], [died.name, died.pid, died.phase, died.generation, died.code]
      assert died.command.start_with?("ruby")
      assert_operator died.when, :<=, Process.clock_gettime(Process::CLOCK_MONOTONIC)
      assert_in_delta Time.now.to_f, died.died_at.to_f, 600
      assert_match(/process #{pid} \(ruby.*\) died while it held the lock of 'seg'; see Segment#recover/, died.message)
      assert @seg.lock_status.dirty
      check_recovery(pid)
    end
  end

  # Only a block that runs to its end has repaired the segment.
  def check_recovery(pid)
    assert_raises(ZeroDivisionError) { @seg.recover { |died| died.pid == pid ? 1 / 0 : flunk } }
    [1].each { @seg.recover { |died| break if died.pid == pid } }
    thread = Thread.new { @seg.recover { Thread.stop } }
    await { roles == ["holds"] }
    thread.kill
    thread.join
    assert_equal(3, @seg.recover { |died| died.pid == pid && @seg.lock_status.held ? 3 : flunk })
    @seg.recover { |died| assert_nil died }
    assert_raises(ZeroDivisionError) { @seg.recover { 1 / 0 } }
    @seg.synchronize { assert_equal 1, @seg.buf[0] }
    @seg.lock
    @seg.unlock(repaired: false) # nobody dies
    died = assert_raises(Shmview::OwnerDied) { @seg.lock }
    assert_match(/ process .* died while it held the lock of 'seg', or gave it back unrepaired; see/, died.message)
    assert_equal [Process.pid, nil], [died.pid, died.died_at]
    @seg.recover { nil }
  end

  def test_death_wakes_a_waiter
    with_holder("seg") do |pid, kill|
      waiter = Thread.new { @seg.synchronize { flunk } rescue $!.pid }
      await { roles.include?("waits") }
      kill.call
      assert_equal pid, waiter.value
    end
    @seg.recover { nil }
  end

  # Ruby gives the native thread of an ended Thread to the next one. A lock that the ended Thread
  # held must be reported as a death all the same.
  def test_threads_that_end_inside
    [-> { @seg.lock }, -> { @seg.lock; @seg.lock }, -> { @seg.lock; raise "out" }, -> { @seg.lock; Thread.exit }].each do |work|
      thread = Thread.new(&work)
      thread.report_on_exception = false
      (thread.join rescue nil)
      died = Thread.new { @seg.lock(timeout: 60) rescue $! }.value
      assert_kind_of Shmview::OwnerDied, died
      assert_equal [Process.pid, nil], [died.pid, died.died_at]
      assert_match(/\Aa thread of this process \(ruby.*\) died while/, died.message)
      @seg.recover { |found| assert_kind_of Shmview::OwnerDied, found }
    end
    Thread.new { @seg.lock(shared: true) }.join
    assert @other.try_lock
    @other.unlock
  end

  # A segment that is locked is not collected, although nothing in Ruby refers to it.
  def test_a_lock_keeps_its_segment
    take = ->(n) { Shmview.create("held#{n}", 10).lock and nil }
    20.times(&take)
    3.times { GC.start }
    20.times do |n|
      held = Shmview.attach("held#{n}")
      refute held.try_lock
      held.close
    end
    ObjectSpace.each_object(Shmview::Segment).to_a.each { |seg| seg.unlock if !seg.closed? && seg.name.start_with?("held") }
  end

  class Out < StandardError; end

  WAITS = {
    lock: ->(seg) { seg.lock }, synchronize: ->(seg) { seg.synchronize { raise "no" } },
    shared: ->(seg) { seg.shared { raise "no" } }, recover: ->(seg) { seg.recover { raise "no" } },
    wait: ->(seg) { seg.wait }, phase: ->(seg) { seg.wait(generation: 1) },
    on_change: ->(seg) { seg.on_change { raise "no" } }, attach: ->(_) { Shmview.attach("nobody", timeout: nil) }
  }.freeze

  WAITS.each do |name, wait|
    define_method(:"test_#{name}_is_interrupted") do
      @other.lock
      thread = Thread.new { wait.call(@seg) rescue $!.class }
      await { thread.stop? }
      thread.raise(Out)
      assert_equal Out, thread.value
      thread = Thread.new { wait.call(@seg) }
      await { thread.stop? }
      assert_same thread, thread.kill.join(60)
      assert_raises(Timeout::Error) { Timeout.timeout(0.01) { wait.call(@seg) } }
      assert_equal ["holds"], roles
      @other.unlock
    end
  end

  # A handler runs while the wait goes on, and ends it by raising.
  def test_signals
    handled = Queue.new
    before = trap(:USR1) { handled << 1 }
    @other.lock
    main = Thread.current
    helper = Thread.new do
      await { main.stop? }
      Process.kill(:USR1, Process.pid)
      handled.pop
      trap(:USR1) { raise Out }
      Process.kill(:USR1, Process.pid)
    end
    assert_raises(Out) { @seg.lock }
    helper.join
    @other.unlock
    assert_empty roles
  ensure
    trap(:USR1, before)
  end

  # The thread that ends the wait must be able to run.
  def test_the_gvl_is_free
    @other.lock
    waiter = Thread.new { @seg.synchronize { :inside } }
    await { roles == %w[holds waits] }
    @other.unlock
    assert_equal :inside, waiter.value
  end

  def test_status
    @seg.lock
    status = @seg.lock_status
    party = status.parties.first
    assert_equal [true, false, 1, "holds", Process.pid], [status.held, status.owner_is_dead, status.n_parties, party.role, party.pid]
    assert_operator party.since, :>=, 0
    @seg.unlock
  end

  # Marks every slot of all segments as dead, as the daemon does when it ends an attachment.
  def lose
    File.foreach("/proc/self/maps").grep(/liveness/).map { |line| line.split.last }.uniq.each { |path| lose_in(path) }
  end

  def lose_in(path)
    high = IO.binread(path, 4, 36).unpack1("L")
    generations = IO.binread(path, 4 * high, 96).unpack("L*")
    IO.binwrite(path, generations.map { |g| g | 1 << 31 }.pack("L*"), 96)
  end

  def test_lost
    seg = Shmview.create("lost", 100)
    error = assert_raises(Shmview::Lost) do
      seg.synchronize do
        lose
        Shmview.attach("lost") { |next_one| assert_raises(Shmview::OwnerDied) { next_one.lock } }
      end
    end
    assert_equal 48, error.code
    assert_match(/has ended this attachment of 'lost'/, error.message)
    [-> { seg.lock }, -> { seg.try_lock }, -> { seg.shared {} }, -> { seg.recover {} }].each do |take|
      assert_raises(Shmview::Lost) { take.call }
    end
    assert_raises(Shmview::NotOwner) { seg.unlock }
    seg.close
  end
end
