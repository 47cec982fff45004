# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

require_relative "helper"

# Optimistic reads: a block without the lock, and whether an owner was inside since its beginning.
class TestReading < ShmviewTest
  def setup
    super
    @seg = Shmview.create("seg", 16)
    @numbers = @seg.cast("q")
  end

  def test_a_quiet_segment
    @seg.synchronize { @numbers[] = [1, 2] }
    copy = @seg.reading do |r|
      assert_instance_of Shmview::Reading, r
      numbers = @numbers.to_a
      numbers if r.valid? && r.valid?
    end
    assert_equal [1, 2], copy
    assert_raises(ZeroDivisionError) { @seg.reading { 1 / 0 } }
    assert_raises(LocalJumpError) { @seg.reading }
    assert_raises(NoMethodError) { Shmview::Reading.new }
  end

  def test_a_writer_invalidates
    other = Shmview.attach("seg")
    @seg.reading do |r|
      other.shared { assert_predicate r, :valid? }
      other.synchronize { refute_predicate r, :valid? }
      refute_predicate r, :valid?
    end
    other.lock
    @seg.reading { |r| refute_predicate r, :valid? }
    other.unlock
    @seg.reading { |r| assert_predicate r, :valid? }
    other.lock.unlock(repaired: false)
    @seg.reading { |r| refute_predicate r, :valid? } # an owner died inside: take the lock
    @seg.recover { nil }
    @seg.reading { |r| assert_predicate r, :valid? }
  end

  # A writer comes between two elements: the copy mixes two states, and is not valid.
  def test_a_copy_that_mixes_two_states
    pair = Shmview.attach("seg").cast("q")
    read = lambda do |between|
      @seg.reading do |r|
        first = @numbers[0]
        between.call
        [first, @numbers[1], r.valid?]
      end
    end
    write = ->(n) { pair.segment.synchronize { pair[] = [n, n] } }
    assert_equal [0, 5, false], read.call(-> { write.call(5) })
    assert_equal [5, 5, true], read.call(-> {})
  end

  def test_errors
    kept = nil
    @seg.reading { |r| kept = r }
    @seg.close
    assert_raises(Shmview::Closed) { kept.valid? }
    assert_raises(Shmview::Closed) { @seg.reading { flunk } }
    assert_raises(Shmview::NoLock) { Shmview.create(nil, 1, lock: false).reading { flunk } }
    seg = Shmview.create("peeked", 1)
    assert_raises(Shmview::NoLock) { Shmview.attach("peeked", access: :peek).reading { flunk } }
    seg.close
  end

  def test_a_child_reads
    @seg.synchronize { @numbers[] = [3, 4] }
    assert_equal([3, 4], in_child { @seg.reading { |r| @numbers.to_a.then { |c| c if r.valid? } } })
  end

  def test_stress
    GC.stress = true
    assert(@seg.reading { |r| @numbers.to_a && r.valid? })
  ensure
    GC.stress = false
  end
end
