#!/usr/bin/env ruby
# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0
# One segment, two phases. In the first phase two workers fill the float arrays A and B, and the
# parent stores their sum in C. Then a switch makes the same bytes the integer arrays D and E. Using
# a view of the floats after that raises StaleView.

require "shmview"

N = 1000
LAYOUTS = {
  float: { A: ["f4", N], B: ["f4", N], C: ["f4", N] },
  int: { D: ["i2", 2 * N], E: ["i4", N] }
}.freeze

# Fills one array of the first phase, and half of D in the second.
def work(seg, name, low)
  seg.wait(phase: "float", timeout: 60)
  seg.synchronize { seg[name][] = (low...low + N).to_a }
  seg.notify
  seg.wait(phase: "int", timeout: 60)
  seg.synchronize { seg["D"][(low..) % 2] = low }
  seg.notify
end

# Waits for changes until the block is true under the lock.
def wait_for(seg, &condition)
  seen = seg.change
  seen = seg.wait(change: seen, timeout: 60) until seg.shared(&condition)
end

Shmview.create(layouts: LAYOUTS) do |seg|
  workers = [["A", 0], ["B", 1]].map { |name, low| fork { work(seg, name, low) } }

  a, b, c = seg.synchronize do
    seg.switch("float")
    %w[A B C].map { |name| seg[name] }
  end
  wait_for(seg) { a[-1] == N - 1 && b[-1] == N }
  d = seg.synchronize do
    c[] = a.zip(b).map(&:sum)
    puts "float: #{c[0]} #{c[-1]} #{c.summary.sum}" # 1.0 1999.0 1000000.0
    seg.switch("int")
    seg["D"].fill(-1)
  end
  begin
    a[0]
  rescue Shmview::StaleView => e
    puts "stale: #{e.message}"
  end
  wait_for(seg) { d[0].zero? && d[1] == 1 }
  workers.each { |pid| Process.wait(pid) }
  puts "int: #{d[0..5].to_a} #{d.summary.sum}" # [0, 1, 0, 1, 0, 1] 1000.0
end
