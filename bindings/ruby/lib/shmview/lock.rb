# frozen_string_literal: true

# SPDX-License-Identifier: Apache-2.0

module Shmview
  # The lock, held for a block. It is recursive for each thread. Waiting frees the GVL; signals,
  # Thread#raise, Thread#kill and Timeout.timeout end it. The lock belongs to the thread: all
  # Fibers of one hold it, and a Thread that ends inside has died inside.
  class Segment
    # Holds the lock exclusively for the block, to which it yields self; returns what the block
    # returns. +timeout+: seconds to wait, then TimedOut is raised; nil: as long as it takes.
    #
    # Raises OwnerDied where the last exclusive holder died inside, and holds nothing then: see
    # recover. Raises TimedOut, Deadlock (the thread holds it shared), NoLock, TooDeep, Closed.
    def synchronize(timeout: nil)
      _enter(timeout)
      begin
        yield self
      ensure
        _leave
      end
    end

    # Holds the lock among other readers for the block. As synchronize in everything else; also
    # raises Limit (a thread that holds 64 segments shared).
    def shared(timeout: nil)
      _enter_shared(timeout)
      begin
        yield self
      ensure
        _leave
      end
    end

    # Holds the lock exclusively for the block, in any case: it is given the OwnerDied that says who
    # died inside, or nil. A block that runs to its end has repaired; one that is left by an
    # exception, break, throw or Thread#kill has not, and the next one is told again. Raises what
    # synchronize raises but OwnerDied.
    def recover(timeout: nil)
      died = _enter_anyway(timeout)
      done = false
      begin
        found = yield died
        done = true
        found
      ensure
        unlock(repaired: died.nil? || done)
      end
    end
  end
end
