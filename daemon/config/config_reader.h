/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the texts of files into a configuration, and reports one line for each error:
 *
 *     config_reader_begin(&reader, lookup, memory, say, arg);
 *     config_reader_add(&reader, "/etc/shmviewd.json", text, bytes);     any number
 *     config = config_reader_end(&reader);
 *
 * A reader never opens a file and never asks the system for users: config_read.h does that. Tests
 * and the fuzzer therefore need neither.
 *
 * Every error is reported with its file, with its line, and with the path of the value; errors
 * about a whole file have the file only. Reading goes on after an error, so that an administrator
 * sees all errors at once. After any error there is no configuration. */
#ifndef DAEMON_CONFIG_READER_H
#define DAEMON_CONFIG_READER_H

#include "daemon/config/config.h"
#include "daemon/config/config_value.h"

/* Receives one error as "FILE:LINE: TEXT", without a newline or other control characters. The line
 * is borrowed. */
typedef void config_say(void *arg, const char *line);

/* The state of one reading. It is used by one thread. */
struct config_reader {
    struct config *config; /* under construction; owned until config_reader_end() */
    config_lookup *lookup;
    uint64_t memory; /* of the machine in bytes, for sizes in per cent */
    config_say *say;
    void *arg;
    unsigned n_errors;
    unsigned n_passing;      /* those of n_errors that another reading may not find */
    bool says_who_creates;   /* a file had the key "create", which replaces the default */
    const char *file, *text; /* the file that is being read */
    char path[256];          /* the value that is being read, such as "quotas.user.bytes" */
};

/* Returns 0, or -1 after reporting that memory is short. After 0 the caller owes
 * config_reader_end(). */
int config_reader_begin(struct config_reader *reader, config_lookup *lookup, uint64_t memory,
                        config_say *say, void *arg);

/* Reads one text, which has a NUL after its bytes. A later text overrides single values of an
 * earlier one, and adds to its lists. */
void config_reader_add(struct config_reader *reader, const char *file, const char *text,
                       size_t bytes);

/* Reports an error of a line of a file; line 0 stands for the file as a whole. */
__attribute__((format(printf, 4, 5))) void config_reader_fault(struct config_reader *reader,
                                                               const char *file, unsigned line,
                                                               const char *format, ...);

/* Counts the error that is reported next as one of the machine and not of the configuration. */
void config_reader_passing(struct config_reader *reader);

/* Returns the new configuration, which the caller owns, or NULL if there was any error. */
struct config *config_reader_end(struct config_reader *reader);

/* --- For config_reader.c and config_segment.c ------------------------------ */

/* One key of an object. read() converts its value and stores it at `at`, which points to `offset`
 * within the struct; on an error it calls config_fault(). */
struct config_key {
    const char *name; /* NULL ends a table */
    void (*read)(struct config_reader *reader, const json_t *value, void *at);
    size_t offset;
    bool required;
};

/* Reads an object by a table of keys. A key that is not in the table is a fault, because it is
 * probably a spelling mistake, and ignoring it would ignore a limit. */
void config_read_object(struct config_reader *reader, const json_t *value,
                        const struct config_key *keys, void *into);

/* Reports an error of the value at reader->path, with its line. */
__attribute__((format(printf, 2, 3))) void config_fault(struct config_reader *reader,
                                                        const char *format, ...);

/* Reports that memory is short, for the value at reader->path. */
void config_fault_memory(struct config_reader *reader);

/* Append a key or an index to the path. The result is for config_path_cut(), which restores it. */
size_t config_path_key(struct config_reader *reader, const char *key);
size_t config_path_index(struct config_reader *reader, size_t index);
void config_path_cut(struct config_reader *reader, size_t mark);

/* Reads a mode, a string of octal digits, into a uint32_t. */
void config_read_mode(struct config_reader *reader, const json_t *value, void *at);

void config_read_bool(struct config_reader *reader, const json_t *value, void *at);
/* Reads the word for an enum shmview_backing into an int64_t. */
void config_read_backing(struct config_reader *reader, const json_t *value, void *at);
/* Read "wanted" or "required" into an int64_t, and "interleaved" or the number of a node into
 * a struct config_segment (config_placement.c). */
void config_read_huge(struct config_reader *reader, const json_t *value, void *at);
void config_read_numa(struct config_reader *reader, const json_t *value, void *segment);

/* Returns the string, borrowed from value, or NULL after a fault. */
const char *config_string(struct config_reader *reader, const json_t *value);

/* Reports why a user or group cannot be found; error is a result of config_parse_id(). */
void config_fault_id(struct config_reader *reader, const char *text, enum access_kind kind,
                     int error);

/* Reads the array of declared segments. */
void config_read_segments(struct config_reader *reader, const json_t *value, void *config);
/* Gives segments without a mode the default mode. Call it after all files are read, because a later
 * file may set that default. */
void config_settle_segments(struct config_reader *reader);

#endif
