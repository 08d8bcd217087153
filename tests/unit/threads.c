/*
 * Several profiles at once, each in a thread of its own, by include/wick.h alone: every thread opens every input and writes it in four
 * formats, and all of them must get the same bytes. tests/project builds this with ThreadSanitizer.
 *
 * usage: threads FOLDER SYMFS INPUT…
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../include/wick.h"

enum { THREADS = 4, FORMATS = 4, PATH = 4096 };

static const char *const endings[FORMATS] = {"folded", "svg", "html", "pb.gz"};

struct worker {
    pthread_t thread;
    int number, input_count;
    const char *folder, *symfs;
    char **inputs;
    atomic_int told; /* how often its own hook was called */
    bool failed;
};

static bool count(void *user, const char *what, uint64_t done, uint64_t total) {
    atomic_fetch_add((atomic_int *)user, 1);
    return true;
}

static void output_path(char *path, const struct worker *w, int input, int format) {
    snprintf(path, PATH, "%s/%d-%d.%s", w->folder, w->number, input, endings[format]);
}

static bool write_as(struct wick *wick, const char *path, int format, struct wick_error *error) {
    switch (format) {
    case 0:
        return wick_write_folded(wick, path, error);
    case 1:
        return wick_write_svg(wick, path, NULL, error);
    case 2:
        return wick_write_html(wick, path, NULL, error);
    default:
        return wick_write_format(wick, "pprof", path, "threads", error);
    }
}

static bool read_one(struct worker *w, int input) {
    struct wick_error error = {0};
    const char *paths[] = {w->inputs[input]};
    struct wick_options options = {.threads = 2,
                                   .keep_times = true,
                                   .symfs = w->symfs,
                                   .kallsyms = "/dev/null",
                                   .progress = count,
                                   .progress_user = &w->told};
    struct wick *wick = wick_open(paths, 1, &options, &error);
    bool fine = wick != NULL;
    for (int format = 0; fine && format < FORMATS; format++) {
        char path[PATH];
        output_path(path, w, input, format);
        fine = write_as(wick, path, format, &error);
    }
    if (!fine)
        fprintf(stderr, "thread %d: %s: %s\n", w->number, paths[0], error.message);
    wick_close(wick);
    return fine;
}

/* Each begins with another input, so that different ones are read at the same time. */
static void *work(void *argument) {
    struct worker *w = argument;
    for (int i = 0; i < w->input_count; i++)
        w->failed |= !read_one(w, (i + w->number) % w->input_count);
    return NULL;
}

static bool same_bytes(const char *a, const char *b) {
    FILE *x = fopen(a, "r"), *y = fopen(b, "r");
    int c = 0, d = 0;
    while (x && y && (c = getc(x)) == (d = getc(y)) && c != EOF)
        ;
    bool same = x && y && c == d;
    if (x)
        fclose(x);
    if (y)
        fclose(y);
    if (!same)
        fprintf(stderr, "%s and %s differ\n", a, b);
    return same;
}

int main(int argc, char **argv) {
    static struct worker workers[THREADS];
    bool fine = argc > 3;
    for (int i = 0; fine && i < THREADS; i++) {
        workers[i] = (struct worker){.number = i,
                                     .folder = argv[1],
                                     .symfs = argv[2],
                                     .inputs = argv + 3,
                                     .input_count = argc - 3};
        fine = pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0;
    }
    for (int i = 0; fine && i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < THREADS; i++) {
        fine = fine && !workers[i].failed && workers[i].told > 0;
        for (int k = 0; fine && k < (argc - 3) * FORMATS; k++) {
            char first[PATH], other[PATH];
            output_path(first, &workers[0], k / FORMATS, k % FORMATS);
            output_path(other, &workers[i], k / FORMATS, k % FORMATS);
            fine = same_bytes(first, other);
        }
    }
    return fine ? 0 : 1;
}
