#!/usr/bin/env ruby
# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0
# One segment of ten bytes, seen in several formats without a copy. A child fills it under the lock
# with five integers of 16 bits. The parent then reads the first eight bytes as two integers of 32
# bits, all of them as bytes, and the five integers again through a MemoryView of Fiddle.

require "fiddle"
require "shmview"

# Fills the integers with 0, 1, 2, ...
def fill(seg)
  seg.synchronize do
    numbers = seg.cast("i2")
    numbers[] = (0...numbers.size).to_a
  end
end

Shmview.create(nil, 10) do |seg|
  numbers = seg.cast("i2")
  seg.shared { puts "before: #{numbers.sum}" }

  Process.wait(fork { fill(seg) })
  raise "the child failed" unless $?.success?

  seg.shared do
    puts "after: #{seg.cast('i4', 2).sum}"
    puts "bytes: #{seg.buf.to_a.join(' ')}"
    memory_view = Fiddle::MemoryView.new(numbers)
    puts "Fiddle: format #{memory_view.format}, shape #{memory_view.shape}, last #{memory_view[4]}"
    memory_view.release # otherwise the segment could not be closed
  end

  # a native integer must be aligned, and the error names the byte; "<i2" may begin at any byte
  begin
    seg.cast("int16", 2, offset: 3)
  rescue Shmview::Misaligned => e
    puts "refused: #{e.message}"
  end
end
