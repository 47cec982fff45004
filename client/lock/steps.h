/* SPDX-License-Identifier: Apache-2.0 */
/* Names for the places between two effects that other processes can see.
 *
 * Only the stress test is compiled with them. At each place it may kill the process, delay it or
 * stop it. The product has no code for a step. */
#ifndef CLIENT_STEPS_H
#define CLIENT_STEPS_H

/* X(NAME, where), in the order in which a call passes them. In the texts "mine" means that of the
 * client which takes the step. */
#define STEP_LIST(X)                                                                               \
    X(TAKES, "take: before the first attempt at the word")                                         \
    X(TAKEN, "take: the word is mine at the first attempt")                                        \
    X(TAKEN_SPINNING, "take: the word is mine after spinning")                                     \
    X(WORD_SEEN, "take: deaths and word are read")                                                 \
    X(TAKES_FREE, "take: the word is free, which it was not before")                               \
    X(TAKES_DEAD, "take: the word names a dead owner")                                             \
    X(TAKEN_LATE, "take: the word is mine after looking again")                                    \
    X(TAKEN_OVER, "take: the word of a dead owner is mine, its takeover not counted")              \
    X(TAKEOVER_COUNTED, "take: the takeover is counted, the groups are not set")                   \
    X(GROUPS_DISTRUSTED, "take: the takeover is counted, all groups are set")                      \
    X(W_SET, "take: W is set, the deadline not yet looked at")                                     \
    X(PARKS, "take: the deadline has not passed, not yet parked")                                  \
    X(UNPARKED, "take: parked, and back")                                                          \
    X(READERS_SEEN, "drain: deaths and event are read, the slots are not")                         \
    X(READER_CLEARED, "drain: the count of a dead reader is cleared")                              \
    X(CLEARS_GROUPS, "drain: no reader is left, the groups are not yet cleared")                   \
    X(GROUPS_CLEARED, "drain: the groups are cleared, not looked at again")                        \
    X(GROUP_READS, "drain: a group that is cleared has a reader")                                  \
    X(DRAIN_PARKS, "drain: a living reader is left, not yet parked")                               \
    X(DRAIN_UNPARKED, "drain: parked, and back")                                                   \
    X(DRAIN_GIVES_UP, "drain: the deadline passed, the word is still mine")                        \
    X(GOES_INSIDE, "enter: no reader is left, inside is not yet mine")                             \
    X(INSIDE, "enter: inside is mine")                                                             \
    X(GOES_OUTSIDE, "leave: inside is still mine")                                                 \
    X(OUTSIDE, "leave: inside is given up, the word is not")                                       \
    X(OUTSIDE_UNTIDY, "leave: after a death or not repaired, the word is still mine")              \
    X(RELEASES, "release: others may wait, the word is still mine")                                \
    X(RELEASED, "release: the word is free, no waiter is woken")                                   \
    X(RELEASED_ALONE, "release: the word is free, nobody waits")                                   \
    X(GATE_OPENED, "wake: the gate has its event, readers are not woken")                          \
    X(GATE_WOKEN, "wake: readers are woken, no writer is")                                         \
    X(WOKEN, "wake: all are woken that the flags asked for")                                       \
    X(COUNTS, "reader: not yet counted")                                                           \
    X(COUNTED, "reader: counted, its group and the word not yet read")                             \
    X(GROUP_SET, "reader: counted and its group set, the word not yet read")                       \
    X(SHARES, "reader: counted, and the word was free")                                            \
    X(UNCOUNTS, "reader: still counted, on the way out")                                           \
    X(UNCOUNTED, "reader: uncounted, the word not yet read")                                       \
    X(DRAIN_OWED, "reader: the last one out, an owner waits, no event yet")                        \
    X(DRAIN_TOLD, "reader: the drain has its event, its owner is not woken")                       \
    X(FAIR_TAKEN, "fair gate: the word is mine, not yet counted")                                  \
    X(FAIR_REPAIRS, "fair gate: the word is mine, an owner died inside")                           \
    X(FAIR_COUNTED, "fair gate: counted, the word is still mine")                                  \
    X(GATE_SEEN, "gate: deaths, gate and word are read")                                           \
    X(R_SET, "gate: R is set")                                                                     \
    X(GATE_PARKS, "gate: R is set, not yet parked")                                                \
    X(GATE_UNPARKED, "gate: parked, and back")                                                     \
    X(THREAD_SHARES, "thread exit: still counted as a reader")                                     \
    X(THREAD_EXITS, "thread exit: holding, inside not yet marked")                                 \
    X(THREAD_MARKED, "thread exit: marked as dead inside, the word still mine")                    \
    X(SWITCHES, "phase: the old one still")                                                        \
    X(SWITCHED, "phase: the new one, nobody is woken")                                             \
    X(SWITCH_WOKEN, "phase: its waiters are woken, no change is notified")                         \
    X(CHANGED, "change: counted, nobody is woken")                                                 \
    X(CHANGE_CLEARED, "change: change_waits has changed, nobody is woken")                         \
    X(CHANGE_WAITS, "change: the flag of waiters is set, not yet parked")                          \
    X(STREAM_ROLE, "stream: the writer is me, a dead one is not marked")                           \
    X(STREAM_MARKED, "stream: a dead writer is marked")                                            \
    X(STREAM_OWNS, "stream: the slot is not yet mine")                                             \
    X(STREAM_OWNED, "stream: the slot is mine, a dead owner is not marked")                        \
    X(STREAM_TAIL, "stream: the tails are moved, readers are not looked at")                       \
    X(STREAM_CLEARS, "stream: nobody needs the frame of the slot, which shows it still")           \
    X(STREAM_CLEARED, "stream: the slot shows nothing, holds are not looked at")                   \
    X(STREAM_DISOWNS, "stream: the slot is not free, and still mine")                              \
    X(STREAM_FILLED, "stream: the frame is filled, not published")                                 \
    X(STREAM_SHOWS, "stream: the slot shows the number, the ring does not")                        \
    X(STREAM_PUBLISHED, "stream: published, the slot is still mine")                               \
    X(STREAM_COUNTED, "stream: counted, the slot is given back, nobody is woken")                  \
    X(STREAM_GIVEN, "stream: the slot is given back, no writer is woken")                          \
    X(STREAM_ENDS, "stream: the end of the stage is known, not stored")                            \
    X(STREAM_OPENED, "stream: the gate is open, nobody is woken")                                  \
    X(STREAM_WOKEN, "stream: published, and readers are woken")                                    \
    X(STREAM_CLOSED, "stream: the gate is closed, not looked again")                               \
    X(STREAM_NOBODY, "stream: the place of an earlier reader is nobody's")                         \
    X(STREAM_PLACED, "stream: the next number is stored, not yet joined")                          \
    X(STREAM_JOINED, "stream: joined, the tail is not read")                                       \
    X(STREAM_HELD, "stream: the slot is held, not looked at")                                      \
    X(STREAM_EMPTY, "stream: there is no frame, writers are not looked at")                        \
    X(STREAM_TAKEN, "stream: taken, the next number is stored")                                    \
    X(STREAM_RELEASED, "stream: released, no writer is woken")                                     \
    X(STREAM_NOTED, "stream: the death of a writer is noted in the reader")                        \
    X(STREAM_PASSES, "stream: a frame is half passed on, the ring does not have it")               \
    X(STREAM_PASSED, "stream: a frame is passed on, the slot does not show that it is done")       \
    X(ADOPTS, "slot: nothing is written yet")                                                      \
    X(ADOPT_UNSIGNED, "slot: my predecessor's name is off it")                                     \
    X(ADOPT_UNCOUNTED, "slot: pid and command are mine, the count is not")                         \
    X(ADOPT_COUNTS, "slot: the count is mine, not yet signed")                                     \
    X(ADOPTED, "slot: mine and signed")

enum step {
#define X(name, where) AT_##name,
    STEP_LIST(X)
#undef X
    N_STEPS
};

/* The product calls it at each place; the stress test defines it. */
void shmview_step(int step);

#endif
