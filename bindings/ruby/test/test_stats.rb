# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

require_relative "helper"

# list, exist?, remove and stats: segments by name, without attaching them.
class TestStats < ShmviewTest
  def test_names
    assert_empty Shmview.list
    segments = %w[b a].map { |name| Shmview.create(name, 100) }
    assert_equal %w[b a], Shmview.list
    assert_equal [true, true, false], ["a", :b, "c"].map { |name| Shmview.exist?(name) }
    assert_nil Shmview.remove("a")
    assert_equal [%w[b], false], [Shmview.list, Shmview.exist?("a")]
    error = assert_raises(Shmview::NotFound) { Shmview.stats("a") }
    assert_equal ["a", 3, "no segment 'a'"], [error.name, error.code, error.message]
    refute Shmview.exist?("no/name")
    segments.each(&:close)
    assert_empty Shmview.list
  end

  def test_a_segment
    before = Time.now
    seg = Shmview.create("seg", 5000, layouts: { one: { A: "i4" } }, phase: :one, lifetime: :manual)
    stats = Shmview.stats("seg")
    assert_kind_of Shmview::SegmentStats, stats
    assert_equal ["seg", 5000, true, true, :manual, 0o600, Process.uid, Process.gid, 1, 1, 1, "one", 0],
                 stats.values_at(0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 16)
    assert_in_delta before.to_f, stats.created.to_f, 60 if stats.created
    assert_operator stats.changes, :>=, 1
    seg.synchronize do
      party, = Shmview.stats("seg").parties
      assert_equal [Process.pid, Process.uid, :write, :exclusive, nil],
                   [party.pid, party.uid, party.access, party.holds, party.waits]
      assert_match(/\Aruby/, party.command)
    end
    party, = Shmview.stats(:seg).parties
    assert_equal [nil, nil], [party.holds, party.since]
    plain = Shmview.create("plain", 1, lock: false)
    assert_equal [false, nil, :attached], Shmview.stats("plain").then { |s| [s.has_lock, s.phase, s.lifetime] }
    [seg, plain].each(&:remove)
  end

  def test_labels
    seg = Shmview.create("seg", 1, label: "of the night run, µ")
    bare = Shmview.create("bare", 1)
    assert_equal ["of the night run, µ", ""], %w[seg bare].map { |name| Shmview.stats(name).label }
    ["", "x" * 64, "a\nb"].each do |wrong|
      error = assert_raises(Shmview::Invalid) { Shmview.create("other", 1, label: wrong) }
      assert_match(/a label has 1 to 63 bytes/, error.message)
    end
    [seg, bare].each(&:close)
  end

  def test_the_daemon
    Shmview.create("seg", 5000)
    stats = Shmview.stats
    assert_equal [Shmview::VERSION, DAEMON.pid, %w[seg]], [stats.version, stats.pid, stats.segments.map(&:name)]
    assert_operator stats.started, :<=, Time.now
    assert_operator stats.memory_free, :<=, stats.memory_limit
    assert_operator stats.uptime, :>, 0
  end

  def test_a_given_connection
    connection = Shmview::Connection.new
    Shmview.create("seg", 10)
    assert_equal [%w[seg], true, 10], [Shmview.list(connection: connection), Shmview.exist?("seg", connection: connection),
                                       Shmview.stats("seg", connection: connection).size]
    connection.close
    assert_raises(Shmview::Closed) { Shmview.list(connection: connection) }
    assert_raises(TypeError) { Shmview.list(connection: 5) }
  end

  # The wait for the daemon releases the GVL, and an interrupt ends it.
  def test_an_interrupt_ends_the_wait
    Process.kill(:STOP, DAEMON.pid)
    thread = Thread.new do
      Shmview.list
    rescue Interrupt
      :interrupted
    end
    await { thread.status == "sleep" }
    thread.raise(Interrupt)
    assert_equal :interrupted, thread.value
  ensure
    Process.kill(:CONT, DAEMON.pid)
    Shmview.connect.ping # connects again
  end

  def test_stress
    seg = Shmview.create("seg", 100)
    GC.stress = true
    assert_equal ["seg", %w[seg]], [Shmview.stats(seg.name).name, Shmview.list]
  ensure
    GC.stress = false
  end
end
