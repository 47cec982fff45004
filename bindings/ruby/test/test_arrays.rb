# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

require "fiddle"
require_relative "helper"

# One call for one array: array, zeros, ones, empty, full, attach_array, make, and Segment#layouts.
class TestArrays < ShmviewTest
  def facts(view) = [view.format, view.shape, view.to_a]

  def test_zeros_and_ones
    assert_equal ["d", [3], [0.0] * 3], facts(Shmview.zeros(3))
    assert_equal ["h", [2, 2], [[0, 0], [0, 0]]], [*facts(Shmview.zeros([2, 2], "i2"))[0..1], Shmview.zeros([2, 2], "i2").map(&:to_a)]
    assert_equal ["q", [2], [1, 1]], facts(Shmview.ones(2, Integer))
    assert_equal ["d", [1], [0.0]], facts(Shmview.empty(1, Float))
    assert_equal [[2], [[0, 0.0]] * 2], facts(Shmview.zeros(2, "T{i:a:d:b:}"))[1..]
    view = Shmview.zeros([2, 3], order: "F", name: "f")
    assert_equal [[8, 16], true, "f"], [view.strides, view.column_major?, view.segment.name]
    assert_equal [[2, 0], 1], Shmview.zeros([2, 0], order: :F).then { |v| [v.shape, v.segment.size] }
    assert_raises(ArgumentError) { Shmview.zeros(2, order: "K") }
    assert_raises(ArgumentError) { Shmview.zeros(2, size: 3) }
    assert_raises(Shmview::FormatError) { Shmview.zeros(2, "quatsch") }
    assert_raises(ArgumentError) { Shmview.zeros(-1) }
    assert_raises(Shmview::Exists) { Shmview.zeros(2, name: "f") }
  end

  def test_full
    assert_equal ["q", [2], [7, 7]], facts(Shmview.full(2, 7))
    assert_equal ["d", [2], [0.5, 0.5]], facts(Shmview.full(2, 0.5))
    assert_equal ["?", [2], [true, true]], facts(Shmview.full(2, true))
    assert_equal ["Zf", [1], [Complex(1, 2)]], facts(Shmview.full(1, Complex(1, 2), "c8"))
    assert_equal [[1, 2], [1, 2]], Shmview.full([2, 2], Shmview.array([1, 2])).map(&:to_a)
    assert_raises(ArgumentError) { Shmview.full([2, 2], [1, 2]) }
    assert_raises(Shmview::ConversionError) { Shmview.full(2, 300, "B", name: "no", lifetime: :manual) }
    refute Shmview.exist?("no")
    assert_raises(TypeError) { Shmview.full(2, "text") }
    assert_raises(TypeError) { Shmview.full(2, nil, "d") }
  end

  def test_array_deduces_format_and_shape
    { [1, 2] => ["q", [2]], [1, 0.5] => ["d", [2]], [[1, 2], [3, 4]] => ["q", [2, 2]], [1r] => ["d", [1]], [] => ["d", [0]],
      [true, false] => ["?", [2]], [2**63] => ["Q", [1]], [1, Complex(0, 1)] => ["Zd", [2]], [[], []] => ["d", [2, 0]],
      5 => ["q", []] }.each do |values, (format, shape)|
      view = Shmview.array(values)
      assert_equal [format, shape], [view.format, view.shape], values.inspect
      assert_equal values, view.ndim == 1 ? view.to_a : view.ndim.zero? ? view[] : view.map(&:to_a)
    end
    assert_equal [1, 2, 3], Shmview.array(1..3).to_a
    assert_equal [["a\0", "bc"], "2s"], Shmview.array(%w[a bc], "2s").then { |v| [v.to_a, v.format] }
    assert_equal [[1, 0.5], [2, 1.5]], Shmview.array([[1, 0.5], [2, 1.5]], "T{i:a:d:b:}").to_a
    assert_equal [1, 0.5], Shmview.array([1, 0.5], "T{i:a:d:b:}")[]
    { [[1, 2], [3]] => ArgumentError, [1, [2]] => ArgumentError, ["a"] => TypeError, [1, true] => TypeError, nil => TypeError,
      [-1, 2**63] => Shmview::ConversionError, { a: 1 } => TypeError }.each do |values, error|
      assert_raises(error, values.inspect) { Shmview.array(values) }
    end
    assert_empty Shmview.list.grep_v(/\Arb-/)
  end

  def test_array_of_memory
    a = Shmview.array([[1, 2, 3], [4, 5, 6]], "i2")
    b = Shmview.array(a.transpose, order: "F")
    assert_equal ["h", [3, 2], [2, 6], [[1, 4], [2, 5], [3, 6]]], [b.format, b.shape, b.strides, b.map(&:to_a)]
    a[0, 0] = 9
    assert_equal [1, 9], [b[0, 0], Shmview.array(a, "d")[0, 0]]
    memory_view = Fiddle::MemoryView.new(a)
    pointer = Fiddle::Pointer["\1\2\3"]
    assert_equal ["B", [1, 2, 3]], Shmview.array(pointer).then { |v| [v.format.upcase, v.to_a] }
    memory_view.release
    assert_equal 24, Shmview.full([4, 3], a[0], "h").nbytes
  end

  def test_attach_array
    view = Shmview.array([1.5, 2.5], name: "one")
    other = Shmview.attach_array("one")
    other[0] = 7
    assert_equal [7.0, 2.5], view.to_a
    assert_equal [7.0, true], Shmview.attach_array("one", readonly: true) { |v| [v[0], v.readonly?] }
    assert_equal "7.0\n", run_ruby("p Shmview.attach_array('one')[0]")
    error = assert_raises(Shmview::NoLayout) { Shmview.attach_array(Shmview.create("none", 1, lifetime: :manual).name) }
    assert_match(/'none' has 0 views \(none\): use attach/, error.message)
    Shmview.create("two", layouts: { x: { a: "b", c: "b" } }, lifetime: :manual).close
    error = assert_raises(Shmview::NoLayout) { Shmview.attach_array("two") }
    assert_match(/2 views \('a' of 'x', 'c' of 'x'\)/, error.message)
    assert_raises(Shmview::NotFound) { Shmview.attach_array("nobody") }
    %w[none two].each { |name| Shmview.remove(name) }
  end

  def test_blocks_close
    given = nil
    assert_equal(3.0, Shmview.array([1, 2.0], name: "x") { |v| (given = v).sum })
    assert_predicate given, :released?
    refute Shmview.exist?("x")
    assert_raises(ZeroDivisionError) { Shmview.zeros(2, name: "x") { 1 / 0 } }
    assert_equal "x", Shmview.ones(1, name: "x", lifetime: :manual, lock: false) { |v| v.segment.name }
    assert Shmview.exist?("x")
    Shmview.remove("x")
  end

  def test_make
    assert_equal ["f", [1000]], Shmview.make(4000, "f4").then { |v| [v.format, v.shape] }
    assert_equal ["B", [10]], Shmview.make(10).then { |v| [v.format, v.shape] }
    view = Shmview.make(format: "f4", shape: [3, 4], name: "made", lifetime: :manual)
    assert_equal ["made", 48, [3, 4]], [view.segment.name, view.segment.size, view.shape]
    Shmview.remove("made")
    assert_equal [[8], 20], Shmview.make(nil, "i4", 3, strides: [8]).then { |v| [v.strides, v.segment.size] }
    assert_equal [4, 20], Shmview.make(format: "i4", shape: 4, offset: 4).then { |v| [v.offset, v.segment.size] }
    assert_equal [[], 8], Shmview.make(format: "d", shape: []).then { |v| [v.shape, v.segment.size] }
    assert_equal 1, Shmview.make(shape: [0]).segment.size
    assert_predicate Shmview.make(8, "d", readonly: true), :readonly?
    assert_equal ["i", [2, 3]], Shmview.make(format: Shmview.zeros([2, 3], "i4", order: "F")).then { |v| [v.format, v.shape] }
    assert_equal [["i", [2]], 20], Shmview.make(20, Shmview.zeros([1], "i4"), 2).then { |v| [[v.format, v.shape], v.segment.size] }
    assert_raises(ArgumentError) { Shmview.make(format: "d") }
    assert_raises(Shmview::Bounds) { Shmview.make(8, "d", 2, name: "no", lifetime: :manual) }
    refute Shmview.exist?("no")
  end

  def test_layouts
    seg = Shmview.create("seg", 400, layouts: { one: { x: "f8", y: ["i2", [2, 3], 100] } })
    assert_equal({ "one" => { "x" => { format: "d", shape: [], offset: 0, strides: [], readonly: false },
                              "y" => { format: "h", shape: [2, 3], offset: 100, strides: [6, 2], readonly: false } } }, seg.layouts)
    Shmview.attach("seg").define(two: { z: { format: "h", shape: [2, 2], strides: [8, 2], suboffsets: [0, -1], readonly: true } })
    assert_equal({ format: "h", shape: [2, 2], offset: 0, strides: [8, 2], suboffsets: [0, -1], readonly: true }, seg.layouts["two"]["z"])
    copy = Shmview.create(nil, 400).define(seg.layouts)
    assert_equal seg.layouts, copy.layouts
    assert_empty Shmview.create(nil, 1).layouts
    foreign = Shmview.wrap(Fiddle::Pointer["12"]).segment
    assert_raises(Shmview::Invalid) { foreign.layouts }
    seg.remove
    assert_raises(Shmview::NotFound) { seg.layouts }
    seg.close
    assert_raises(Shmview::Closed) { seg.layouts }
  end

  def test_stress
    GC.stress = true
    view = Shmview.array([[1, 2], [3, 4]], name: "seg")
    assert_equal [[1, 2], [3, 4]], Shmview.attach_array("seg").map(&:to_a)
    assert_equal %w[array], view.segment.layouts.keys
  ensure
    GC.stress = false
  end
end
