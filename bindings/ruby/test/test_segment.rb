# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

require_relative "helper"

# Segments: opening, closing, layouts, phases.
class TestSegment < ShmviewTest
  LAYOUTS = { float: { A: ["f4", 1000], B: ["f4", [10, 10]] }, int: { D: ["i2", 2000], E: "i8" } }.freeze

  def test_create_and_attach
    seg = Shmview.create("demo", layouts: LAYOUTS)
    assert_equal ["demo", 4400, :write, false], [seg.name, seg.size, seg.access, seg.closed?]
    assert_equal "#<Shmview::Segment 'demo', 4400 bytes, write>", seg.inspect
    seg.synchronize do |given|
      assert_same seg, given
      seg.switch(:float)
      seg["A"][0..2] = [1, 2, 3]
    end
    other = Shmview.attach("demo")
    assert_equal 1, other.wait(phase: "float", timeout: 10)
    other.shared { assert_equal [1.0, 2.0, 3.0], other["A"][0..2].to_a }
    assert_equal 3.0, other.view("A", layout: :float)[2]
    [seg, other].each(&:close)
    assert_raises(Shmview::NotFound) { Shmview.attach("demo") }
  end

  def test_owner_died
    seg = Shmview.create("seg", 100)
    with_holder("seg", "seg.buf[0] = 1") do |pid, kill|
      refute seg.try_lock
      assert_raises(Shmview::TimedOut) { seg.lock(timeout: 0.01) }
      kill.call
      died = assert_raises(Shmview::OwnerDied) { seg.synchronize { flunk } }
      assert_equal ["seg", pid], [died.name, died.pid]
      refute seg.lock_status.held
      seg.recover { |found| assert_equal pid, found.pid }
      seg.synchronize { assert_equal 1, seg.buf[0] }
    end
    seg.close
  end
end
