/* SPDX-License-Identifier: Apache-2.0 */
/* sound.h - sound files, read and written by libsndfile.
 *
 * If a file is not what these functions need, they end the program with a message that names it. */
#ifndef PHASES_SOUND_H
#define PHASES_SOUND_H

#include <stddef.h>
#include <stdint.h>

#include <sndfile.h>

/* About 25 minutes at 22,050 Hz. It keeps the segment below 400 MiB. */
#define SOUND_SAMPLES_MAX (1u << 25)

struct sound {
    const char *path; /* borrowed */
    SNDFILE *file;
    SF_INFO info;
    size_t n; /* samples of one channel */
};

/* Opens a sound file for reading. The caller must call sound_close(). */
void sound_open(struct sound *sound, const char *path);

/* Reads all samples into samples[sound->n]. Mixes the channels to one. */
void sound_load(struct sound *sound, float *samples);

void sound_close(struct sound *sound);

/* Writes n samples as a 16-bit WAV file. The file appears at path when it is complete. */
void sound_save(const char *path, int rate, const int16_t *samples, size_t n);

#endif
