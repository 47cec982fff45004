/* SPDX-License-Identifier: Apache-2.0 */
/* Texts in, a configuration out, and a line for each thing that is wrong:
 *
 *     config_reader_begin(&reader, lookup, memory, say, arg);
 *     config_reader_add(&reader, "/etc/shmviewd.json", text, bytes);     any number
 *     config = config_reader_end(&reader);
 *
 * The file system is for daemon/config/config_read.h. */
#ifndef DAEMON_CONFIG_READER_H
#define DAEMON_CONFIG_READER_H

#include "daemon/config/config.h"
#include "daemon/config/config_value.h"

/* line has no newline and no control character: "FILE:LINE: what". */
typedef void config_say(void *arg, const char *line);

struct config_reader {
    struct config *config;
    config_lookup *lookup;
    uint64_t memory; /* of the machine, in bytes: what 100% is */
    config_say *say;
    void *arg;
    unsigned n_errors;
    bool says_who_creates;   /* no longer the default */
    const char *file, *text; /* the one that is read */
    char path[256];          /* of the value that is read */
};

/* Returns 0, or -1 when memory is short, which is said. */
int config_reader_begin(struct config_reader *reader, config_lookup *lookup, uint64_t memory,
                        config_say *say, void *arg);

/* text ends with a NUL behind its bytes. */
void config_reader_add(struct config_reader *reader, const char *file, const char *text,
                       size_t bytes);

/* Says what is wrong with file as a whole. */
__attribute__((format(printf, 3, 4))) void
config_reader_fault(struct config_reader *reader, const char *file, const char *format, ...);

/* Returns a new configuration; or NULL if anything was said. */
struct config *config_reader_end(struct config_reader *reader);

/* --- For config_reader.c and config_segment.c ------------------------------ */

/* One key of an object: read() is told where in the struct its value goes. */
struct config_key {
    const char *name; /* NULL ends a table */
    void (*read)(struct config_reader *reader, const json_t *value, void *at);
    size_t offset;
    bool required;
};

/* Reads what is at reader->path. Keys without a row are faults. */
void config_read_object(struct config_reader *reader, const json_t *value,
                        const struct config_key *keys, void *into);

/* Says what is wrong with the value at reader->path. */
__attribute__((format(printf, 2, 3))) void config_fault(struct config_reader *reader,
                                                        const char *format, ...);

/* Makes the path longer by a key, by an index. Returns what config_path_cut() takes. */
size_t config_path_key(struct config_reader *reader, const char *key);
size_t config_path_index(struct config_reader *reader, size_t index);
void config_path_cut(struct config_reader *reader, size_t mark);

/* Values: struct member uint32_t. */
void config_read_mode(struct config_reader *reader, const json_t *value, void *at);

/* The string, or NULL after a fault. */
const char *config_string(struct config_reader *reader, const json_t *value);

/* Says why a user or group cannot be found; error is of config_parse_id(). */
void config_fault_id(struct config_reader *reader, const char *text, enum access_kind kind,
                     int error);

/* The array of declared segments. */
void config_read_segments(struct config_reader *reader, const json_t *value, void *config);
/* Once all files are read. */
void config_settle_segments(struct config_reader *reader);

#endif
