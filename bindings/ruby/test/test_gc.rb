# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

require "fiddle"
require "objspace"
require_relative "helper"

# The collector: all operations run while it collects at every allocation (stress) and moves objects
# (compaction). Nothing may be lost, and nothing may leak.
class TestGC < ShmviewTest
  MV = Shmview::MemoryView

  # Uses all kinds of objects and errors in one test.
  def everything(name)
    seg = Shmview.create(name, layouts: { one: { A: ["i4", [2, 3]] }, two: { B: "T{h:x:d:y:}" } }, phase: :one)
    a = seg["A"]
    a[] = [[1, 2, 3], [4, 5, 6]]
    table = [a.to_a, a[1, 1..].to_a, a.map(&:sum), a.transpose[0].to_a, a.get_string.unpack("l*"), a.summary.sum]
    seen = [MV, Fiddle::MemoryView].map { |kind| kind.new(a).then { |mv| [mv[1, 2], mv.format].tap { mv.release } } }
    wrapped = Shmview.wrap(Fiddle::Pointer["\1\2\3\4"]).then { |w| w.cast("h").to_a.tap { w.segment.close } }
    errors = [-> { a[9, 9] }, -> { a[0, 0] = 2**40 }, -> { seg.cast("quatsch") }, -> { seg["none"] }].map do |use|
      use.call
    rescue Shmview::Error => e
      [e.class, e.message]
    end
    seg.synchronize { seg.switch("two") }
    stale = begin
      a[0]
    rescue Shmview::StaleView
      true
    end
    b = seg["B"]
    b[] = [3, 0.5]
    found = [table, seen, wrapped, errors, stale, b[], seg.lock_status.parties, b == b.to_readonly]
    seg.close
    found
  end

  def test_stress
    calm = everything("calm")
    GC.stress = true
    stressed = everything("tense")
    GC.stress = false
    assert_equal calm.inspect.gsub("calm", "x"), stressed.inspect.gsub("tense", "x")
  ensure
    GC.stress = false
  end

  def test_compaction
    calm = everything("calm")
    seg = Shmview.create("seg", layouts: { one: { A: ["i4", 4] } })
    views = 200.times.map { |i| seg.cast("B", 1, offset: i % 16) }
    memory_views = views.each_slice(4).map { |v, _| MV.new(v) }
    fiddles = views.each_slice(4).map { |v, _| Fiddle::MemoryView.new(v) }
    wrapped = 50.times.map { |i| Shmview.wrap(Fiddle::Pointer[i.to_s * 10]) }
    seg.lock
    3.times do |round|
      GC.verify_compaction_references(toward: :empty, double_heap: round.zero?)
      seg.buf[3] = round
      assert_equal [round], views.each_with_index.filter_map { |v, i| v[0] if i % 16 == 3 }.uniq
      assert_equal [seg], views.map(&:segment).uniq
      assert_same seg.connection, Shmview.connect
      assert_equal views.each_slice(4).map(&:first), memory_views.map(&:obj)
      assert_equal memory_views.map { |mv| mv[0] }, fiddles.map { |mv| mv[0] }
      assert_equal wrapped.map { |w| w[0].chr }, wrapped.each_index.map { |i| i.to_s[0] }
      assert_equal "A", seg["A"].then { "A" } # the frozen names of the layouts have moved
      assert_equal calm.inspect.gsub("calm", "x"), everything("round#{round}").inspect.gsub("round#{round}", "x")
    end
    seg.unlock
    [memory_views, fiddles].flatten.each(&:release)
    wrapped.each { |w| w.segment.close }
  end

  # The bytes of a short String are in its slot, so a String whose bytes are used must not move.
  def test_byte_arrays_do_not_move
    texts = Array.new(1000) { |i| "text #{i}" }
    memory_views = texts.map { |text| MV.init_as_byte_array(text) }
    GC.verify_compaction_references(toward: :empty, double_heap: true)
    others = Array.new(100_000) { |i| i.to_s * 3 }
    assert_equal texts, memory_views.map { |mv| Array.new(mv.byte_size) { |i| mv[i] }.pack("C*") }
    assert_equal texts, memory_views.map(&:obj)
    assert_equal 100_000, others.size
    memory_views.each(&:release)
  end

  def test_compaction_while_it_goes_on
    GC.auto_compact = true
    calm = everything("calm")
    20.times { |i| assert_equal calm.inspect.gsub("calm", "x"), everything("auto").inspect.gsub("auto", "x"), i.to_s }
  ensure
    GC.auto_compact = false
  end

  # Old objects refer to young ones. A reference that was stored without a write barrier is lost at
  # the next minor collection.
  def test_write_barriers
    seg = Shmview.create("seg", 100)
    4.times { GC.start } # it is old now
    seg.define(one: { A: "i" }, two: { B: "i" })
    memory_view = MV.allocate
    4.times { GC.start }
    memory_view.send(:initialize, seg.cast("i", 2))
    1000.times { String.new("x" * 50) }
    GC.start(full_mark: false)
    assert_equal [0, 0, 0], [seg["A"][], seg["B"][], memory_view.obj[0]]
    memory_view.release
  end

  # Exported objects are kept until their MemoryViews are released.
  def test_exported_objects_are_kept
    make = -> { Fiddle::MemoryView.new(Shmview.create(nil, 100).buf.tap { |v| v[7] = 7 }) }
    kept = 20.times.map { make.call }
    GC.start
    assert_equal [7], kept.map { |mv| mv[7] }.uniq
    kept.each(&:release)
  end

  def rss = File.read("/proc/self/statm").split[1].to_i * 4096

  ROUNDS = SANITIZED ? 3_000 : 100_000

  # The heap of the interpreter may grow in one of the rounds; a leak makes it grow in each of them.
  def test_nothing_grows
    seg = Shmview.create("seg", 4096)
    view = seg.cast("T{h:a:(3)f:b:}", [4, 4])
    part = view[(-1..) % -1]
    actions = {
      fiddle: -> { Fiddle::MemoryView.new(part).release }, ours: -> { MV.new(view).release },
      refused: -> { MV.new(part, MV::ROW_MAJOR) rescue nil }, lock: -> { seg.lock.unlock },
      reading: -> { seg.reading(&:valid?) }, dlpack: -> { Shmview.from_dlpack(seg.buf.to_dlpack).segment.close }
    }
    before = [descriptors, mappings]
    actions.each do |name, action|
      sizes = 3.times.map do
        ROUNDS.times { action.call }
        GC.start
        rss
      end
      grown = sizes.each_cons(2).map { |earlier, later| later - earlier }
      assert_operator grown.min, :<, 4 << 20, "#{name}: #{sizes}" unless SANITIZED
    end
    assert_equal before, [descriptors, mappings]
    seg.close # no MemoryView is left
  end

  def test_no_descriptors_or_mappings_are_left
    before = [descriptors, mappings]
    (SANITIZED ? 50 : 1000).times do |i|
      seg = Shmview.create(nil, 4096)
      view = seg.buf
      i.even? ? seg.close : view.release
    end
    collect
    assert_equal before, [descriptors, mappings]
    50.times { Shmview::Connection.new(DAEMON.socket) }
    await do
      GC.start
      before == [descriptors, mappings]
    end
  end

  def test_sizes_are_told
    seg = Shmview.create("seg", 100)
    [seg, seg.buf, seg.connection].each { |object| assert_operator ObjectSpace.memsize_of(object), :>, 40 }
  end
end
