#!/usr/bin/env ruby
# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0
# Ten bytes: a child fills them as five integers of 16 bits under the lock, and its parent sees the
# first eight as two integers of 32 bits, all as bytes, and through a MemoryView, without a copy.

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
    memory_view.release # else the segment stays mapped
  end

  # an integer that is not aligned is refused, with the byte at which it goes wrong
  begin
    seg.cast("i2", 2, offset: 3)
  rescue Shmview::Misaligned => e
    puts "refused: #{e.message}"
  end
end
