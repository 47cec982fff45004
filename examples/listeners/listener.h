/* SPDX-License-Identifier: Apache-2.0 */
/* listener.h - a process that takes blocks of sound from a stream, each time it is given a turn. */
#ifndef LISTENERS_LISTENER_H
#define LISTENERS_LISTENER_H

#include <stdint.h>
#include <sys/types.h>

/* In the user bytes of each frame. */
struct position {
    uint64_t first; /* sample of the sound, of one channel */
};

struct listener {
    const char *name;
    unsigned pace; /* it needs the time of so many blocks for one */
    /* Where it writes all blocks as a sound file, in their order. NULL: it takes the newest block
     * each time, and measures the peak. */
    const char *output;
    int rate;
    int channels;
    /* of the parent */
    pid_t pid; /* 0: not there any longer */
    int fd;
    int was_killed;
    uint64_t taken;
    uint64_t missed;
};

/* The answer to a turn. */
struct answer {
    uint64_t sequence; /* of the block that it has taken; 0: the stream has ended */
    uint64_t missed;   /* blocks between the one before and this one */
    int32_t peak;      /* the largest sample */
};

/* Starts the process, which attaches the stream and joins it before this returns. */
void listener_start(struct listener *listener, const char *stream);

/* Gives a turn to the process: it is done with its block, and takes another one, which it then
 * holds until its next turn. Waits until it has done so. */
struct answer listener_turn(struct listener *listener);

/* Kills the process, as a fault might, and waits until it is gone. */
void listener_kill(struct listener *listener);

/* Waits for the end of the process, which has answered that the stream has ended. */
void listener_end(struct listener *listener);

#endif
