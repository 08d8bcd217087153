/* A user of libwick in a locale whose numbers have a comma: usage: commas FILE; prints 1.5 as the locale has it, then FILE's total. */
#include <locale.h>
#include <stdio.h>
#include <wick.h>

int main(int argc, char **argv) {
    struct wick_error error;
    const char *paths[] = {argv[1]};
    setlocale(LC_ALL, "");
    struct wick *wick = wick_open(paths, argc - 1, NULL, &error);
    if (!wick)
        return fprintf(stderr, "%s\n", error.message), 1;
    printf("%.1f %llu\n", 1.5, (unsigned long long)wick_frame_at(wick, 0).total);
    wick_close(wick);
    return 0;
}
