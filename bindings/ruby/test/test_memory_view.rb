# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

require "fiddle"
require_relative "helper"
require "exporter"

# MemoryView in both directions: Fiddle and others read our views, and we wrap what they export.
class TestMemoryView < ShmviewTest
  MV = Shmview::MemoryView

  def setup
    super
    @seg = Shmview.create("seg-#{name}", 4096)
  end

  def exported(object, flags = 0)
    memory_view = MV.new(object, flags)
    yield memory_view
  ensure
    memory_view&.release
  end

  def members(memory_view)
    %i[format item_size ndim shape strides sub_offsets byte_size readonly?].map { |name| memory_view.public_send(name) }
  end

  # One element of each format, as the other side reads it.
  def test_formats
    { "b" => ["c", -5], "B" => ["C", 200], "h" => ["s", -5], "H" => ["S", 60_000], "i" => ["l", -5], "I" => ["L", 2**32 - 1],
      "q" => ["q", -5], "Q" => ["Q", 2**64 - 1], "f" => ["f", 1.5], "d" => ["d", 0.1], ">h" => ["s>", 258], ">I" => ["L>", 2**31],
      ">q" => ["q>", -2], ">f" => ["g", 1.5], ">d" => ["G", 0.1], "?" => ["C", 1, true], "P" => ["Q", 77],
      "Zf" => ["f2", [1.0, 2.0], Complex(1, 2)], "Zd" => ["d2", [1.0, 2.0], Complex(1, 2)], ">Zd" => ["G2", [1.0, 2.0], Complex(1, 2)],
      "e" => ["S", 0x3c00, 1.0], "bfloat16" => ["S", 0x3f80, 1.0], "float8_e5m2" => ["C", 0x3c, 1.0],
      "c" => ["C", 97, "a"], "3s" => ["C3", [97, 98, 0], "ab"], "3p" => ["C3", [2, 97, 98], "ab"],
      "3h" => ["s3", [1, 2, 3], [[1, 2, 3]]] }.each do |format, (theirs, seen, value)|
      view = @seg.cast(format, 2)
      view[1] = value.nil? ? seen : value
      exported(view) do |mv|
        assert_equal theirs, mv.format, format
        assert_equal [seen, view.itemsize], [mv[1], MV.item_size_from_format(theirs)], format
      end
      assert_equal seen, Fiddle::MemoryView.new(view).then { |mv| mv[1].tap { mv.release } }, format
    end
    exported(@seg.cast("g", 1)) { |mv| assert_equal ["C16", 16], [mv.format, mv.item_size] }
  end

  def test_structs
    view = @seg.cast("T{h:a:i:b:(2)f:c:T{b:d:>H:e:}:f:3s:g:}", 2)
    view[1] = [1, 2, [0.5, 0.25], [3, 258], "xyz"]
    exported(view) do |mv|
      assert_equal "sx2lf2cS>C3", mv.format.delete_suffix("x2").delete_suffix("x").sub(/cxS/, "cS")
      assert_equal view.itemsize, MV.item_size_from_format(mv.format)
      assert_equal [1, 2, 0.5, 0.25, 3, 258, 120, 121, 122], mv[1]
      desc = mv.item_desc
      assert_equal %w[s l f c S C], desc.map { |c| c[:format] }
      assert_equal [1, 1, 2, 1, 1, 3], desc.map { |c| c[:repeat] }
      assert_equal [true, true, true, true, false, true], desc.map { |c| c[:little_endian] }
      assert_equal [0, 4, 8], desc.map { |c| c[:offset] }.first(3)
      assert_equal desc, mv.prepare_item_desc
    end
    points = @seg.cast("(2)T{b:x:h:y:}", 1)
    points[0] = [[[1, 2], [3, 4]]]
    exported(points) { |mv| assert_equal [1, 2, 3, 4], mv[0] }
    exported(@seg.cast("T{100000b:a:}", 0)) { |mv| assert_equal 100_000, MV.item_size_from_format(mv.format) }
    @seg.buf.fill(7)
    exported(@seg.cast("(4000)T{b:x:}", 1)) { |mv| assert_equal [4000, 1], [mv[0].size, mv[0].uniq.size] }
  end

  def test_shapes_and_strides
    view = @seg.cast("i4", [3, 4])
    view[] = (0...12).each_slice(4).to_a
    exported(view) { |mv| assert_equal ["l", 4, 2, [3, 4], [16, 4], nil, 48, false], members(mv) }
    # byte_size is the number of bytes from data on that a consumer may touch, so Fiddle's to_s
    # stays inside
    back = view[(-1..) % -1, (-1..) % -2]
    exported(back) do |mv|
      assert_equal ["l", 4, 2, [3, 2], [-16, -8], nil, 4, false], members(mv)
      assert_equal back.to_a, 3.times.map { |i| 2.times.map { |j| mv[i, j] } }
      assert_equal [11, 1], [mv[0, 0], mv[-1, -1]]
    end
    part = view[1.., 1]
    exported(part) { |mv| assert_equal ["l", 4, 1, [2], [16], nil, 20, false], members(mv) }
    Fiddle::MemoryView.new(back).tap do |mv|
      assert_equal [back[2, 1], [3, 2], [-16, -8], 4], [mv[2, 1], mv.shape, mv.strides, mv.to_s.bytesize]
      mv.release
    end
    exported(view.transpose) { |mv| assert_equal [false, true, true], [mv.row_major?, mv.column_major?, mv.contiguous?] }
    exported(@seg.cast("i4", [])) { |mv| assert_equal [0, nil, 4, 0], [mv.ndim, mv.shape, mv.byte_size, mv.item] }
    exported(@seg.cast("i4", [0, 5])) { |mv| assert_equal [[0, 5], 0], [mv.shape, mv.byte_size] }
    exported(view.to_readonly) { |mv| assert_predicate mv, :readonly? }
    exported(@seg) { |mv| assert_equal ["C", 1, 1, [4096], [1], nil, 4096, false], members(mv) }
  end

  def test_suboffsets
    places = @seg.cast("Q", 2)
    places[] = [256, 128]
    @seg.cast("i2", 3, offset: 256)[] = [1, 2, 3]
    @seg.cast("i2", 3, offset: 128)[] = [4, 5, 6]
    view = @seg.cast("i2", [2, 3], strides: [8, 2], suboffsets: [0, -1])
    exported(view, MV::INDIRECT) do |mv|
      assert_equal [[8, 2], [0, -1], 16], [mv.strides, mv.sub_offsets, mv.byte_size]
      assert_equal [[1, 2, 3], [4, 5, 6]], 2.times.map { |i| 3.times.map { |j| mv[i, j] } }
      assert_equal mv.item_pointer(0, 0) - mv.item_pointer(1, 0), 128
    end
    mv = Fiddle::MemoryView.new(view)
    assert_equal [6, [0, -1]], [mv[1, 2], mv.sub_offsets]
    mv.release
    assert_raises(Shmview::NotContiguous) { MV.new(view, MV::STRIDES) }
    places[0] = 4095 # a client wrote a wrong place: an export must not read there
    assert_raises(Shmview::NotContiguous) { MV.new(view, MV::INDIRECT) }
    # Ruby 3.1 forgets the suboffset of one dimension, so only consumers that ask for it get such a
    # view
    places[0] = 256
    column = @seg.cast("i2", 2, strides: [8], suboffsets: [0])
    assert_raises(ArgumentError) { Fiddle::MemoryView.new(column) }
    exported(column, MV::INDIRECT) { |m| assert_equal [1, 4], [m[0], m[1]] }
  end

  FLAGS = %i[SIMPLE WRITABLE FORMAT MULTI_DIMENSIONAL STRIDES ROW_MAJOR COLUMN_MAJOR ANY_CONTIGUOUS INDIRECT].freeze

  def test_flags
    view = @seg.cast("i4", [3, 4])
    rows, columns, gaps = view, view.transpose, view[(-1..) % -1]
    all = FLAGS
    { rows => all - %i[COLUMN_MAJOR], columns => all - %i[MULTI_DIMENSIONAL ROW_MAJOR],
      gaps => all - %i[MULTI_DIMENSIONAL ROW_MAJOR COLUMN_MAJOR ANY_CONTIGUOUS],
      rows.to_readonly => all - %i[COLUMN_MAJOR WRITABLE], rows[0] => all }.each do |exporter, given|
      found = FLAGS.select do |flag|
        exported(exporter, MV.const_get(flag)) { true }
      rescue Shmview::NotContiguous
        false
      end
      assert_equal given, found, exporter.inspect
    end
    assert_raises(Shmview::NotContiguous) { MV.new(gaps, MV::ROW_MAJOR | MV::FORMAT) }
    readonly = Shmview.attach(@seg.name, readonly: true)
    assert_raises(Shmview::NotContiguous) { MV.new(readonly, MV::WRITABLE) }
    exported(readonly) { |mv| assert_predicate mv, :readonly? }
  end

  def test_the_memory_stays_under_a_consumer
    view = @seg.buf
    fiddle = Fiddle::MemoryView.new(view)
    ours = MV.new(view)
    error = assert_raises(Shmview::Busy) { @seg.close }
    assert_match(/2 buffers/, error.message)
    fiddle.release
    assert_raises(Shmview::Busy) { @seg.close }
    view.release # the consumer must not release the view
    assert_equal 0, ours[0]
    assert_equal [nil, nil, nil], [ours.release, ours.release, ours.obj]
    assert_raises(Shmview::Closed) { ours[0] }
    assert_raises(Shmview::Closed) { ours.format }
    @seg.close
    refute MV.available?(view)
    refute MV.available?(@seg)
    assert_raises(Shmview::NotContiguous) { MV.new(@seg) }
    assert_raises(ArgumentError) { Fiddle::MemoryView.new(view) }
  end

  def test_stale_views_are_not_exported
    @seg.define(one: { a: "i" }, two: { b: "b" })
    @seg.synchronize { @seg.switch("one") }
    view = @seg["a"]
    assert MV.available?(view)
    @seg.synchronize { @seg.switch("two") }
    refute MV.available?(view)
    assert_raises(ArgumentError) { Fiddle::MemoryView.new(view) }
  end

  def test_wrap
    memory = Fiddle::Pointer.malloc(24, Fiddle::RUBY_FREE)
    memory[0, 24] = [1, 2, 3].pack("q*")
    view = Shmview.wrap(memory)
    assert_equal ["B", [24], exported(memory, &:readonly?)], [view.format, view.shape, view.readonly?]
    assert_equal [1, 2, 3], view.cast("q").to_a
    assert_match(/of a Fiddle::Pointer/, view.inspect)
    assert_match(/of a Fiddle::Pointer, 24 bytes/, view.segment.inspect)
    assert_nil view.segment.connection
    assert_raises(Shmview::NoLock) { view.segment.lock }
    @seg.cast("q", 3)[] = view.cast("q")
    assert_equal [1, 2, 3], @seg.cast("q", 3).to_a
    exported(view.cast("q")) do |mv|
      assert_equal 3, mv[2]
      assert_raises(Shmview::Busy) { view.segment.close }
    end
    view.segment.close
    assert_raises(Shmview::Closed) { view[0] }
    assert_raises(TypeError) { Shmview.wrap("a String exports none") }
    assert_raises(TypeError) { Shmview.wrap(nil) }
    assert_raises(TypeError) { Shmview.wrap(BasicObject.new) }
    frozen = Fiddle::Pointer["read only"]
    assert_raises(Shmview::ReadOnly) { Shmview.wrap(frozen)[0] = 1 } if exported(frozen, &:readonly?)
    own = @seg.cast("q", 3)
    refute_same own, Shmview.wrap(own, writable: true)
    assert_equal own, Shmview.wrap(own)
    assert_raises(Shmview::ReadOnly) { Shmview.wrap(own.to_readonly, writable: true) }
    assert_equal 4096, Shmview.wrap(@seg).nbytes
  end

  # Fiddle exports all memory as read-only; only the caller knows whether it may be written.
  def test_wrap_for_writing
    memory = Fiddle::Pointer.malloc(24, Fiddle::RUBY_FREE)
    view = Shmview.wrap(memory, "q", writable: true)
    view[] = [1, 2, 3]
    assert_equal [[1, 2, 3], [3]], [memory[0, 24].unpack("q*"), view.shape]
    assert_equal [[1, 0], [2, 0], [3, 0]], Shmview.wrap(Fiddle::Pointer.new(memory.to_i, 24), "i4", [3, 2]).map(&:to_a)
    assert_raises(Shmview::ReadOnly) { Shmview.wrap(memory)[0] = 1 }
    assert_raises(Shmview::ReadOnly) { Shmview.wrap(Shmview.attach(@seg.name, readonly: true), writable: true) }
    assert_raises(Shmview::IllSized) { Shmview.wrap(memory, "q", [5]) }
    assert_raises(Shmview::FormatError) { Shmview.wrap(memory, "quatsch") }
    assert_match(/String exports no MemoryView; Fiddle::Pointer/, assert_raises(TypeError) { Shmview.wrap("text") }.message)
  end

  # Wraps objects with formats, shapes and strides; our own views come back by Ruby's format.
  def test_wrap_keeps_what_was_exported
    exporter = Exporter
    source = exporter.new([*1..24].pack("s*"), "s", 2, [3, 4], [16, 2])
    view = Shmview.wrap(source)
    assert_equal ["h", [3, 4], [16, 2]], [view.format, view.shape, view.strides]
    assert_equal [[1, 2, 3, 4], [9, 10, 11, 12], [17, 18, 19, 20]], view.to_a
    back = Shmview.wrap(exporter.new([*1..4].pack("s*"), "s", 2, [4], [-2], 6))
    assert_equal [4, 3, 2, 1], back.to_a
    { "S>" => [">H", [258]], "n" => [">H", [258]], "v" => ["H", [513]], "sl" => [nil, [[513, 67_305_985]]], "c2" => [nil, [[1, 2]]],
      "e" => ["f", nil], "G" => [">d", nil], "j" => ["q", nil], "L!" => ["Q", nil], nil => ["B", [1]] }.each do |theirs, (ours, seen)|
      size = theirs ? MV.item_size_from_format(theirs) : 1
      bytes = theirs == "sl" ? [513, 67_305_985].pack("sl") : [*1..16].pack("C*")[0, size]
      view = Shmview.wrap(exporter.new(bytes, theirs, size, [1], [size]))
      assert_equal ours, view.format, theirs if ours
      assert_equal seen, view.to_a, theirs if seen
    end
    odd = exporter.new("\0" + [7, 8].pack("l*"), "l", 4, [2], [4], 1) # not aligned
    assert_raises(Shmview::Misaligned) { Shmview.wrap(odd) }
    assert_equal [7, 8], @seg.cast("q", 2).tap { |v| v[] = odd }.to_a
    short = Shmview.wrap(exporter.new("abc", nil, 1, nil, nil))
    assert_equal [[3], "abc"], [short.shape, short.get_string]
    assert_raises(Shmview::Limit) { Shmview.wrap(exporter.new("a", nil, 1, [1] * 9, [1] * 9)) }
    assert_raises(RuntimeError) { Shmview.wrap(exporter.new("abc", "Z", 3, [1], [3])) }
  end

  def test_available
    assert MV.available?(@seg.buf)
    assert MV.available?(@seg)
    assert MV.available?(Fiddle::Pointer["x"])
    [nil, 5, :a, "x", [], Object.new, Object, BasicObject.new].each { |other| refute MV.available?(other) }
    assert_raises(Shmview::NotContiguous) { MV.new("x") }
    exported(@seg) { |mv| assert_raises(TypeError) { mv.send(:initialize, @seg) } }
  end

  def test_item_size_from_format
    { "c" => 1, "sl" => 6, "|sl" => 8, "C3" => 3, "qd" => 16, "n2x" => 5, "l!" => 8, "" => 0 }
      .each { |format, size| assert_equal size, MV.item_size_from_format(format), format }
    error = assert_raises(Shmview::FormatError) { MV.item_size_from_format("ssZ") }
    assert_equal [2, "ssZ", 11], [error[:at], error[:format], error.code]
    assert_match(/character 2/, error.message)
  end

  def test_byte_array
    mv = MV.init_as_byte_array("abc")
    assert_equal [nil, 1, 1, nil, nil, nil, 3, true], members(mv)
    assert_equal [97, 99, "abc"], [mv[0], mv[-1], mv.obj]
    assert_equal mv.data + 1, mv.item_pointer(1)
    assert_equal [true, true, true, nil], [mv.row_major?, mv.column_major?, mv.contiguous?, mv.prepare_item_desc]
    assert_raises(Shmview::Bounds) { mv[3] }
    assert_raises(Shmview::Bounds) { mv[0, 0] }
    assert_raises(Shmview::Bounds) { mv[] }
    mv.release
    assert_raises(Shmview::Closed) { mv[0] }
    assert_raises(TypeError) { MV.init_as_byte_array(5) }
  end

  def test_fill_contiguous_strides
    assert_equal [[96, 32, 8], [8, 16, 48]], [true, false].map { |order| MV.fill_contiguous_strides([2, 3, 4], 8, row_major: order) }
    assert_equal [[], [4], [0, 0]], [MV.fill_contiguous_strides([], 8), MV.fill_contiguous_strides(5, 4), MV.fill_contiguous_strides([3, 0], 0)]
    assert_raises(Shmview::Overflow) { MV.fill_contiguous_strides([2**40, 2**40], 8) }
    assert_raises(ArgumentError) { MV.fill_contiguous_strides([-1], 8) }
    assert_raises(ArgumentError) { MV.fill_contiguous_strides([1], -8) }
    assert_raises(Shmview::Limit) { MV.fill_contiguous_strides([1] * 65, 8) }
  end

  def test_io_buffer
    view = @seg.cast("i4", 4)
    view[] = [1, 2, 3, 4]
    kept = nil
    sum = quietly do
      view.io_buffer do |buffer|
        kept = buffer
        assert_raises(Shmview::Busy) { @seg.close }
        buffer.set_value(:s32, 4, 20)
        assert_equal 16, buffer.size
        buffer.get_value(:s32, 0) + buffer.get_value(:s32, 12)
      end
    end
    assert_equal [5, [1, 20, 3, 4], 0], [sum, view.to_a, kept.size]
    # Ruby 3.3 checks the size first, earlier ones check the memory first.
    assert_raises(IO::Buffer::AllocationError, IO::Buffer::AccessError, ArgumentError) { kept.get_value(:s32, 0) }
    readonly = view.to_readonly.io_buffer
    assert_raises(IO::Buffer::AccessError) { readonly.set_value(:s32, 0, 1) }
    assert_raises(Shmview::Busy) { @seg.close }
    readonly.free
    assert_raises(Shmview::NotContiguous) { view[(0..) % 2].io_buffer }
    readonly = nil # rubocop:disable Lint/UselessAssignment
  end

  # The memory of an IO::Buffer cannot outlive what keeps the segment mapped.
  def test_an_io_buffer_keeps_its_memory
    view = @seg.cast("i4", 4).fill(7)
    slice = nil
    quietly do
      view.io_buffer do |buffer|
        assert_raises(NoMethodError) { buffer.transfer }
        slice = buffer.slice(4, 4)
        assert_equal 7, slice.get_value(:s32, 0)
      end
    end
    refute_predicate slice, :valid?
    kept = [view.io_buffer.slice(4, 4)]
    GC.start
    assert_raises(Shmview::Busy) { @seg.close }
    assert_equal 7, kept.pop.get_value(:s32, 0)
  end

  def quietly
    before = Warning[:experimental]
    Warning[:experimental] = false
    yield
  ensure
    Warning[:experimental] = before
  end
end
