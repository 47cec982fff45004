/* SPDX-License-Identifier: Apache-2.0 */
#include "sound.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK_SAMPLES 4096

void sound_open(struct sound *sound, const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) < 0)
        err(1, "%s", path);
    if (!S_ISREG(status.st_mode))
        errx(1, "%s: not a regular file", path);
    if (status.st_size == 0)
        errx(1, "%s: the file is empty", path);

    *sound = (struct sound){.path = path};
    sound->file = sf_open_fd(fd, SFM_READ, &sound->info, SF_TRUE);
    if (!sound->file)
        errx(1, "%s: not a sound file: %s", path, sf_strerror(NULL));
    if (sound->info.frames <= 0)
        errx(1, "%s: the sound has no samples", path);
    if (sound->info.frames > SOUND_SAMPLES_MAX)
        errx(1, "%s: the sound has %lld samples, this program takes %u", path,
             (long long)sound->info.frames, SOUND_SAMPLES_MAX);
    sound->n = (size_t)sound->info.frames;
}

static float mix(const float *frame, int n_channels)
{
    double sum = 0;
    for (int channel = 0; channel < n_channels; channel++)
        sum += (double)frame[channel];
    return (float)(sum / n_channels);
}

void sound_load(struct sound *sound, float *samples)
{
    const int n_channels = sound->info.channels;
    float *chunk = calloc(CHUNK_SAMPLES * (size_t)n_channels, sizeof *chunk);
    if (!chunk)
        err(1, "%s", sound->path);

    sf_seek(sound->file, 0, SEEK_SET);
    size_t n = 0;
    while (n < sound->n) {
        size_t wanted = sound->n - n < CHUNK_SAMPLES ? sound->n - n : CHUNK_SAMPLES;
        sf_count_t got = sf_readf_float(sound->file, chunk, (sf_count_t)wanted);
        if (got <= 0)
            errx(1, "%s: ends after %zu of %zu samples", sound->path, n, sound->n);
        for (sf_count_t i = 0; i < got; i++, n++) {
            samples[n] = mix(chunk + i * n_channels, n_channels);
            if (!isfinite(samples[n]))
                errx(1, "%s: sample %zu is not a finite number", sound->path, n);
        }
    }
    free(chunk);
}

void sound_close(struct sound *sound)
{
    sf_close(sound->file);
    sound->file = NULL;
}

/* Returns NULL, or the reason of the failure. */
static const char *write_wav(const char *path, int rate, const int16_t *samples, size_t n)
{
    SF_INFO info = {.samplerate = rate, .channels = 1, .format = SF_FORMAT_WAV | SF_FORMAT_PCM_16};
    const char *text = NULL;
    SNDFILE *file = sf_open(path, SFM_WRITE, &info);
    if (!file)
        return sf_strerror(NULL);
    if (sf_write_short(file, samples, (sf_count_t)n) != (sf_count_t)n)
        text = sf_strerror(file);
    if (sf_close(file) != 0 && !text)
        text = "the file cannot be closed";
    return text;
}

void sound_save(const char *path, int rate, const int16_t *samples, size_t n)
{
    char part[4096];
    if (snprintf(part, sizeof part, "%s.part", path) >= (int)sizeof part)
        errx(1, "%s: the name is too long", path);

    const char *text = write_wav(part, rate, samples, n);
    if (text) {
        unlink(part);
        errx(1, "%s: cannot be written: %s", path, text);
    }
    if (rename(part, path) < 0) {
        int error = errno;
        unlink(part);
        errx(1, "%s: %s", path, strerror(error));
    }
}
