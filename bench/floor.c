/*
 * The least that a reader of a perf.data must do: map it, walk the records, hash each call chain into a table of distinct ones.
 * The bench holds wick against it. It trusts its input and knows one layout: only for recordings that the bench made itself.
 * usage: floor FILE
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct header {
    uint64_t magic, size, attr_size, attrs_offset, attrs_size, data_offset, data_size;
};

struct stack {
    uint64_t hash;
    uint32_t pid, count;
};

/* Bytes of the fields before the call chain. */
static size_t before_chain(uint64_t sample_type) {
    uint64_t words = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
                     PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;
    return 8 * (size_t)__builtin_popcountll(sample_type & words);
}

int main(int argc, char **argv) {
    int fd = argc > 1 ? open(argv[1], O_RDONLY) : -1;
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0) {
        perror(argc > 1 ? argv[1] : "usage: floor FILE");
        return 1;
    }
    const char *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    const struct header *header = (const void *)bytes;
    uint64_t sample_type = ((const struct perf_event_attr *)(bytes + header->attrs_offset))->sample_type;
    size_t chain_at = sizeof(struct perf_event_header) + before_chain(sample_type);
    size_t mask = (1u << 19) - 1, samples = 0, distinct = 0;
    struct stack *stacks = calloc(mask + 1, sizeof *stacks);

    const char *end = bytes + header->data_offset + header->data_size;
    for (const char *at = bytes + header->data_offset; at < end;) {
        const struct perf_event_header *record = (const void *)at;
        if (record->type == PERF_RECORD_SAMPLE) {
            const uint64_t *chain = (const void *)(at + chain_at);
            uint32_t pid = *(const uint32_t *)(at + sizeof *record + (sample_type & PERF_SAMPLE_IDENTIFIER ? 16 : 8));
            uint64_t hash = XXH3_64bits(chain + 1, chain[0] * 8);
            size_t slot = (hash ^ pid) & mask;
            while (stacks[slot].count && (stacks[slot].hash != hash || stacks[slot].pid != pid)) {
                slot = (slot + 1) & mask;
            }
            distinct += !stacks[slot].count;
            stacks[slot] = (struct stack){hash, pid, stacks[slot].count + 1};
            samples++;
        }
        at += record->size;
    }
    fprintf(stderr, "%zu samples, %zu distinct stacks\n", samples, distinct);
    return 0;
}
