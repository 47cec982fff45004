/* SPDX-License-Identifier: Apache-2.0 */
/* The mutex of a family of processes as a Promela model: include/shmview/mutex_layout.h has its
 * bytes, client/family/mutex.c the algorithm. An atomic block makes one access to shared memory,
 * together with everything that the thread can derive from it alone. README.md explains what is
 * checked, what is left out, and what the flags of a run mean. */
#ifndef THREADS
#define THREADS 2
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef DEATHS
#define DEATHS 0
#endif

/* --- What is in memory --------------------------------------------------- */

/* The word. birth:2 W:1 id:2. The kernel compares W and the id only. */
#define W              4
#define ID(v)          ((v) & 3)
#define BIRTH(v)       ((v) >> 3)
#define OWNER(v)       ((v) & ~W)
#define LOW(v)         ((v) & 7)
#define BIRTH_MAX      2
#define NAME(birth, i) ((birth) * 8 + (i) + 1)

#ifdef FAULT_NO_BIRTH /* an owner is only an id */
#define ME NAME(0, _pid)
#else
#define ME NAME(birth, _pid)
#endif

byte word;
bool died;

/* --- What the kernel knows ----------------------------------------------- */

byte live[THREADS] = 1; /* births of the threads that have these ids; 0: there is none */

#define MY_BIT      (1 << _pid)
#define member(set) (set & MY_BIT)
#define quit(set)   set = set & ~MY_BIT

byte at_word; /* parked */
byte woken;   /* and have neither taken the word since nor seen W in it */
byte owing;   /* have freed a word with W, and have still to wake a thread */
byte bounded; /* their parks end now by themselves, because a wake-up died with a thread */

inline wake_one()
{
    if
    :: at_word & 1 -> at_word = at_word & ~1; woken = woken | 1
    :: at_word & 2 -> at_word = at_word & ~2; woken = woken | 2
    :: at_word & 4 -> at_word = at_word & ~4; woken = woken | 4
    :: at_word == 0
    fi
}

#if defined FAULT_NO_BIRTH || defined FAULT_BIRTH_NOT_JUDGED /* any process with that id will do */
#define DEAD(v) (OWNER(v) && live[ID(v) - 1] == 0)
#else
#define DEAD(v) (OWNER(v) && live[ID(v) - 1] != BIRTH(v))
#endif

/* --- What is true -------------------------------------------------------- */

byte inside, holding;
bool killed[THREADS];
bool n_gone[THREADS];
bool broken; /* a thread was killed inside, nobody has repaired it */
bool reason; /* a thread was killed while it held the word, and no unlock has settled that */

inline kill(i)
{
    atomic {
        n_left && !killed[i] && !n_gone[i] ->
        n_left--;
        killed[i] = true;
        live[i] = 0;
        broken = broken || (inside & (1 << i));
        reason = reason || (holding & (1 << i));
        at_word = at_word & ~(1 << i);
        if
        :: (woken | owing) & (1 << i) -> bounded = bounded | at_word
        :: else
        fi;
        inside = inside & ~(1 << i);
        holding = holding & ~(1 << i);
        woken = woken & ~(1 << i);
        owing = owing & ~(1 << i);
        bounded = bounded & ~(1 << i)
    }
}

/* --- A thread ------------------------------------------------------------ */

#define FOREVER 1
#define UNTIL   2
#define ONCE    3
#define ENDED   4 /* the caller's function may end the wait */

#define check(condition, otherwise) if :: condition :: else -> goto otherwise fi

/* Chooses how long to wait, when there is something to wait for. */
inline choose_patience()
{
    if
    :: patience == 0 -> patience = FOREVER
#ifdef TIMED
    :: patience == 0 -> patience = UNTIL
#endif
#ifdef TRY
    :: patience == 0 -> patience = ONCE
#endif
#ifdef INTERRUPTED
    :: patience == 0 -> patience = ENDED
#endif
    :: patience
    fi
}

/* The thread has taken the word. */
inline take(value)
{
    word = value;
    holding = holding | MY_BIT;
    quit(woken);
    v = 0;
    patience = 0
}

active [THREADS] proctype thread()
{
    byte birth = 1, n_left = ROUNDS;
    byte v;
    byte patience;
    bool late, told;

next: {
        atomic {
            v = 0;
            patience = 0;
            late = false;
            told = false;
            check(n_left, gone);
            n_left--
        }

        /* --- Lock --- */
        atomic {
            check(word == 0, slowly);
            take(ME);
            goto owner
        }
slowly: /* a word that names the caller is a recursive mutex that it holds already */
        atomic { check(OWNER(word) == ME, look); goto enter }
look:
        atomic { v = word; check(v == 0, occupied) }
        atomic {
            check(word == 0, look);
#ifdef FAULT_CLAIM_WITHOUT_W /* forgets that others may be parked too */
            take(ME);
#else
            take(ME | W);
#endif
            goto owner
        }
occupied:
        atomic {
            choose_patience();
            check(patience != ONCE, last_look);
#ifdef FAULT_SILENT_TIMEOUT /* leaves before it sets W, perhaps with another's wake-up */
            if
            :: patience == UNTIL -> goto last_look
            :: true
            fi;
#endif
            check(!(v & W), marked)
        }
        atomic { check(word == v, look); v = v | W; word = v }
marked:
        atomic {
            quit(woken);
            if
            :: patience == UNTIL -> goto last_look
            :: true
            fi
        }
        atomic { check(LOW(word) == LOW(v), look); at_word = at_word | MY_BIT }
        if
        :: atomic { !member(at_word) -> quit(bounded) }
        :: atomic { patience == UNTIL -> quit(at_word); quit(bounded) }
        :: atomic { patience == ENDED && member(at_word) -> quit(at_word); quit(bounded); goto next }
#ifndef FAULT_UNBOUNDED
        :: atomic { member(bounded) || DEAD(word) -> quit(at_word); quit(bounded); goto judge }
#endif
        fi;
#ifdef FAULT_INTERRUPTED_WOKEN /* leaves, perhaps with another's wake-up */
        atomic {
            if
            :: patience == ENDED -> goto next
            :: true
            fi
        }
#endif
        goto look;
last_look:
        late = true;
judge:
        atomic { check(DEAD(v), alive) }
#ifdef FAULT_REPORTED_FIRST /* before it has the lock, which another thread may get */
        died = true;
#endif
        atomic {
#ifndef FAULT_PLAIN_TAKE_OVER
            check(word == v, alive);
#endif
#ifdef FAULT_TAKE_OVER_WITHOUT_W
            take(ME)
#else
            take(ME | W)
#endif
        }
#ifndef FAULT_NOT_REPORTED
        died = true;
#endif
        goto owner;
alive:
        atomic { check(late, look); goto next }

        /* --- Inside --- */
owner:
        told = died;
enter:
        atomic {
            assert(!inside);
            assert(!broken || told);
            assert(reason || !told);
            inside = inside | MY_BIT
        }
        atomic {
            quit(inside);
            if
            :: broken = false
#ifdef SPOIL
            :: broken = true; reason = true; goto not_repaired
#endif
            fi
        }

        /* --- Unlock --- */
#ifndef FAULT_SETTLED_LATE
        atomic { died = false; reason = false }
#endif
        goto release;
#ifdef SPOIL
not_repaired:
        died = true;
#endif
release:
#ifdef FAULT_PLAIN_RELEASE /* a thread that sets W in between sleeps on */
        v = word;
        word = 0;
        atomic { quit(holding); check(v & W, settle); goto wake };
#endif
        atomic {
            assert(OWNER(word) == ME);
            v = word;
            word = 0;
            quit(holding);
            check(v & W, settle);
            owing = owing | MY_BIT
        }
wake:
        atomic { wake_one(); quit(owing) }
settle:
#ifdef FAULT_SETTLED_LATE /* drops the report of a death after the release */
        atomic { died = false; reason = false }
#endif
        goto next
    } unless { killed[_pid] }

    atomic {
        v = 0;
        patience = 0;
        late = false;
        told = false;
        n_left = 0;
        birth++;
        check(birth <= BIRTH_MAX, gone)
    }
#ifdef REUSE /* another thread gets the id */
    atomic { killed[_pid] = false; live[_pid] = birth; n_left = ROUNDS; goto next }
#endif
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
