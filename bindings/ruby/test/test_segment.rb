# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

require_relative "helper"

# Segments: creating, attaching, closing, errors, layouts, phases and changes.
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
    assert_equal ["demo", "#<Shmview::Segment 'demo', closed>"], [seg.name, seg.inspect]
    assert_raises(Shmview::Closed) { seg.remove }
    assert_raises(Shmview::NotFound) { Shmview.attach("demo") }
  end

  def test_placement
    nothing = { huge: nil, huge_by: nil, huge_missing: nil, huge_bytes: 0, numa: nil, nodes: [] }
    Shmview.create("demo", 1) { |seg| assert_equal nothing, seg.placement }
    Shmview.create("demo", 1, huge: true) do |seg|
      assert_equal nothing.merge(huge: :wanted, huge_missing: :small), seg.placement
    end
    [:local, :interleaved, 0].each do |numa|
      Shmview.create("demo", 1, numa: numa) { |seg| assert_equal numa == 0 ? :node : numa, seg.placement[:numa] }
    end
    error = assert_raises(Shmview::NoSpace) { Shmview.create("demo", 1, huge: :required) }
    assert_match(/requires huge pages: it is smaller/, error.message)
    assert_raises(ArgumentError) { Shmview.create("demo", 1, huge: :yes) }
    assert_raises(ArgumentError) { Shmview.create("demo", 1, numa: :far) }
    assert_raises(Shmview::Invalid) { Shmview.create("demo", 1, numa: 63) }
  end

  # How many pages of the segment are in the page table of this process.
  def present(segment)
    of = File.read("/proc/self/smaps").split(/^(?=\h+-\h+ )/).find { |map| map.lines[0].end_with?("/#{segment.name}\n") }
    of[/^Rss: +(\d+) kB/, 1].to_i / 4
  end

  def test_populate
    [1, 3, 300].each do |threads|
      Shmview.create("demo", 1 << 20) do |seg|
        assert_equal 0, present(seg)
        assert_same seg, seg.populate(threads: threads)
        assert_operator present(seg), :>=, 240 # of 256: the kernel may take some out when it looks for unused memory
        assert_raises(ArgumentError) { seg.populate(threads: 0) }
      end
    end
    seg = Shmview.create("demo", 1, &:itself)
    assert_raises(Shmview::Closed) { seg.populate }
  end

  def test_blocks_close
    given = Shmview.create("demo", 10) do |seg|
      assert_equal 0, Shmview.attach("demo", readonly: true) { |other| other.buf.to_a.sum }
      seg
    end
    assert_predicate given, :closed?
    error = assert_raises(Shmview::Closed) { given.size }
    assert_equal "the segment is closed; open it again", error.message
    assert_raises(ZeroDivisionError) { Shmview.create("demo", 10) { 1 / 0 } }
    assert_raises(Shmview::NotFound) { Shmview.attach("demo") }
    given.close
  end

  def test_errors_say_what_they_are_about
    seg = Shmview.create("demo", 100)
    error = assert_raises(Shmview::Exists) { Shmview.create("demo", 100) }
    assert_equal [4, "demo", 100, { name: "demo", size: 100 }], [error.code, error.name, error[:size], error.facts]
    error = assert_raises(Shmview::NoSpace) { Shmview.create("huge", 1 << 50) }
    assert_equal ["huge", 1 << 50], [error.name, error[:size]]
    assert_operator error.limit, :>=, error.free
    assert_raises(Shmview::Invalid) { Shmview.create("no/name", 1) }
    assert_raises(Shmview::Invalid) { Shmview.create("zero", 0) }
    assert_raises(ArgumentError) { Shmview.create("less", -1) }
    assert_raises(ArgumentError) { Shmview.create("none") }
    assert_raises(ArgumentError) { Shmview.create("x", 1, lifetime: :never) }
    assert_raises(ArgumentError) { Shmview.attach("demo", readonly: true, access: :write) }
    assert_raises(Shmview::NotFound) { Shmview.attach("nobody", timeout: 0.01) }
    error = assert_raises(Shmview::NoDaemon) { Shmview.connect("/nowhere/socket") }
    assert_equal "/nowhere/socket", error[:path]
    assert_raises(Shmview::NoLock) { Shmview.attach("demo", access: :peek).synchronize { flunk } }
    assert_raises(Shmview::ReadOnly) { Shmview.attach("demo", readonly: true).buf[0] = 1 }
    assert_raises(NoMethodError) { Shmview::Segment.new }
    assert_raises(NoMethodError) { Shmview::View.new }
    assert_raises(NoMethodError) { seg.dup.size } if seg.respond_to?(:initialize_copy)
  end

  # Every error of the library has a class, and each class one of its numbers.
  def test_every_error_has_a_class
    header = File.read(File.join(ENV.fetch("SHMVIEW_SOURCE_DIR"), "include/shmview/error.h"))
    numbers = header.scan(/X\([A-Z_]+, (\d+),/).flatten.map(&:to_i)
    classes = Shmview.constants.map { |name| Shmview.const_get(name) }
                     .select { |c| c.is_a?(Class) && c < Shmview::Error }
    assert_equal numbers.sort, classes.map { |c| c::CODE }.reject(&:zero?).sort
  end

  def test_lifetimes
    Shmview.create("stays", 10, lifetime: :manual).close
    Shmview.remove("stays")
    assert_raises(Shmview::NotFound) { Shmview.remove("stays") }
    connection = Shmview::Connection.new(DAEMON.socket)
    seg = Shmview.create("mine", 10, lifetime: :creator, connection: connection)
    assert_same connection, seg.connection
    assert_match(/1 segments/, assert_raises(Shmview::Busy) { connection.close }.message)
    seg.close
    connection.close
    assert_predicate connection, :closed?
    assert_raises(Shmview::Closed) { connection.ping }
  end

  def test_backings
    Shmview.create("sealed", 5000, backing: :sealed) do |seg|
      assert_equal :sealed, Shmview.stats("sealed").backing
      seg.synchronize { seg.buf[0] = 7 }
      assert_equal 7, (Shmview.attach("sealed") { |other| other.buf[0] })
    end
    Shmview.create("file", 10) { assert_equal :file, Shmview.stats("file").backing }
    assert_raises(ArgumentError) { Shmview.create("wood", 1, backing: :wood) }
    assert_raises(Shmview::NoSpace) { Shmview.create("big", 1 << 50, backing: "sealed") }
  end

  def test_own_memory
    Shmview.create("own", 5000, own_memory: true) do |seg|
      assert_equal [:sealed, Process.euid], Shmview.stats("own").then { |s| [s.backing, s.paid_by] }
      seg.synchronize { seg.buf[0] = 7 }
      assert_equal 7, (Shmview.attach("own", readonly: true) { |other| other.buf[0] })
    end
    Shmview.create("other", 10) { assert_nil Shmview.stats("other").paid_by }
    assert_match(/always sealed/, assert_raises(Shmview::Invalid) do
      Shmview.create("file", 1, backing: :file, own_memory: true)
    end.message)
    assert_raises(Shmview::NoSpace) { Shmview.create("big", 1 << 50, own_memory: true) }
  end

  def test_attach_waits_for_its_creation
    waiter = Thread.new { Shmview.attach("late", timeout: 60, &:size) }
    Thread.pass until waiter.stop?
    Shmview.create("late", 123) { assert_equal 123, waiter.value }
  end

  def test_layouts
    seg = Shmview.create(nil, 4096)
    assert_same seg, seg.define(one: { x: "f8", y: ["i2", [2, 3]], z: ["c", 4, 100] },
                                two: { m: { format: "i4", shape: [2, 2], strides: [4, 8], readonly: true } })
    x, y, z = %w[x y z].map { |name| seg[name] }
    assert_equal [[0, []], [8, [2, 3]], [100, [4]]], [x, y, z].map { |v| [v.offset, v.shape] }
    m = seg[:m]
    assert_equal [[4, 8], true, true], [m.strides, m.readonly?, m.column_major?]
    error = assert_raises(Shmview::NoLayout) { seg.view("x", layout: "three") }
    assert_equal %w[three x], [error[:layout], error[:view]]
    assert_raises(Shmview::NoLayout) { seg["w"] }
    assert_raises(Shmview::LayoutExists) { seg.define(one: { a: "b" }) }
    assert_raises(Shmview::FormatError) { seg.define(bad: { a: "quatsch" }) }
    assert_raises(Shmview::Bounds) { seg.define(bad: { a: ["f8", 1000] }) }
    assert_match(/unknown: size/, assert_raises(ArgumentError) { seg.define(bad: { a: { format: "b", size: 3 } }) }.message)
    assert_match(/view 'a': .* format must be there; unknown: none/, assert_raises(ArgumentError) { seg.define(bad: { a: { shape: 3 } }) }.message)
    [[], ["b", 1, 0, 1]].each do |view|
      error = assert_raises(ArgumentError) { seg.define(bad: { a: view }) }
      assert_equal "view 'a': [format, shape, offset], not #{view.inspect}", error.message
    end
    refute_includes seg.layouts.keys.map(&:to_s), "bad"
    assert_raises(Shmview::ReadOnly) { Shmview.attach(seg.name, readonly: true).define(four: { a: "b" }) }
  end

  # If a layout cannot be declared, create leaves no segment.
  def test_create_is_whole_or_not_at_all
    assert_raises(Shmview::Bounds) { Shmview.create("half", 8, layouts: LAYOUTS, lifetime: :manual) }
    assert_raises(Shmview::NotFound) { Shmview.attach("half") }
  end

  def test_phases_make_views_stale
    seg = Shmview.create("demo", layouts: LAYOUTS)
    assert_nil seg.phase
    assert_equal [0, 1], [seg.generation, seg["A"][0] = 1]
    assert_raises(Shmview::NotOwner) { seg.switch("float") }
    seg.synchronize { seg.switch("float") }
    a = seg["A"]
    plain = seg.cast("f4", 1)
    assert_equal ["float", 1, 1, false, nil], [seg.phase, seg.generation, a.generation, a.stale?, plain.generation]
    seg.synchronize { seg.switch("int") }
    assert_predicate a, :stale?
    stale = /of phase 1 of 'demo', which is in phase 2 \('int'\)/
    [-> { a[0] }, -> { a[0] = 1 }, -> { a.to_a }, -> { a.each { flunk } }, -> { a.get_string }, -> { a == a.to_a }, -> { a[1..] },
     -> { a.fill(1) }, -> { seg.buf[0, 0] = a }].each_with_index do |use, i|
      error = assert_raises(Shmview::StaleView, Shmview::Bounds, "use #{i}") { use.call }
      assert_match stale, error.message if error.is_a?(Shmview::StaleView)
    end
    assert_equal 1.0, plain[0]
    assert_raises(Shmview::NoLayout) { seg["A"] }
    seg.synchronize { assert_raises(Shmview::NoLayout) { seg.switch("none") } }
    # the view becomes stale within its own block
    seg.synchronize do
      seg.switch("float")
      again = seg["A"]
      assert_raises(Shmview::StaleView) { again.each { seg.switch("int") } }
    end
  end

  def test_changes
    seg = Shmview.create("demo", layouts: LAYOUTS)
    seen = seg.change
    assert_same seg, seg.notify
    assert_equal seen + 1, seg.wait(change: seen)
    seg.notify(one: true)
    assert_equal seen + 2, seg.change
    assert_raises(Shmview::TimedOut) { seg.wait(timeout: 0) }
    assert_raises(Shmview::TimedOut) { seg.wait(change: seg.change, timeout: 0.01) }
    assert_raises(ArgumentError) { seg.wait(change: 1, phase: "float") }
    assert_raises(ArgumentError) { seg.wait(change: -1) }
    assert_raises(ArgumentError) { seg.wait(timeout: -1) }
    error = assert_raises(Shmview::NoLayout) { seg.wait(phase: "none", timeout: 1) }
    assert_equal "none", error[:layout]
    seg.synchronize { seg.switch("float") }
    assert_equal 1, seg.wait(phase: :float, generation: 0)
    error = assert_raises(Shmview::TimedOut) { seg.wait(generation: 1, timeout: 0) }
    assert_equal({ name: seg.name }, error.facts)
    plain = Shmview.create(nil, 10, lock: false)
    assert_raises(Shmview::NoLock) { plain.wait(timeout: 1) }
  end

  def test_on_change_is_an_enumerator
    seg = Shmview.create("demo", 10)
    other = Shmview.attach("demo")
    changes = seg.on_change
    assert_kind_of Enumerator, changes
    found = []
    reader = Thread.new { changes.each { |n| found << n; break found if found.size == 2 } }
    until reader.join(0.005)
      other.notify # at least two, whenever the reader begins to wait
    end
    assert_operator found[0], :<, found[1]
    assert_raises(Shmview::TimedOut) { seg.on_change(timeout: 0.01).first }
    seen = seg.change
    lazily = seg.on_change.lazy.map { |n| n - seen }
    notifier = Thread.new { 3.times { other.notify } until Thread.current[:done] }
    assert_operator lazily.first, :>, 0
    notifier[:done] = true
    notifier.join
  end

  def test_change_io
    seg = Shmview.create("demo", 10)
    io = seg.change_io
    begin
      refute IO.select([io], nil, nil, 0)
      Shmview.attach("demo").notify
      assert IO.select([io], nil, nil, 60)
      io.read_nonblock(100)
      assert_equal 1, seg.change
    ensure
      io.close
    end
    assert_equal seg.change_io.fileno, seg.change_io.fileno
  end

  def test_closing
    seg = Shmview.create("demo", 100)
    view = seg.buf
    seg.synchronize { assert_raises(Shmview::Busy) { seg.close } }
    thread = Thread.new { seg.wait }
    await { thread.stop? }
    assert_match(/1 threads are in calls/, assert_raises(Shmview::Busy) { seg.close }.message)
    seg.notify until thread.join(0.005)
    seg.close
    assert_raises(Shmview::Closed) { view[0] }
    assert_raises(Shmview::Closed) { view.shape }
    assert_equal "#<Shmview::View released>", view.inspect
    assert_predicate view, :released?
    # an index, a value and a block that close the segment while it is used
    [->(v, s) { v[Class.new { define_method(:to_int) { s.close; 0 } }.new] },
     ->(v, s) { v[0..Class.new { define_method(:to_int) { s.close; 0 }; def <=>(_) = 0; def coerce(x) = [x, 0] }.new] },
     ->(_, s) { s.wait(change: Class.new { define_method(:to_int) { s.close; 0 } }.new) },
     ->(v, _) { Shmview::MemoryView.new(v).then { |mv| mv[Class.new { define_method(:to_int) { mv.release; 0 } }.new] } },
     ->(v, s) { v[0] = Class.new { define_method(:to_int) { s.close; 5 } }.new },
     ->(v, s) { v.fill(Class.new { define_method(:to_int) { s.close; 5 } }.new) },
     ->(v, s) { v[0..1] = [1, Class.new { define_method(:to_int) { s.close; 5 } }.new] },
     ->(v, s) { v.each { s.close } },
     ->(v, s) { v.map { s.close } }].each do |use|
      Shmview.create("demo", 100) do |again|
        assert_raises(Shmview::Closed) { use.call(again.buf, again) }
      end
    end
  end
end
