/*
 * What the gate is tried with: lines of words and numbers are read, looked up, sorted and written, again and again. EXTRA parts in ten thousand of
 * all work are done once more by parse_number, so that only one function is slower.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef EXTRA
#define EXTRA 0
#endif
#ifndef PER_ROUND
#define PER_ROUND 47000 /* numbers that take as long as a round */
#endif
#ifndef ROUNDS
#define ROUNDS 60
#endif

enum { LINES = 4000, SLOTS = 16384 };

static char text[LINES * 32];
static uint32_t table[SLOTS], numbers[LINES];
static uint64_t sum;

static uint32_t chance(uint32_t *state) {
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

static size_t make_text(void) {
    uint32_t state = 1;
    size_t at = 0;
    for (int i = 0; i < LINES; i++) {
        for (int k = 0; k < 8; k++)
            text[at++] = (char)('a' + chance(&state) % 26);
        at += (size_t)sprintf(text + at, " %u\n", (unsigned)(chance(&state) * 37 % 100000000));
    }
    return at;
}

__attribute__((noinline)) static uint32_t parse_number(const char *at) {
    uint32_t number = 0;
    for (; *at >= '0' && *at <= '9'; at++)
        number = number * 10 + (uint32_t)(*at - '0');
    return number;
}

__attribute__((noinline)) static const char *parse_word(const char *at, uint32_t *hash) {
    uint32_t value = 2166136261u;
    for (; *at != ' '; at++)
        value = (value ^ (uint32_t)*at) * 16777619u;
    *hash = value;
    return at + 1;
}

__attribute__((noinline)) static void table_count(uint32_t hash) {
    uint32_t slot = hash % SLOTS;
    while (table[slot] && table[slot] != hash)
        slot = (slot + 1) % SLOTS;
    table[slot] = hash;
}

static int compare(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

__attribute__((noinline)) static void write_numbers(char *out) {
    for (int i = 0; i < LINES; i++) {
        uint32_t number = numbers[i];
        do
            *out = (char)('0' + number % 10);
        while (number /= 10);
        sum += (uint64_t)*out;
    }
}

static void round_of(size_t size) {
    const char *at = text;
    memset(table, 0, sizeof table);
    for (int i = 0; at < text + size; i++) {
        uint32_t hash;
        at = parse_word(at, &hash);
        table_count(hash);
        numbers[i] = parse_number(at);
        at = strchr(at, '\n') + 1;
    }
    qsort(numbers, LINES, sizeof *numbers, compare);
    char out[16];
    write_numbers(out);
}

int main(void) {
    size_t size = make_text();
    uint64_t extra = 0, owed = 0;
    for (int i = 0; i < ROUNDS; i++) {
        round_of(size);
        for (owed += (uint64_t)EXTRA * PER_ROUND / 10000; extra < owed; extra++)
            sum += parse_number("12345678 ");
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
