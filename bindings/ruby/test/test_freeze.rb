# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

require_relative "helper"

# Segment#freeze_bytes: nobody can write any longer, also not through Views that exist.
class TestFreeze < ShmviewTest
  def make
    seg = Shmview.create("w", 80, backing: :sealed)
    seg.buf[0..2] = [1, 2, 3]
    seg
  end

  def frozen = Shmview.stats("w").frozen

  def test_nobody_writes
    seg = make
    view = seg.buf
    assert_equal [false, nil, false], [seg.bytes_frozen?, frozen, view.readonly?]
    assert_same seg, seg.freeze_bytes
    assert_equal [true, :all, :read], [seg.bytes_frozen?, frozen, seg.access]
    [view, seg.buf].each do |v|
      assert_equal [1, 2, 3, 0], v[0..3].to_a
      assert_predicate v, :readonly?
      assert_raises(Shmview::ReadOnly) { v[0] = 9 }
      assert_raises(Shmview::ReadOnly) { v.fill(9) }
      assert_includes v.inspect, "read-only"
    end
    refute_predicate seg, :frozen? # the object is as before
    assert_raises(Shmview::ReadOnly) { Shmview.attach("w") }
    Shmview.attach("w", access: :peek) { |other| assert_predicate other, :bytes_frozen? }
    seg.synchronize { assert_equal 1, seg.buf[0] }
    seg.freeze_bytes
    seg.close
    assert_raises(Shmview::Closed) { seg.freeze_bytes }
    assert_raises(Shmview::Closed) { seg.bytes_frozen? }
  end

  # The conversion of an index may run any code.
  def test_an_index_that_freezes
    { [8] => ->(v, i) { v[i] = 1 }, [2, 4] => ->(v, i) { v[i] = [1, 2, 3, 4] } }.each do |shape, set|
      seg = make
      view = seg.cast("i2", shape)
      index = Object.new
      index.define_singleton_method(:to_int) { seg.freeze_bytes && 0 }
      assert_raises(Shmview::ReadOnly) { set.call(view, index) }
      assert_predicate seg, :bytes_frozen?
      seg.close
    end
  end

  def test_future
    seg = make
    seg.freeze_bytes(future: true)
    seg.buf[0] = 7
    assert_equal [false, :future, :write], [seg.bytes_frozen?, frozen, seg.access]
    assert_match(/nobody else can begin/, assert_raises(Shmview::ReadOnly) { Shmview.attach("w") }.message)
    seg.freeze_bytes
    assert_predicate seg, :bytes_frozen?
    seg.close
  end

  def test_refusals
    seg = make
    other = Shmview.attach("w")
    error = assert_raises(Shmview::Busy) { seg.freeze_bytes }
    assert_includes error.message, "that of process #{Process.pid} ("
    seg.buf[0] = 9
    other.close
    error = assert_raises(Shmview::Invalid) { Shmview.create("file", 8, backing: :file).freeze_bytes }
    assert_includes error.message, "backing is file"
    assert_raises(Shmview::ReadOnly) { Shmview.attach("w", readonly: true).freeze_bytes }
    seg.freeze_bytes
    seg.close
  end

  # The kernel cannot freeze what a child maps, so that the library tries for a while.
  def test_a_lock_is_given_back_meanwhile
    seg = make
    read, write = IO.pipe
    child = fork { write.close || read.read } # until this process hangs up, or ends
    freezer = nil
    seg.synchronize do
      freezer = Thread.new { assert_raises(Shmview::Busy) { seg.freeze_bytes } }
      Thread.pass while freezer.alive? && !seg.closed?
    end
    assert_includes freezer.value.message, "process #{child} ("
    refute_predicate seg.lock_status, :held
    Process.kill(:KILL, child)
    Process.wait(child)
    [read, write].each(&:close)
    seg.freeze_bytes
    seg.close
  end
end
