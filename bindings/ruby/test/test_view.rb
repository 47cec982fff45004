# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

require "fiddle"
require_relative "helper"

# Views: elements of every type, parts, indices, assignment, conversion, shapes and strings.
class TestView < ShmviewTest
  def setup
    super
    @seg = Shmview.create("seg-#{name}", 4096)
  end

  def test_elements_of_every_type
    { "b" => -128, "B" => 255, "h" => -32_768, "H" => 65_535, "i" => -2**31, "I" => 2**32 - 1, "q" => -2**63,
      "Q" => 2**64 - 1, "f" => 1.5, "d" => -1e300, "e" => 0.5, "bfloat16" => -2.0, "float8_e4m3fn" => 448.0,
      "g" => 1.25, "Zf" => Complex(1.5, -2), "Zd" => Complex(0.1, 2), "?" => true, "c" => "x".b, "5s" => "ab\0\0\0".b,
      "5p" => "abc".b, "P" => 2**64 - 1, ">h" => 258, ">d" => 0.1, ">Zf" => Complex(1, 2), ">Q" => 2**63, ">e" => 2.0 }
      .each do |format, value|
      view = @seg.cast(format, 3, offset: 64)
      view[1] = value
      assert_equal value, view[1], format
      assert_equal view.itemsize * 3, view.nbytes
      view.fill(value)
      assert_equal [value] * 3, view.to_a, format
      view[0..1] = [view[2], view[2]]
    end
    assert_equal [1, 2].pack("s>*"), @seg.cast(">h", 2).tap { |v| v[] = [1, 2] }.get_string
  end

  def test_what_does_not_fit_is_refused
    @seg.buf.fill(0)
    { "b" => [128, -129, 1.5, 2**70], "B" => [-1, 256], "Q" => [-1, 2**64], "q" => [2**63, -2**63 - 1], "I" => [2**32],
      "f" => [1e300], "e" => [1e6], "?" => ["x", 0.5], "c" => ["ab", ""], "3s" => ["abcd"], "4p" => ["abcd"], "Zf" => [Complex(1e300, 0)] }
      .each do |format, values|
      values.each do |value|
        error = assert_raises(Shmview::ConversionError, "#{format} #{value}") { @seg.cast(format, 1)[0] = value }
        assert_match(/is no value of format/, error.message)
      end
    end
    [["i", nil], ["i", "1"], ["d", nil], ["d", "1"], ["3s", 5], ["Zd", "1"]].each do |format, value|
      assert_raises(TypeError, "#{format} #{value.inspect}") { @seg.cast(format, 1)[0] = value }
    end
    assert_equal [0], @seg.buf.to_a.uniq
    flags = @seg.cast("?", 4)
    flags[] = [true, false, 0, 2]
    assert_equal [true, false, false, true], flags.to_a
    whole = @seg.cast("i", 1)
    whole[0] = Class.new { def to_int = 7 }.new
    assert_equal 7, whole[0]
    whole.cast("f")[0] = Rational(1, 2)
    assert_equal 0.5, whole.cast("f")[0]
  end

  def test_indices
    view = @seg.cast("i4", [3, 4])
    view[] = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert_equal [6, 11, 0, [4, 5, 6, 7]], [view[1, 2], view[-1, -1], view[-3, 0], view[1].to_a]
    assert_equal [[4, 5, 6, 7], [8, 9, 10, 11]], view.drop(1).map(&:to_a)
    [[3, 0], [0, 4], [-4, 0], [0, -5], [0, 2**70], [-2**70, 0]].each do |at|
      error = assert_raises(Shmview::Bounds) { view[*at] }
      assert_match(/index .* of dimension/, error.message)
      assert_raises(Shmview::Bounds) { view[*at] = 1 }
    end
    assert_raises(Shmview::Bounds) { view[0, 0, 0] }
    assert_raises(Shmview::Bounds) { view[3] }
    assert_raises(TypeError) { view[nil] }
    assert_raises(TypeError) { view[0, Object.new] }
    one = @seg.cast("i4", [])
    assert_equal [0, 0, 1, 4], [one[], one.ndim, one.size, one.nbytes]
    one[] = 9
    assert_equal [9, [9], 9], [view[0, 0], one.each.to_a, one.to_a]
  end

  # Each dimension accepts the ranges of Array, with the same results.
  def test_ranges_are_those_of_array
    list = (0..5).to_a
    view = @seg.cast("b", 6)
    view[] = list
    ranges = [0..2, 0...2, 1.., ..3, ...3, -3.., -3..-2, -3...-1, 2..-2, 3..1, 0..100, 6.., 5..5, 0...0, (nil..nil),
              (0..) % 2, (1..) % 2, (..-2) % 2, (-1..) % -1, (-1..) % -2, (3..1) % -1, (0..) % -1, (4..) % -1,
              (2..4) % -1, (..3) % -1, (1..4) % 3, 1.step(by: 2, to: 5)]
    ranges.each do |range|
      assert_equal list[range], view[range].to_a, range.inspect
    end
    table = @seg.cast("b", [6, 6])
    rows = (0..5).map { |i| (0..5).map { |j| 6 * i + j } }
    table[] = rows
    ranges.product([0..2, (-1..) % -2]).each do |r, s|
      assert_equal rows[r].map { |row| row[s] }, table[r, s].to_a, [r, s].inspect
    end
    assert_equal [rows.map { |row| row[1] }, rows[2][3..]], [table[0.., 1].to_a, table[2, 3..].to_a]
    assert_equal [3, 2], view[(3...1) % -1].to_a # as the sequence gives it; Array of Ruby 3.1 drops the 3
    # a range is cut at the ends, where Array returns nil
    assert_equal [[], [], [0, 1]], [7.., 10..20, -100..1].map { |r| view[r].to_a }
    assert_raises(Shmview::Bounds) { view[0.., 0..] }
  end

  def test_assignment
    view = @seg.cast("i2", [2, 3])
    view[] = [[1, 2, 3], [4, 5, 6]]
    view[0] = [7, 8, 9]
    view[1, 1..] = 0
    assert_equal [[7, 8, 9], [4, 0, 0]], view.to_a
    view[0.., (-1..) % -1] = view.to_readonly
    # source and target overlap: the copy has the old values
    assert_equal [[9, 8, 7], [0, 0, 4]], view.to_a
    view[] = @seg.cast("f8", [1, 3], offset: 1024).tap { |f| f[] = [[1.0, 2.0, 3.0]] } # one row, repeated
    assert_equal [[1, 2, 3]] * 2, view.to_a
    view[1] = Fiddle::Pointer["\1\2\3".b]
    assert_equal [1, 2, 3], view[1].to_a
    [[[1, 2], [3, 4]], [[1, 2, 3]], [1, 2]].each { |wrong| assert_raises(ArgumentError) { view[] = wrong } }
    assert_raises(Shmview::Invalid) { view[] = @seg.cast("i2", 2) }
    error = assert_raises(Shmview::ConversionError) { view[] = @seg.cast("f8", [2, 3], offset: 1024).tap { |f| f[1, 1] = 0.5 } }
    assert_match(/\[1, 1\]/, error.message)
    assert_raises(Shmview::ReadOnly) { view.to_readonly[0] = 1 }
    assert_raises(Shmview::ReadOnly) { view.broadcast(2, 2, 3)[] = 1 }
    assert_raises(FrozenError) { view.dup.freeze[0, 0] = 1 } if view.respond_to?(:initialize_copy)
  end

  def test_structs
    view = @seg.cast("T{h:a:xx(2)f:b:T{b:p:b:q:}:c:3s:d:}", 2)
    view[0] = [1, [0.5, 2], [3, 4], "abc"]
    assert_equal [[1, [0.5, 2.0], [3, 4], "abc"], [0, [0.0, 0.0], [0, 0], "\0\0\0"]], view.to_a
    view[1] = view[0]
    view["a"][1] = 9
    view[:b][0.., 1] = 7
    assert_equal [[9, 1], [[0.5, 7.0]] * 2, %w[abc abc]], [view["a"].to_a.reverse, view["b"].to_a, view["d"].to_a]
    before = view[0]
    [[1, [0.5], [3, 4], "abc"], [1, [0.5, 2], [3, 4]], 5].each { |wrong| assert_raises(ArgumentError, TypeError) { view[0] = wrong } }
    assert_raises(Shmview::ConversionError) { view[0] = [1, [0.5, 2], [3, 400], "abc"] }
    assert_equal before, view[0] # all parts or none
    view.fill([0, [0, 0], [0, 0], ""])
    view[] = [[1, [1, 1], [1, 1], "x"]] * 2
    assert_equal [1, 1], view["a"].to_a
    assert_raises(Shmview::NotFound) { view["e"] }
    assert_raises(Shmview::NotFound, Shmview::Invalid) { @seg.buf["a"] }
    flat = @seg.cast("2h", 2)
    flat[0] = [[1, 2]]
    assert_equal [[1, 2]], flat[0]
    nested = @seg.cast("T{T{h:a:h:b:}:s:}", 2)
    nested[1] = [[3, 4]]
    assert_equal [[[3, 4]], [3, 4]], [nested[1], nested["s"][1]]
  end

  def test_rows_behind_stored_offsets
    places = @seg.cast("Q", 2)
    places[] = [256, 128]
    @seg.cast("i2", 3, offset: 256)[] = [1, 2, 3]
    @seg.cast("i2", 3, offset: 128)[] = [4, 5, 6]
    view = @seg.cast("i2", [2, 3], strides: [8, 2], suboffsets: [0, -1])
    assert_equal [[[1, 2, 3], [4, 5, 6]], 6, [0, -1]], [view.to_a, view[1, 2], view.suboffsets]
    view[1, -1] = 60
    view[0] = [7, 8, 9]
    assert_equal [[[7, 8, 9], [4, 5, 60]], [8, 5]], [view.map(&:to_a), view[0.., 1].to_a]
    assert_equal [7, 8, 9, 4, 5, 60].pack("s*"), view.get_string
    places[1] = 5000 # another client may write any place
    assert_raises(Shmview::Bounds) { view[1, 0] }
    assert_raises(Shmview::Bounds) { view.to_a }
  end

  def test_shapes
    view = @seg.cast("i4", 12)
    view[] = (0...12).to_a
    table = view.reshape(3, -1)
    assert_equal [[3, 4], [16, 4], true, false], [table.shape, table.strides, table.row_major?, table.column_major?]
    turned = table.transpose
    assert_equal [[4, 3], [4, 16], false, true, true], [turned.shape, turned.strides, turned.row_major?, turned.column_major?, turned.contiguous?]
    assert_equal table.to_a.transpose, turned.to_a
    assert_equal table.to_a, turned.transpose(1, 0).to_a
    refute_predicate table[0.., 1..], :contiguous?
    assert_equal [4, 12, 48], [turned.length, turned.size, turned.nbytes]
    assert_equal [[48], [3, 16], [3, 4, 2]], [view.cast("B").shape, table.cast("B").shape, view.cast("i2", [3, 4, 2]).shape]
    assert_equal [[0, 1, 2, 3]] * 2, view[0..3].broadcast(2, 4).to_a
    [-> { view.reshape(5, 5) }, -> { turned.reshape(12) }, -> { table.transpose(0) }, -> { table.transpose(0, 5) },
     -> { turned.cast("B") }, -> { view.cast("5s") }, -> { view.broadcast(5) }].each_with_index do |wrong, i|
      assert_raises(Shmview::Invalid, Shmview::IllSized, i.to_s) { wrong.call }
    end
    assert_raises(ArgumentError) { view.reshape(*[1] * 9) }
    summary = view.summary
    assert_equal [12, 0, 0, 11, 66.0], summary.to_a
    assert_raises(Shmview::ConversionError) { @seg.cast("4s").summary }
  end

  def test_elements_at_any_byte
    view = @seg.cast("<i2", 4, offset: 1)
    view[] = [5, -2, 3, 4]
    assert_equal ["<h", [5, -2, 3, 4], 10.0], [view.format, view.to_a, view.summary.sum]
    assert_equal "h", @seg.cast("<i2", 4, offset: 1, strides: [3])[(1..) % 2].format
    records = @seg.cast("T{<b:flag:f:x:}", 3, offset: 64)
    records[] = [[1, 0.5], [2, 1.5], [3, 2.5]]
    assert_equal ["<f", [0.5, 1.5, 2.5]], [records["x"].format, records["x"].to_a]
    records["x"][1] = 9
    assert_equal [[1, 0.5], [2, 9.0], [3, 2.5]], records.to_a
    "bBhHiIqQefd?".chars.product(["<", ">"], (0..8).to_a) { |parts| same_at_any_byte(*parts) }
    %w[h @h int16 3h].each { |native| assert_raises(Shmview::Misaligned) { @seg.cast(native, 2, offset: 1) } }
  end

  def same_at_any_byte(letter, mark, offset)
    view = @seg.cast(mark + letter, 3, offset: offset)
    view[] = [1, 0, 1].map { |i| letter == "?" ? i == 1 : i }
    aligned = @seg.cast(mark + letter, 3, offset: 512)
    aligned[] = view
    assert_equal view.to_a, aligned.to_a
    assert_equal view, aligned
  end

  def test_unaligned_view_of_a_layout
    seg = Shmview.create(100, layouts: { l: { a: ["i4", 3, 1] } })
    assert_equal "<i", seg.view("a").format
    seg.close
  end

  def test_structs_in_structs
    view = @seg.cast("T{T{i:b:}:a:h:n:}", 2)
    view[0] = [[1], 2]
    assert_equal [[[1], 2], [[0], 0]], view.to_a
    view[] = [[[3], 4], [[5], 6]]
    assert_equal [[[3], 4], [[5], 6]], view.to_a
    view[0..] = [[7], 8] # one struct for all
    assert_equal [[[7], 8]] * 2, view.to_a
    single = @seg.cast("T{T{i:b:}:a:}", 2)
    single[0] = [[9]]
    assert_equal [[[9]], [single[1][0]]], single.to_a
  end

  def test_an_array_that_contains_itself_is_no_struct
    array = []
    array << array
    assert_raises(TypeError, ArgumentError) { @seg.cast("T{i:a:}", 1)[0..] = array }
    assert_raises(TypeError, ArgumentError) { @seg.cast("T{i:a:}", [1, 1])[] = array }
    assert_raises(TypeError, ArgumentError) { @seg.cast("T{T{i:b:}:a:}", 1)[0] = array }
    assert_raises(TypeError, ArgumentError) { @seg.cast("i", [1, 1])[] = array }
  end

  def test_casts_are_checked
    assert_raises(Shmview::FormatError) { @seg.cast("quatsch") }
    error = assert_raises(Shmview::FormatError) { @seg.cast("T{i:a:k}") }
    assert_equal "T{i:a:k}", error[:format]
    assert_raises(Shmview::Misaligned) { @seg.cast("i", 1, offset: 2) }
    assert_raises(Shmview::Bounds) { @seg.cast("i", 1025) }
    assert_raises(Shmview::Bounds) { @seg.cast("i", [2, 2], strides: [-4, 4]) }
    assert_raises(Shmview::IllSized, Shmview::Bounds) { @seg.cast("i", offset: 4094) }
    assert_raises(Shmview::Overflow, Shmview::Bounds) { @seg.cast("b", [2**40, 2**40]) }
    assert_raises(ArgumentError) { @seg.cast("b", 1, offset: -1) }
    assert_raises(ArgumentError) { @seg.cast("b", [1] * 9) }
    assert_raises(ArgumentError) { @seg.cast("b", [1], strides: [1, 2]) }
    assert_raises(ArgumentError) { @seg.cast("b", strides: [1]) }
    assert_equal [4096, "B", [4096]], [@seg.buf.nbytes, @seg.buf.format, @seg.buf.shape]
    assert_equal %w[q f h ?], %w[i8 float32 i2 ?].map { |f| @seg.cast(f, 1).format }
    assert_predicate @seg.cast("b", 1, readonly: true), :readonly?
    names = %w[float double single int uint complex] + [:float32, Integer, Float, Complex]
    assert_equal %w[d d f q Q Zd f q d Zd], names.map { |f| @seg.cast(f, 1).format }
    assert_raises(Shmview::FormatError) { @seg.cast(String) }
  end

  def test_strings
    view = @seg.cast("i2", [2, 3])
    assert_same view, view.set_string([1, 2, 3, 4, 5, 6].pack("s*"))
    assert_equal [1, 2, 3, 4, 5, 6].pack("s*"), view.get_string
    assert_equal Encoding::BINARY, view.get_string.encoding
    buffer = +"something"
    assert_same buffer, view[0.., (-1..) % -1].get_string(buffer)
    assert_equal [3, 2, 1, 6, 5, 4], buffer.unpack("s*")
    view.transpose.set_string([1, 2, 3, 4, 5, 6].pack("s*"))
    assert_equal [[1, 3, 5], [2, 4, 6]], view.to_a
    assert_raises(Shmview::IllSized) { view.set_string("12345") }
    assert_raises(Shmview::ReadOnly) { view.to_readonly.set_string("123456123456") }
    assert_raises(FrozenError) { view.get_string("frozen") }
    assert_raises(TypeError) { view.set_string(5) }
    odd = @seg.cast("g", 1)[(-1..) % -1]
    odd[0] = 0.25
    assert_equal 16, odd.get_string.size
    Shmview.create(nil, 3 << 20) do |large|
      text = Random.new(1).bytes(3 << 20)
      assert_equal text, large.buf.set_string(text).get_string
      part = large.buf[(0..) % 2]
      assert_equal text.bytes.each_slice(2).map(&:first), part.get_string.bytes
    end
  end

  def test_equality
    view = @seg.cast("i4", 3)
    view[] = [1, 2, 3]
    floats = @seg.cast("f8", 3, offset: 512)
    floats[] = [1, 2, 3]
    assert_equal view, floats
    floats[1] = Float::NAN
    refute_equal view, floats
    refute_equal floats, floats
    refute_equal view, view.reshape(3, 1)
    refute_equal view, [1, 2, 3]
    refute_equal view, nil
    assert_equal @seg.cast("B", 3, offset: 1024), Fiddle::Pointer["\0\0\0"]
  end

  def test_release
    view = @seg.buf
    other = view[1..]
    assert_nil view.release
    assert_nil view.release
    assert_predicate view, :released?
    assert_raises(Shmview::Closed) { view[0] }
    assert_equal view, view
    assert_equal 0, other[0]
  end

  def test_enumerable
    view = @seg.cast("i4", 5)
    view[] = [5, 3, 1, 4, 2]
    assert_equal [[1, 2, 3, 4, 5], 15, 5, [5, 3]], [view.sort, view.sum, view.each.size, view.first(2)]
    assert_same view, view.each { nil }
    assert_equal [[5, 0], [3, 1]], view.each_with_index.first(2)
    assert_includes view, 4
    refute_respond_to view, :dup_elements
    assert_raises(TypeError, NoMethodError) { view.clone }
    assert_raises(TypeError, NoMethodError) { @seg.dup }
    assert_equal "#<Shmview::View of 'seg-test_enumerable', format 'i', shape [5]>", view.inspect
  end
end
