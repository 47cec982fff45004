/* SPDX-License-Identifier: Apache-2.0 */
/* The meetings of the members of a node as a Promela model: mpi/control.h has the words and the
 * steps. An atomic block makes one access to shared memory, together with everything that the
 * member can derive from it alone. README.md explains what is checked, what is left out, and what
 * the flags of a run mean. */
#ifndef MEMBERS
#define MEMBERS 3 /* member 0 leads */
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef DEATHS
#define DEATHS 0
#endif

/* --- What is in memory --------------------------------------------------- */

byte arrived, released;
byte met[MEMBERS];
byte record[MEMBERS]; /* the meeting whose status it has; HALF: it is being written */
byte views[MEMBERS];  /* likewise, of the views in it, which are those of a collective */
byte status[2];       /* likewise, of the leader's results: of even and of odd meetings */
bool failed[2];       /* in the result: nobody meets again */

#define HALF 255

/* --- What the kernel knows ----------------------------------------------- */

bool ended[MEMBERS]; /* the process has exited, or was killed */

/* --- What is true -------------------------------------------------------- */

bool killed[MEMBERS];
bool was_killed;

inline kill(victim)
{
    atomic {
        n_left && !ended[victim] ->
        n_left--;
        was_killed = true;
        killed[victim] = true;
        ended[victim] = true
    }
}

#ifdef FAULT_COUNT_RESET
#define WANTED MEMBERS
#else
#define WANTED (epoch * MEMBERS)
#endif

#ifdef FAULT_ONE_RESULT /* the same for every meeting */
#define RESULT 0
#else
#define RESULT (epoch & 1)
#endif

/* A collective has two meetings: members read each other's views between them. */
#ifdef FAULT_ONE_MEETING
#define BEGINS true
#else
#define BEGINS (epoch & 1)
#endif

/* --- The leader ---------------------------------------------------------- */

/* Looks at the members one after the other. found is set if one has died that has not met the
 * others, or, if all have met them, any. */
inline look_for_dead()
{
    found = false;
    all_met = true;
    i = 0;
    do
    :: i < MEMBERS && !found ->
        atomic {
            all_met = all_met && met[i] == epoch;
            found = met[i] != epoch && ended[i];
            i++
        }
    :: else -> break
    od;
#ifndef FAULT_MET_TRUSTED /* a member that has written that it met may have died before it arrived */
    i = 0;
    do
    :: all_met && i < MEMBERS && !found ->
        atomic {
            found = ended[i];
            i++
        }
    :: else -> break
    od;
#endif
}

/* A nap ends when the word changes, and after 0.1 s. The model lets it end by time only if there
 * is something to find, so that a member which finds nothing in it sticks. */
#ifdef FAULT_MET_TRUSTED
#define THERE_IS_A_DEAD_ONE                                                                        \
    ((ended[1] && met[1] != epoch) || (MEMBERS > 2 && ended[MEMBERS - 1] && met[MEMBERS - 1] != epoch))
#else
#define THERE_IS_A_DEAD_ONE (ended[1] || ended[MEMBERS - 1])
#endif

inline await_members()
{
    do
    :: atomic {
           seen = arrived;
           if
           :: seen == WANTED -> break
           :: else
           fi
       }
       look_for_dead();
#ifndef FAULT_MEMBERS_NOT_WATCHED
       if
       :: found -> is_broken = true; break
       :: else
       fi;
       atomic { arrived != seen || THERE_IS_A_DEAD_ONE }
#else
       atomic { arrived != seen }
#endif
    od
}

inline lead()
{
    await_members();
    i = 0;
    do
    :: i < MEMBERS && !is_broken ->
        atomic {
            assert(record[i] == epoch);
            i++
        }
    :: else -> break
    od;
#ifdef FAULT_RELEASED_FIRST
    atomic { released = epoch };
    atomic { status[RESULT] = epoch; failed[RESULT] = is_broken };
#else
    atomic { status[RESULT] = HALF };
    atomic { status[RESULT] = epoch; failed[RESULT] = is_broken };
    atomic { released = epoch };
#endif
#ifdef FAULT_COUNT_RESET /* a member that arrives before that is not counted */
    atomic { arrived = 0 }
#endif
}

/* --- A member ------------------------------------------------------------ */

inline follow()
{
    do
    :: atomic {
           if
           :: released == epoch -> break
           :: else
           fi
       }
#ifdef FAULT_LEADER_NOT_WATCHED
       atomic { released == epoch }
#else
       atomic { released == epoch || ended[0] };
       atomic { dead = ended[0] };
#ifdef FAULT_NOT_LOOKED_AGAIN
       atomic {
           if
           :: dead -> is_broken = true
           :: else
           fi
       }
#else
       atomic {
           if
           :: dead && released != epoch -> is_broken = true
           :: else
           fi
       }
#endif
       if
       :: is_broken -> break
       :: else
       fi
#endif
    od;
    atomic {
        if
        :: !is_broken -> assert(status[RESULT] == epoch); is_broken = failed[RESULT]
        :: else -> assert(was_killed) /* nobody reports a death that did not happen */
        fi
    }
}

inline read_views()
{
    i = 0;
    do
    :: i < MEMBERS ->
        atomic {
            assert(views[i] == epoch);
            i++
        }
    :: else -> break
    od
}

inline meet()
{
    epoch++;
    if
    :: BEGINS ->
        atomic { views[_pid] = HALF };
        atomic { views[_pid] = epoch }
    :: else
    fi;
#ifdef FAULT_ARRIVED_FIRST
    atomic { arrived++ };
    atomic { record[_pid] = HALF };
    atomic { record[_pid] = epoch };
    atomic { met[_pid] = epoch };
#else
    atomic { record[_pid] = HALF };
    atomic { record[_pid] = epoch };
    atomic { met[_pid] = epoch };
    atomic { arrived++ };
#endif
    if
    :: _pid == 0 -> lead()
    :: else -> follow()
    fi;
    if
    :: BEGINS && !is_broken -> read_views()
    :: else
    fi
}

active [MEMBERS] proctype member()
{
    byte epoch, seen, i;
    bool found, all_met, dead, is_broken;
    {
        do
        :: epoch < ROUNDS && !is_broken -> meet()
        :: else -> break
        od
    } unless { killed[_pid] };
    atomic { ended[_pid] = true } /* the process exits, or was killed */
}

/* A death may also not come. */
#if DEATHS > 0
active proctype fate()
{
    byte n_left = DEATHS;
end:
    do
    :: atomic { n_left -> n_left = 0 }
    :: kill(0)
    :: kill(1)
#if MEMBERS > 2
    :: kill(2)
#endif
    od
}
#endif
