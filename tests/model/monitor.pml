/* SPDX-License-Identifier: Apache-2.0 */
/* A monitor of the Python package as a Promela model, by the example of a semaphore:
 * bindings/python/sync/monitor.h has the bytes and the rules, semaphore.c the example. The mutex is
 * that of mutex.pml, which is proved there; here it is one step, and it reports a death inside. An
 * atomic block makes one access to shared memory. README.md explains the flags. */
#ifndef THREADS
#define THREADS 2
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef PERMITS
#define PERMITS 1
#endif

/* --- What is in memory --------------------------------------------------- */

#define FREE 255
byte owner = FREE; /* of the mutex */
bool died;         /* its last owner was killed inside */

byte value = PERMITS;   /* free permits */
byte held[THREADS];     /* the table: how many permits each process has */
byte sequence;          /* of the bell; modulo 8 */
bool waiting;
byte n_writes;          /* the change: value and one entry of the table */
byte new_value, entry, new_held;

/* --- What the kernel knows ----------------------------------------------- */

bool killed[THREADS], n_gone[THREADS];
byte at_bell; /* parked */
byte bounded; /* their next park ends by its time, because a process was killed since the last one */

#define MY_BIT  (1 << _pid)
#define ALL     ((1 << THREADS) - 1)

/* --- What is true -------------------------------------------------------- */

byte n_used[THREADS]; /* permits that a living process uses */
#if THREADS > 2
#define USED (n_used[0] + n_used[1] + n_used[2])
#define HELD (held[0] + held[1] + held[2])
#else
#define USED (n_used[0] + n_used[1])
#define HELD (held[0] + held[1])
#endif

inline kill(i)
{
    atomic {
        n_left && !killed[i] && !n_gone[i] ->
        n_left--;
        killed[i] = true;
        n_used[i] = 0;
        at_bell = at_bell & ~(1 << i);
        if
        :: owner == i -> owner = FREE; died = true
        :: else
        fi;
#ifndef FAULT_UNBOUNDED
        bounded = ALL & ~(1 << i)
#endif
    }
}

/* --- A process ------------------------------------------------------------ */

#define check(condition, otherwise) if :: condition :: else -> goto otherwise fi

/* Enters the monitor. After a death inside, completes the change, and rings. */
inline enter()
{
    atomic { owner == FREE -> owner = _pid; repairs = died };
    if
    :: repairs ->
#ifndef FAULT_NOT_REDONE
        carry_out();
#else
        n_writes = 0;
#endif
        ring_all();
        atomic { died = false; repairs = false }
    :: else
    fi
}

inline leave()
{
    atomic { assert(owner == _pid); owner = FREE }
}

inline carry_out()
{
    if
    :: n_writes ->
        value = new_value;
        held[entry] = new_held;
        n_writes = 0
    :: else
    fi
}

/* Changes value and the entry of process i. */
inline change(v, i, h)
{
#ifdef FAULT_NO_NOTES /* writes at once */
    value = v;
    held[i] = h;
#else
    new_value = v;
    atomic { entry = i; new_held = h };
    n_writes = 1;
    carry_out()
#endif
}

inline wake_one()
{
    if
    :: at_bell & 1 -> at_bell = at_bell & ~1; n_woken = 1
    :: at_bell & 2 -> at_bell = at_bell & ~2; n_woken = 1
    :: at_bell & 4 -> at_bell = at_bell & ~4; n_woken = 1
    :: at_bell == 0 -> n_woken = 0
    fi
}

inline ring_one()
{
#ifndef FAULT_SEQUENCE_LATE
    sequence = (sequence + 1) % 8;
#endif
    if
    :: waiting ->
        atomic { wake_one() };
        if
        :: n_woken == 0 -> waiting = false
        :: else
        fi
    :: else
    fi
#ifdef FAULT_SEQUENCE_LATE
    ;
    sequence = (sequence + 1) % 8
#endif
}

inline ring_all()
{
    sequence = (sequence + 1) % 8;
    at_bell = 0;
    waiting = false
}

/* Gives back the permits of processes that were killed. */
inline bury()
{
    i = 0;
    do
    :: i < THREADS ->
        if
        :: killed[i] && held[i] -> change(value + held[i], i, 0); ring_all()
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0
}

active [THREADS] proctype process()
{
    byte n_left = ROUNDS, seen, i, n_woken;
    bool repairs;

next: {
        check(n_left, gone);
        n_left--;

        /* --- Acquire --- */
        enter();
look:
        assert(value + HELD == PERMITS);
        check(value == 0, take);
        seen = sequence;
        waiting = true;
        leave();
        atomic { check(sequence == seen, awake); at_bell = at_bell | MY_BIT };
        if
        :: atomic { !(at_bell & MY_BIT) -> goto awake }
        :: atomic { bounded & MY_BIT -> at_bell = at_bell & ~MY_BIT; bounded = bounded & ~MY_BIT }
        fi;
        enter(); /* nothing was rung */
#ifndef FAULT_NOT_BURIED
        bury();
#endif
        goto look;
awake:
        enter();
        goto look;
take:
        change(value - 1, _pid, held[_pid] + 1);
        atomic { n_used[_pid]++; assert(USED <= PERMITS) };
        leave();

        /* --- Release --- */
        enter();
        n_used[_pid]--;
        change(value + 1, _pid, held[_pid] - 1);
#ifdef FAULT_WAITING_CLEARED /* forgets those who wait beside the one that it wakes */
        ring_one();
        waiting = false;
#else
        ring_one();
#endif
        leave();
        goto next
    } unless { killed[_pid] }
gone:
    atomic { n_gone[_pid] = true }
end_gone:
    false
}

/* A death that may still come would end every park. Therefore it may also not come. */
#if DEATHS > 0
active proctype fate()
{
    byte n_left = DEATHS;
end:
    do
    :: atomic { n_left -> n_left = 0 }
    :: kill(0)
    :: kill(1)
#if THREADS > 2
    :: kill(2)
#endif
    od
}
#endif
