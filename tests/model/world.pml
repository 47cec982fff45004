/* SPDX-License-Identifier: Apache-2.0 */
/* Deaths, and the daemon that announces them. */

inline kill(slot)
{
    atomic {
        n_left && n_gone[slot] < CREW_SIZE(slot) && !killed[slot] ->
        n_left--;
        killed[slot] = true;
        stop(CREW(slot));
        at_word = at_word & ~CREW(slot);
        at_gate = at_gate & ~CREW(slot);
        at_drain = at_drain & ~CREW(slot)
    }
}

/* A death that may still come would end every park. Therefore it may also not come. */
#if DEATHS > 0
active proctype fate()
{
    byte n_left = DEATHS;
end:
    do
    :: atomic { n_left -> n_left = 0 }
#ifndef EARLY
    :: kill(0)
#endif
    :: kill(1)
#if SLOTS > 2
    :: kill(2)
#endif
#if SLOTS > 3
    :: kill(3)
#endif
    od
}
#endif

inline mark_dead(k)
{
    slot = k;
    generation = live[k];
#ifndef FAULT_DEATH_ANNOUNCED_FIRST
    live[k] = 0
#endif
}

/* The daemon ends all attachments, one slot after the other. */
inline mark_ended(k)
{
    atomic {
        if
#ifdef FAULT_ENDED_IS_DEAD /* a client whose slot is not marked yet takes the lock from another */
        :: live[k] -> live[k] = 0
#else
        :: live[k] -> live[k] = live[k] | ENDED
#endif
        :: else
        fi
    }
}

inline mark_all_ended()
{
    mark_ended(0);
    mark_ended(1);
#if SLOTS > 2
    mark_ended(2);
#endif
#if SLOTS > 3
    mark_ended(3);
#endif
    skip
}

inline notice(k)
{
    atomic { killed[k] && n_gone[k] == CREW_SIZE(k) -> killed[k] = false; mark_dead(k) }
}

active proctype daemon()
{
    byte slot, generation;
#ifdef EARLY
    bool may_declare = true;
#endif
#ifdef END
    bool may_end = true, ends;
#endif
end:
    if
    :: notice(0)
    :: notice(1)
#if SLOTS > 2
    :: notice(2)
#endif
#if SLOTS > 3
    :: notice(3)
#endif
#ifdef EARLY
    :: atomic { may_declare -> may_declare = false; goto end }
    :: atomic {
        may_declare ->
        may_declare = false;
        declared = true;
        reading = reading & ~1;
        mark_dead(0)
    }
#endif
#ifdef END
    :: atomic { may_end -> may_end = false; goto end }
    :: atomic { may_end -> may_end = false; ends = true }
#ifndef FAULT_END_ANNOUNCED_FIRST
        mark_all_ended()
#endif
#endif
    fi;
    deaths = 0;
#ifndef FAULT_DEATHS_NOT_AWAITED
    atomic { at_word = 0; at_gate = 0; at_drain = 0 }
#endif
#ifdef FAULT_DEATH_ANNOUNCED_FIRST /* a thread that looks again finds every owner alive */
    live[slot] = 0;
#endif
#ifdef END
    if
    :: ends -> goto gone
    :: else
    fi;
#endif
#ifdef REUSE
    live[slot] = generation + 1;
#endif
    atomic { generation = 0; slot = 0; goto end }
#ifdef END
gone:
#ifdef FAULT_END_ANNOUNCED_FIRST /* a waiter looks again before its slot is marked */
    mark_all_ended();
#endif
end_gone:
    false
#endif
}
