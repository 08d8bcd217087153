/*
 * hot: the ten functions that a profile spent most in, and a flame graph of it; and the profile for another tool, by how the file's name ends.
 *
 *     cc hot.c $(pkg-config --cflags --libs wick) -o hot
 *     ./hot perf.data flamegraph.svg
 *     ./hot perf.data flamegraph.svg profile.pb.gz
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wick.h>

struct row {
    const char *name;
    uint64_t self;
};

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct row *)a)->name, ((const struct row *)b)->name);
}

static int by_self(const void *a, const void *b) {
    const struct row *x = a, *y = b;
    return x->self != y->self ? (x->self < y->self) - (x->self > y->self) : by_name(a, b);
}

/* A function stands in the tree once for each way that leads to it: those are added up. */
static size_t add_up(struct row *rows, size_t count) {
    size_t kept = 0;
    qsort(rows, count, sizeof *rows, by_name);
    for (size_t i = 0; i < count; i++) {
        if (kept && strcmp(rows[kept - 1].name, rows[i].name) == 0)
            rows[kept - 1].self += rows[i].self;
        else
            rows[kept++] = rows[i];
    }
    qsort(rows, kept, sizeof *rows, by_self);
    return kept;
}

static void print_hot(const struct wick *wick) {
    size_t count = wick_frame_count(wick);
    uint64_t all = wick_frame_at(wick, 0).total;
    struct row *rows = calloc(count, sizeof *rows);
    for (size_t i = 0; rows && i < count; i++)
        rows[i] = (struct row){wick_frame_at(wick, i).name, wick_frame_at(wick, i).self};
    count = rows ? add_up(rows, count) : 0;
    for (size_t i = 0; i < count && i < 10 && rows[i].self; i++)
        printf("%6.2f %%  %s\n", 100.0 * (double)rows[i].self / (double)all, rows[i].name);
    printf("%llu %s in all\n", (unsigned long long)all, wick_unit(wick));
    free(rows);
}

int main(int argc, char **argv) {
    struct wick_error error;
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: hot PROFILE FLAMEGRAPH.svg [EXPORTED]\n");
        return 2;
    }
    const char *paths[] = {argv[1]};
    struct wick *wick = wick_open(paths, 1, NULL, &error);
    if (!wick || !wick_write_svg(wick, argv[2], NULL, &error) ||
        (argc == 4 && !wick_write_format(wick, NULL, argv[3], NULL, &error))) {
        fprintf(stderr, "hot: %s\n", error.message);
        wick_close(wick);
        return (int)error.kind;
    }
    print_hot(wick);
    for (size_t i = 0; i < wick_note_count(wick); i++)
        fprintf(stderr, "hot: %s\n", wick_note(wick, i));
    wick_close(wick);
    return 0;
}
