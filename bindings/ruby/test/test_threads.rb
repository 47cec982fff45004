# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

require_relative "helper"

# Threads and calls that wait for the daemon: other threads run, an interrupt ends each wait, and a
# forked child has nothing of the parent's other threads. Most tests stop the daemon for a while.
class TestThreads < ShmviewTest
  LARGE = 32 << 20 # bytes, which are copied without the GVL

  def test_a_view_is_released_during_a_copy
    seg = Shmview.create("seg", LARGE)
    bytes = "\1" * LARGE
    3.times do
      view = seg.cast("B").fill(7)
      thread = Thread.new { view.get_string(bytes) }
      Thread.pass while thread.status == "run"
      view.release
      begin
        assert_equal 7, thread.value.getbyte(LARGE - 1)
      rescue Shmview::Closed # the view was released before the copy began
        nil
      end
    end
  end

  # Calls that wait for a daemon that does not answer; an interrupt ends each of them.
  def test_an_interrupt_ends_a_wait_for_the_daemon
    seg = Shmview.create("seg", 100)
    calls = {
      attach: -> { Shmview.attach("seg") }, create: -> { Shmview.create("other", 100) },
      remove: -> { Shmview.remove("seg") }, ping: -> { Shmview.connect.ping },
      connect: -> { Shmview::Connection.new }, define: -> { seg.define(late: { A: "i" }) },
    }
    seg.lock
    calls.to_a.product(%i[raise kill]).each do |(name, call), interrupt|
      Process.kill(:STOP, DAEMON.pid)
      thread = Thread.new do
        call.call
      rescue Interrupt
        :interrupted
      end
      await { thread.status == "sleep" }
      interrupt == :raise ? thread.raise(Interrupt) : thread.kill
      assert thread.join(10), "#{name} goes on after #{interrupt}"
      assert_equal :interrupted, thread.value if interrupt == :raise
    ensure
      Process.kill(:CONT, DAEMON.pid)
    end
    Shmview.connect.ping
    assert_equal [Process.pid], seg.lock_status.parties.map(&:pid)
    seg.unlock
  end

  # If the object does not know the name of a phase, it does not call the daemon, because the thread
  # may hold the lock.
  def test_a_stale_view_asks_nobody
    seg = Shmview.create("seg", 100, layouts: { one: { A: "i" } }, phase: :one)
    late = Shmview.attach("seg")
    views = [late["A"], seg["A"]]
    seg.define(two: { A: "i" })
    seg.synchronize { seg.switch(:two) }
    complaints = -> { views.map { |view| assert_raises(Shmview::StaleView) { view[0] }.message[/ in (.*) now/, 1] } }
    Process.kill(:STOP, DAEMON.pid)
    thread = Thread.new { late.shared { complaints.call } }
    assert thread.join(20), "it waits for the daemon"
    assert_equal ["phase 2", "phase 2 ('two')"], thread.value
    Process.kill(:CONT, DAEMON.pid)
    assert_equal "two", late.phase
    assert_equal ["phase 2 ('two')"] * 2, complaints.call
  ensure
    Process.kill(:CONT, DAEMON.pid)
  end

  # Taking a lock never waits for the daemon: such a call would not end while the daemon is stopped.
  def test_the_death_of_an_owner_asks_nobody
    seg = Shmview.create("seg", 100, layouts: { one: { A: "i" } })
    late = Shmview.attach("seg")
    seg.define(two: { B: "i" })
    seg.synchronize { seg.switch(:two) }
    leave = ->(by) { by.lock.unlock(repaired: false) }
    phase = ->(by) { assert_raises(Shmview::OwnerDied) { by.lock(timeout: 0.2) }.then { |e| [e.generation, e.phase] } }
    leave.call(seg)
    Process.kill(:STOP, DAEMON.pid)
    thread = Thread.new { [phase.call(late), phase.call(seg), late.recover { |e| [e.generation, e.phase] }] }
    assert thread.join(20), "it waits for the daemon"
    assert_equal [[1, nil], [1, "two"], [1, nil]], thread.value
    Process.kill(:CONT, DAEMON.pid)
    assert_equal "two", late.phase
    leave.call(seg)
    assert_equal [1, "two"], phase.call(late)
    late.recover { nil }
  ensure
    Process.kill(:CONT, DAEMON.pid)
  end

  FIRST_CALLS = {
    lock: ->(seg) { seg.lock.unlock }, shared: ->(seg) { seg.shared { nil } }, try_lock: ->(seg) { seg.try_lock and seg.unlock },
    recover: ->(seg) { seg.recover { nil } }, lock_status: ->(seg) { seg.lock_status }, unlock: ->(seg) { seg.unlock },
    not_repaired: ->(seg) { seg.unlock(repaired: false) },
  }.freeze

  # The first call of a child attaches again. Other threads must run while it waits for the daemon,
  # and an interrupt must end the wait.
  FIRST_CALLS.each do |name, call|
    define_method(:"test_the_first_#{name}_of_a_child_waits_without_the_gvl") do
      seg = Shmview.create("seg", 100)
      seg.synchronize { nil }
      safety = Thread.new { sleep(20) && Process.kill(:CONT, DAEMON.pid) } # in case the child hangs
      said = in_child do
        Process.kill(:STOP, DAEMON.pid)
        thread = Thread.new do
          call.call(seg) && :done
        rescue Interrupt, Shmview::NotOwner => e
          e.class
        end
        await { thread.status != "run" }
        thread.raise(Interrupt)
        first = thread.value
        Process.kill(:CONT, DAEMON.pid)
        call.call(seg) if %i[unlock not_repaired].none?(name)
        [first, seg.synchronize { seg.lock_status.parties.map(&:pid) == [Process.pid] }]
      end
      assert_equal [Interrupt, true], said
    ensure
      safety&.kill&.join
      Process.kill(:CONT, DAEMON.pid)
    end
  end

  # Handles are freed with the GVL held, while another thread has the mutex and the daemon is stopped.
  def test_freed_handles_wait_for_nobody
    code = <<~RUBY
      at_exit { Process.kill(:CONT, #{DAEMON.pid}) }
      closed = Shmview.create("closed", 100)
      5.times { |n| Shmview.create("held\#{n}", 100) }
      3.times { Shmview::Connection.new }
      Process.kill(:STOP, #{DAEMON.pid})
      ping = Thread.new { closed.connection.ping }
      sleep 0.1
      closed.close
      GC.start
      p ping.alive?
      Process.kill(:CONT, #{DAEMON.pid})
      ping.join
    RUBY
    safety = Thread.new { sleep(20) && Process.kill(:CONT, DAEMON.pid) } # in case the program hangs
    assert_equal "true\n", run_ruby(code)
  ensure
    safety&.kill&.join
    Process.kill(:CONT, DAEMON.pid)
  end

  # The socket of a daemon that does not read is full, so close waits. An interrupt is not an error
  # there.
  def test_a_close_that_is_interrupted_is_no_failure
    connection = Shmview::Connection.new
    Shmview.create("seg", 100)
    all = Array.new(1000) { Shmview.attach("seg", access: :peek, connection: connection) }
    Process.kill(:STOP, DAEMON.pid)
    thread = Thread.new do
      all.each(&:close)
    rescue Interrupt
      :interrupted
    end
    closed = -> { all.count(&:closed?) }
    before = await("the wait") { (n = closed.call).positive? && sleep(0.1) && n == closed.call && n }
    thread.raise(Interrupt) if thread.alive?
    assert thread.join(10)
    assert_operator closed.call, :>=, before
    Process.kill(:CONT, DAEMON.pid)
    all.each(&:close)
    connection.close
  ensure
    Process.kill(:CONT, DAEMON.pid)
  end

  # Interrupts that raise nothing. The library must not send these calls twice.
  INTERRUPTS = {
    wakeup: ->(thread) { thread.wakeup },
    signal: ->(_) { Process.kill(:USR1, Process.pid) },
  }.freeze

  INTERRUPTS.each do |name, interrupt|
    define_method(:"test_a_#{name}_does_not_end_a_call_that_is_made_once") do
      main = Thread.current
      handled = 0
      was = trap(:USR1) { handled += 1 }
      seg = nil
      connection = Shmview::Connection.new
      calls = [-> { seg = Shmview.create("once", 100, lifetime: :manual, connection: connection) },
               -> { seg.define(late: { A: "i" }) }, -> { Shmview.remove("once", connection: connection) }]
      calls.each do |call|
        Process.kill(:STOP, DAEMON.pid)
        thread = Thread.new do
          await { main.status == "sleep" }
          5.times { sleep(0.06) && interrupt.call(main) }
          Process.kill(:CONT, DAEMON.pid)
        end
        call.call
        thread.join
      end
      assert_predicate handled, :positive? if name == :signal
      seg.close
      connection.close
    ensure
      Process.kill(:CONT, DAEMON.pid)
      trap(:USR1, was)
    end
  end

  # Makes the call, interrupts it five times without an exception, and then yields to another
  # thread. Returns the exception of the call.
  def interrupted_in(call)
    main = Thread.current
    handled = 0
    was = trap(:USR1) { handled += 1 }
    Process.kill(:STOP, DAEMON.pid)
    thread = Thread.new do
      5.times do |n|
        await { main.status == "sleep" }
        Process.kill(:USR1, Process.pid)
        await("the handler", seconds: 20) { handled > n }
      end
      yield main
    ensure
      Process.kill(:CONT, DAEMON.pid)
    end
    thread.report_on_exception = false
    begin
      call.call && nil
    rescue Interrupt, Shmview::Error => e
      e
    end
  ensure
    @over = true
    thread.join
    trap(:USR1, was)
  end

  # However many interrupts have raised nothing, one that raises ends the wait.
  def test_the_wait_ends_after_many_interrupts
    seg = Shmview.create("seg", 100)
    [-> { Shmview.connect.ping }, -> { Shmview.attach("seg") }, -> { seg.view("A", layout: "new") }].each do |call|
      @over = false
      found = interrupted_in(call) do |main|
        main.raise(Interrupt)
        await("its end", seconds: 20) { @over }
      end
      assert_kind_of Interrupt, found
    end
    assert_match(/no segment 'nobody'/, interrupted_in(-> { Shmview.attach("nobody") }) { nil }.message)
    assert_nil(interrupted_in(-> { Shmview.attach("seg") }) { nil })
  end

  # The child has only the thread that forks, and sends its own request.
  def test_a_handler_forks_during_a_call_that_is_made_once
    Process.kill(:STOP, DAEMON.pid)
    said = in_child do
      pid = parent = Process.pid
      trap(:USR1) { pid = fork }
      main = Thread.current
      Thread.new do
        await { main.status == "sleep" }
        Process.kill(:USR1, parent)
        await { pid != parent }
        Process.kill(:CONT, DAEMON.pid)
      end
      found = begin
        Shmview.create("forked", 100, lifetime: :manual) && :made
      rescue Shmview::Exists
        :exists
      end
      exit!(found == :made) if Process.pid != parent
      Process.wait(pid)
      Shmview.remove("forked")
      [found == :made, $?.success?]
    end
    assert_includes [[true, false], [false, true]], said
  ensure
    Process.kill(:CONT, DAEMON.pid)
  end

  # Both processes go on with the call, and each counts its own.
  WAITS = {
    wait: ->(seg, _) { seg.wait(change: 0) }, lock: ->(seg, _) { seg.synchronize { nil } },
    take: ->(_, stream) { stream.take { nil } },
    wait_any: ->(seg, stream) { Shmview.wait_any([:change, seg, 0], stream) },
  }.freeze

  # Waits in two processes, of which a handler forks one: the handler in the child yields, and gets a Thread or nil.
  # Another Thread of the parent holds the lock until the first change. Returns the exit status of the child.
  def fork_during(wait)
    in_child do
      seg = Shmview.create("waits", 100)
      stream = Shmview.create_stream("frames", history: 1, number: "i8")
      holder = Thread.new { seg.synchronize { seg.wait(change: 0) } }
      await { seg.lock_status.parties.any? }
      main = Thread.current
      pid = parent = Process.pid
      of_child = nil
      trap(:USR1) { of_child = yield(seg, stream, main) unless (pid = fork) }
      ended = Thread.new do
        await { main.status == "sleep" }
        Process.kill(:USR1, parent)
        await { pid != parent }
        Process.wait(pid)
        status = $?
        stream.loan { nil } # end the wait of this process, if the child has not
        seg.notify
        status.exitstatus || status.to_s
      end
      begin
        wait.call(seg, stream)
      rescue Shmview::Closed
        exit!(2)
      end
      if Process.pid != parent
        of_child.join
        [stream, seg].each(&:close)
        exit!(0)
      end
      holder.join
      ended.value
    end
  end

  WAITS.each do |name, wait|
    define_method(:"test_a_handler_forks_during_#{name}") do
      ended = fork_during(wait) do |seg, stream, main|
        Thread.new do
          await { main.status == "sleep" }
          used = { take: [stream], wait_any: [seg, stream] }.fetch(name, [seg])
          used.each do |object|
            object.close
            exit!(1)
          rescue Shmview::Busy
            nil
          end
          stream.loan { nil }
          seg.notify
        end
      end
      assert_equal 0, ended
    end

    define_method(:"test_a_handler_in_a_child_closes_what_#{name}_uses") do
      ended = fork_during(wait) do |seg, stream|
        stream.loan { nil } # ends the wait of the parent
        seg.notify
        [seg, stream].each(&:close)
        nil
      end
      assert_equal 2, ended
    end
  end

  # The daemon answers before the call has noticed the interrupt.
  def test_what_an_interrupted_call_has_made_is_given_back
    GC.disable
    connection = Shmview::Connection.new
    Shmview.create("old", 100)
    before = mappings
    calls = [->(i) { Shmview.create("new#{i}", 100, connection: connection) },
             ->(_) { Shmview.attach("old", connection: connection) }]
    (calls * 10).each_with_index do |call, i|
      Process.kill(:STOP, DAEMON.pid)
      thread = Thread.new do
        call.call(i)
      rescue Interrupt, Shmview::Disconnected
        nil
      end
      await { thread.status == "sleep" }
      thread.raise(Interrupt)
      Process.kill(:CONT, DAEMON.pid)
      assert_nil thread.value
      assert_equal before, mappings
    end
    await("the end of what was made") { DAEMON.objects.grep(/new/).empty? }
    connection.close
  ensure
    GC.enable
    Process.kill(:CONT, DAEMON.pid)
  end

  # The call takes the lock without the GVL, which this thread keeps until it has raised.
  def test_an_interrupt_comes_with_the_lock
    seg = Shmview.create("seg", 100)
    other = Shmview.attach("seg")
    roles = -> { other.lock_status.parties.map(&:role) }
    %i[synchronize shared recover lock].product([:raise, :kill]).each do |hold, interrupt|
      other.lock
      thread = Thread.new do
        seg.public_send(hold) { nil }
        seg.unlock if hold == :lock # the interrupt comes after the call
      rescue Interrupt
        nil
      end
      await { roles.call.grep(/waits/).any? }
      other.unlock
      nil while thread.alive? && roles.call.grep(/holds/).empty?
      interrupt == :raise ? thread.raise(Interrupt) : thread.kill
      thread.join
      assert other.try_lock, "#{hold} is left by #{interrupt}"
      other.unlock
    end
  end

  # A close that is refused because a Thread holds the lock changes nothing for that Thread.
  def test_the_holder_notices_nothing_of_a_close
    seg = Shmview.create("seg", 100)
    view = seg.buf
    holder = Thread.new do
      seg.synchronize do
        Thread.stop
        2000.times { seg.synchronize { view[0] } }
        Thread.current[:done] = true
        Thread.stop
      end
    end
    holder.report_on_exception = false
    await { holder.status == "sleep" }
    holder.wakeup
    assert_raises(Shmview::Busy) { seg.close } until holder[:done] || !holder.alive?
    await { holder.stop? }
    holder.wakeup if holder.alive?
    holder.value
    assert_empty seg.lock_status.parties
    seg.close
  end

  def test_a_child_has_none_of_the_calls_of_other_threads
    seg = Shmview.create("seg", 100)
    waiter = Thread.new { seg.wait(change: 0) }
    await { waiter.status == "sleep" && (begin; seg.close; rescue Shmview::Busy; true; end) }
    assert in_child { seg.close.nil? }
    seg.notify
    assert_equal 1, waiter.value
  end

  def test_a_child_has_none_of_the_calls_over_a_connection
    connection = Shmview::Connection.new
    Process.kill(:STOP, DAEMON.pid)
    waiters = [-> { Shmview.list(connection:) }, -> { Shmview.create("seg", 100, connection:, &:size) }].map { |call| Thread.new(&call) }
    await { waiters.all? { |waiter| waiter.status == "sleep" } }
    assert_raises(Shmview::Busy) { connection.close }
    assert in_child { connection.close.nil? }
    Process.kill(:CONT, DAEMON.pid)
    assert_equal 100, waiters.map(&:value).last
    connection.close
  ensure
    Process.kill(:CONT, DAEMON.pid)
  end

  def test_a_handler_in_a_child_closes_the_connection_of_a_call
    connection = Shmview::Connection.new
    said = in_child do
      main = Thread.current
      pid = parent = Process.pid
      trap(:USR1) { (pid = fork) || connection.close }
      Process.kill(:STOP, DAEMON.pid)
      ended = Thread.new do
        await { main.status == "sleep" }
        Process.kill(:USR1, parent)
        await { pid != parent }
        Process.wait2(pid)[1].exitstatus
      ensure
        Process.kill(:CONT, DAEMON.pid)
      end
      found = Shmview.list(connection:) rescue $!.class
      exit!(found == Shmview::Closed ? 2 : 3) if Process.pid != parent
      [found, ended.value]
    end
    assert_equal [[], 2], said
    connection.close
  ensure
    Process.kill(:CONT, DAEMON.pid)
  end

  def test_a_child_knows_nothing_of_what_other_threads_held
    seg = Shmview.create("seg", 100)
    queue = Queue.new
    threads = Array.new(3) do
      Thread.new do
        seg.synchronize { nil }
        queue.pop
      end
    end
    await { queue.num_waiting == 3 }
    rounds = in_child do
      Array.new(5) do
        Array.new(4) { Thread.new { seg.synchronize { GC.start } } }.each(&:join).size
      end
    end
    assert_equal [4] * 5, rounds
    3.times { queue << nil }
    threads.each(&:join)
  end
end
