# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

require "fiddle"
require_relative "helper"
require "exporter"

# The first closure may leave libffi open: since 3.4 it maps its own file for the code of closures.
FIRST_CLOSURE = Class.new(Fiddle::Closure) { def call = nil }.new(Fiddle::TYPE_VOID, [])

# Tensors of DLPack by their addresses, in both directions. The tests make tensors of packed bytes,
# whose deleter is a closure that counts its calls.
class TestDLPack < ShmviewTest
  def setup
    super
    @deleted = 0
    @kept = []
  end

  # Returns the address of text, which stays until the end of the test.
  def place(text)
    @kept << Fiddle::Pointer.malloc([text.bytesize, 1].max, Fiddle::RUBY_FREE).tap { |memory| memory[0, text.bytesize] = text }
    @kept.last.to_i
  end

  # Returns the address of a tensor of floats, of 32 bits.
  def tensor(shape: [2, 3], strides: nil, device: 1, code: 2, bits: 32, lanes: 1, flags: 0, major: 1, versioned: true,
             data: place([*1..6].pack("f*")), ndim: shape.size)
    body = [data, device, 0, ndim, code, bits, lanes, place(shape.pack("q*")), strides ? place(strides.pack("q*")) : 0, 0]
           .pack("QlllCCSQQQ")
    owner = [0, counting_deleter].pack("QQ")
    place(versioned ? [major, 0].pack("LL") + owner + [flags].pack("Q") + body : body + owner)
  end

  def counting_deleter
    closure = Class.new(Fiddle::Closure) do
      define_method(:initialize) { |count| super(Fiddle::TYPE_VOID, [Fiddle::TYPE_VOIDP]); @count = count }
      define_method(:call) { |_| @count.call }
    end
    @kept << closure.new(-> { @deleted += 1 })
    @kept.last.to_i
  end

  def test_a_tensor_is_a_view
    [true, false].each do |versioned|
      view = Shmview.from_dlpack(tensor(versioned: versioned), versioned: versioned)
      assert_equal ["f", [2, 3], [12, 4], [[1, 2, 3], [4, 5, 6]]], [view.format, view.shape, view.strides, view.map(&:to_a)]
      view[0, 0] = 9
      assert_equal [9.0, false, 0], [view[0, 0], view.readonly?, @deleted]
      view.segment.close
      assert_raises(Shmview::Closed) { view[0, 0] }
      assert_equal 1, @deleted
      @deleted = 0
    end
  end

  def test_strides_flags_and_pointers
    view = Shmview.from_dlpack(Fiddle::Pointer.new(tensor(shape: [3, 2], strides: [1, 3])))
    assert_equal [[1, 4], [2, 5], [3, 6]], view.map(&:to_a)
    view.segment.close
    view = Shmview.from_dlpack(tensor(flags: 1))
    assert_raises(Shmview::ReadOnly) { view[0, 0] = 1 }
    view.segment.close
    view = Shmview.from_dlpack(tensor(shape: [0], data: 0))
    assert_equal [[0], []], [view.shape, view.to_a]
    view.segment.close
    back = Shmview.from_dlpack(tensor(shape: [6], strides: [-1], data: place([*1..6].pack("f*")) + 20))
    assert_equal [6, 5, 4, 3, 2, 1], back.to_a
    back.segment.close
    assert_equal 4, @deleted
  end

  # The tensor is deleted when the last consumer has released its memory.
  def test_the_last_user_deletes_it
    view = Shmview.from_dlpack(tensor)
    memory_view = Fiddle::MemoryView.new(view)
    assert_raises(Shmview::Busy) { view.segment.close }
    assert_equal 0, @deleted
    memory_view.release
    view.segment.close
    assert_equal 1, @deleted
  end

  def test_a_view_that_is_collected_deletes_it
    20.times { Shmview.from_dlpack(tensor) }
    await("the deleters") { GC.start || @deleted >= 15 }
    await("all deleters") { collect || @deleted == 20 }
  end

  # A tensor that is refused still belongs to the caller.
  def test_errors
    { { device: 2 } => Shmview::ConversionError, { lanes: 4 } => Shmview::ConversionError, { code: 77 } => Shmview::ConversionError,
      { major: 2 } => Shmview::Unsupported, { ndim: -1 } => Shmview::Invalid, { shape: [1] * 9 } => Shmview::Invalid,
      { data: 0 } => Shmview::Invalid, { shape: [2**62, 8] } => Shmview::Overflow }.each do |members, error|
      assert_raises(error, members.inspect) { Shmview.from_dlpack(tensor(**members)) }
    end
    assert_raises(ArgumentError) { Shmview.from_dlpack(0) }
    assert_raises(ArgumentError) { Shmview.from_dlpack(tensor, old: true) }
    [nil, "tensor", Object.new].each { |wrong| assert_raises(TypeError) { Shmview.from_dlpack(wrong) } }
    assert_equal 0, @deleted
  end

  def test_export
    view = Shmview.array([[1, 2, 3], [4, 5, 6]], "i2")
    [[{}, view[0.., 1..]], [{ versioned: false }, view.transpose], [{}, view.to_readonly]].each do |options, part|
      again = Shmview.from_dlpack(part.to_dlpack(**options), **options)
      assert_equal [part.format, part.shape, part.map(&:to_a), part.readonly?],
                   [again.format, again.shape, again.map(&:to_a), again.readonly?]
      assert_raises(Shmview::Busy) { view.segment.close }
      again.segment.close
    end
    assert_raises(Shmview::ReadOnly) { view.to_readonly.to_dlpack(versioned: false) }
    assert_raises(Shmview::ConversionError) { view.cast("3s").to_dlpack }
    view.segment.close
    assert_raises(Shmview::Closed) { view.to_dlpack }
  end

  # A tensor of memory that another object exports. Nothing else refers to that memory.
  def exported_tensor
    view = Shmview.wrap(Exporter.new("abcd", "c", 1, [4], [1]))
    view.to_dlpack
  end

  def deleter_of(address) = Fiddle::Pointer.new(address)[16, 8].unpack1("Q")

  # Fiddle calls the deleter without the GVL. The release needs it, and a native thread that Ruby
  # does not know cannot get it, so its tensor is released later.
  def test_the_deleter_needs_no_gvl
    before = Exporter.n_out
    addresses = Array.new(20) { exported_tensor }
    collect
    assert_equal before + 20, Exporter.n_out
    last = addresses.pop
    addresses.each { |address| Fiddle::Function.new(deleter_of(address), [Fiddle::TYPE_VOIDP], Fiddle::TYPE_VOID).call(address) }
    await("the releases") { collect || Exporter.n_out == before + 1 }
    create, join = [["pthread_create", 4, Fiddle::TYPE_VOIDP], ["pthread_join", 2, Fiddle::TYPE_LONG]].map do |name, n, first|
      Fiddle::Function.new(Fiddle::Handle::DEFAULT[name], [first] + [Fiddle::TYPE_VOIDP] * (n - 1), Fiddle::TYPE_INT)
    end
    thread = Fiddle::Pointer.malloc(8, Fiddle::RUBY_FREE)
    assert_equal 0, create.call(thread, nil, deleter_of(last), last)
    assert_equal 0, join.call(thread[0, 8].unpack1("q"), nil)
    Shmview.wrap(Exporter.new("abcd", "c", 1, [4], [1])).segment.close
    assert_equal [before, 0], [Exporter.n_out, Exporter.n_without_gvl]
  end

  # The views and segments are collected before the process ends, and their tensors are not deleted.
  def test_tensors_outlive_their_segments
    code = <<~RUBY
      require "fiddle"
      require "exporter"
      make = -> { Shmview.wrap(Exporter.new("abcd", "c", 1, [4], [1])).to_dlpack }
      $all = Array.new(300) { make.call }
      GC.start
      $other = Array.new(1000) { Fiddle::Pointer["x" * 100] }
      puts $all.size
    RUBY
    assert_equal "300\n", run_ruby(code)
  end

  # The deleter is a closure of Ruby, so it must run before Ruby frees its objects.
  def test_the_end_of_the_process_deletes_it
    code = <<~'RUBY'
      require "fiddle"
      $delete = Class.new(Fiddle::Closure) { def call(_) = $stdout.syswrite("deleted\n") }.new(Fiddle::TYPE_VOID, [Fiddle::TYPE_VOIDP])
      $data = Fiddle::Pointer["12345678"]
      $shape = Fiddle::Pointer[[8].pack("q")]
      $tensor = Fiddle::Pointer[[$data.to_i, 1, 0, 1, 1, 8, 1, $shape.to_i, 0, 0, 0, $delete.to_i].pack("QlllCCSQQQQQ")]
      $view = Shmview.from_dlpack($tensor, versioned: false)
      puts $view.sum
      $stdout.flush
    RUBY
    assert_equal "420\ndeleted\n", run_ruby(code)
  end

  def test_stress
    address = tensor
    GC.stress = true
    assert_equal [1, 2, 3], Shmview.from_dlpack(address)[0].to_a
  ensure
    GC.stress = false
  end
end
