# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

require "fiddle"
require_relative "helper"

# Owner, group, mode and entries of a segment.
class TestAccess < ShmviewTest
  ME = Etc.getpwuid.name
  GROUP = Etc.getgrgid(Process.gid).name
  OTHERS = { "user:nobody" => :write, "group:daemon" => :read, "user:4294967" => nil }.freeze

  def access(seg) = [seg.mode, seg.owner, seg.group, seg.entries]

  def test_a_new_segment
    seg = Shmview.create("seg", 10)
    assert_equal [0o600, Process.uid, Process.gid, {}], access(seg)
    assert_equal Shmview::Access.new(0o600, Process.uid, Process.gid, {}), Shmview.get_access("seg")
    seg = Shmview.create("new", 10, mode: 0o640, owner: ME, group: GROUP, entries: OTHERS)
    assert_equal [0o640, Process.uid, Process.gid, OTHERS], access(seg)
    assert_equal [0o604, 0o644, 0o606], [Shmview.zeros(3, mode: 0o604), Shmview.array([1], mode: 0o644),
                                         Shmview.make(10, mode: 0o606)].map { |view| view.segment.mode }
  end

  def test_a_change
    seg = Shmview.create("seg", 10)
    assert_same seg, seg.set_access(mode: 0o660)
    assert_equal [0o660, {}], [seg.mode, seg.entries]
    seg.set_access(entries: OTHERS.transform_keys(&:to_sym))
    assert_equal [0o660, OTHERS], [seg.mode, seg.entries]
    unnamed = { "group:4294967" => :write, "user:4294967" => :read }
    seg.set_access(entries: unnamed)
    assert_equal unnamed, seg.entries
    assert_nil Shmview.set_access("seg", entries: {}, group: Process.gid.to_s)
    assert_equal [0o660, Process.uid, Process.gid, {}], access(seg)
    seg.set_access
    assert_equal 0o660, seg.mode
  end

  def test_another_user
    skip "only root can be another user" unless Process.uid.zero?
    File.chmod(0o755, DIRECTORY)
    File.chmod(0o666, DAEMON.socket)
    seg = Shmview.create("seg", 10)
    attach = <<~RUBY
      Process::Sys.setgid(65534); Process.groups = []; Process::Sys.setuid(65534)
      begin
        p Shmview.attach("seg", readonly: true).access
      rescue Shmview::Error => e
        p e.class
      end
    RUBY
    assert_equal "Shmview::NotFound\n", run_ruby(attach)
    seg.set_access(entries: { "user:65534" => :read })
    assert_equal ":read\n", run_ruby(attach)
    seg.set_access(mode: 0o666, entries: { "user:65534" => nil })
    assert_equal "Shmview::NotFound\n", run_ruby(attach)
  end

  def test_errors
    seg = Shmview.create("seg", 10)
    assert_raises(Shmview::NotFound) { Shmview.set_access("nobody", mode: 0o600) }
    assert_raises(Shmview::NotFound) { Shmview.get_access("nobody") }
    assert_raises(Shmview::Invalid) { seg.set_access(mode: 0o777) }
    assert_raises(Shmview::Invalid) { Shmview.create("no", 1, mode: 0o1000) }
    assert_equal "there is no user 'no such user'", assert_raises(Shmview::Invalid) { seg.set_access(owner: "no such user") }.message
    assert_raises(Shmview::Invalid) { seg.set_access(group: "no such group") }
    assert_raises(Shmview::Invalid) { seg.set_access(entries: { "user:no such user" => :read }) }
    %w[alice user user: users:alice].each { |key| assert_raises(ArgumentError) { seg.set_access(entries: { key => :read }) } }
    assert_match(/:read, :write or nil, not :peek/, assert_raises(ArgumentError) { seg.set_access(entries: { "user:0" => :peek }) }.message)
    assert_raises(Shmview::Limit) { seg.set_access(entries: (1..33).to_h { |i| ["user:#{i}", :read] }) }
    assert_raises(TypeError) { seg.set_access(mode: "rw") }
    assert_raises(RangeError) { seg.set_access(owner: 2**40) }
    assert_raises(Shmview::Invalid) { Shmview.wrap(Fiddle::Pointer["12"]).segment.mode }
    seg.close
    assert_raises(Shmview::Closed) { seg.mode }
    assert_raises(Shmview::Closed) { seg.set_access(mode: 0o600) }
  end

  def test_stress
    GC.stress = true
    seg = Shmview.create("seg", 10, entries: OTHERS)
    seg.set_access(mode: 0o640)
    assert_equal [0o640, OTHERS], [seg.mode, seg.entries]
  ensure
    GC.stress = false
  end
end
