"""Writes a C program whose call graph is known: `python3 truth.py FILE` writes the source, edges() says who may call whom.

Functions call each other at random, directly, through pointers and through qsort, recurse, and have frames of all sizes, so that wherever a
sample falls, every reported caller and callee must be a pair that the source has."""
import random
import sys

COUNT = 48


def calls():
    """For each function, the functions it calls; always later ones but for the recursive, so that it ends."""
    choose = random.Random(20)
    graph = []
    for i in range(COUNT):
        later = list(range(i + 1, min(COUNT, i + 9)))
        graph.append(sorted(choose.sample(later, min(len(later), choose.randint(1, 3)))))
    return graph


def edges():
    found = {("_start", "__libc_start_main"), ("__libc_start_main", "__libc_start_call_main"), ("__libc_start_call_main", "main"),
             ("main", "f0"), ("qsort_r", "msort_with_tmp.part.0"), ("msort_with_tmp.part.0", "msort_with_tmp.part.0"),
             ("msort_with_tmp.part.0", "compare"), ("qsort", "msort_with_tmp.part.0"), ("clone3", "start_thread"), ("__clone3", "start_thread"),
             ("start_thread", "thread"), ("thread", "f0"), ("qsort", "compare"), ("qsort_r", "compare"), ("qsort", "qsort_r")}
    for i, callees in enumerate(calls()):
        for callee in callees:
            found.add((f"f{i}", f"f{callee}"))
        if i % 5 == 0:
            found |= {(f"f{i}", f"f{i}")}
        if i % 7 == 3:
            found |= {(f"f{i}", "qsort"), (f"f{i}", "qsort_r"), (f"f{i}", "__GI___qsort_r")}
    found |= {("__GI___qsort_r", "msort_with_tmp.part.0"), ("__GI___qsort_r", "compare")}
    return found


def source():
    choose = random.Random(21)
    lines = ["#include <pthread.h>", "#include <stdlib.h>", "#include <time.h>", "static volatile unsigned sink;", "static __thread int budget;",
             "#define FUNCTION __attribute__((noinline, noclone))",
             "FUNCTION static int compare(const void *a, const void *b) { for (int i = 0; i < 50; i++) sink = sink * 5 + 1;"
             " return *(const int *)a - *(const int *)b; }"]
    lines += [f"FUNCTION static unsigned f{i}(unsigned x);" for i in range(COUNT)]
    for i, callees in enumerate(calls()):
        size = choose.choice([1, 3, 17, 130])
        body = [f"    volatile unsigned local[{size}];", f"    local[x % {size}] = x;",
                f"    for (unsigned i = 0; i < {choose.choice([5, 40, 200])}; i++) local[i % {size}] += i * x;"]
        if i % 5 == 0:
            body.append(f"    if (x % 3 == 1) local[0] += f{i}(x / 3);")
        if i % 7 == 3:
            body.append("    int items[24]; for (int i = 0; i < 24; i++) items[i] = (int)(x * (unsigned)i % 97);"
                        " qsort(items, 24, sizeof items[0], compare); sink += (unsigned)items[3];")
        for n, callee in enumerate(callees):
            target = f"f{callee}"
            if (i + callee) % 4 == 0:
                body.append(f"    unsigned (*volatile pointer{n})(unsigned) = f{callee};")
                target = f"pointer{n}"
            body.append(f"    if (budget-- > 0) local[0] ^= {target}(x + {n});")
        lines += [f"FUNCTION static unsigned f{i}(unsigned x) {{"] + body + ["    return local[0] + sink;", "}"]
    lines += ["static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }",
              "static double end;",
              "static void *thread(void *unused) { unsigned x = 1; while (now() < end) { budget = 3000; sink += f0(x++); } return unused; }",
              "int main(int argc, char **argv) { pthread_t other; unsigned x = 7; end = now() + (argc > 1 ? atof(argv[1]) : 0.3);",
              "    pthread_create(&other, NULL, thread, NULL);",
              "    while (now() < end) { budget = 3000; sink += f0(x++); }",
              "    pthread_join(other, NULL); return 0; }"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="ascii") as file:
        file.write(source())
