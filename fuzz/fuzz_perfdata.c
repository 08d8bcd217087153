/* Open the bytes as perf.data, walk all records and decode each in every way that fits its type. */
#include <stdlib.h>

#include "checksums.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void touch(const void *bytes, size_t size) {
    static volatile uint64_t sink;
    if (bytes)
        sink = sink + hash_bytes(bytes, size);
}

static void decode_sample(struct perfdata *data, const struct perfdata_record *record) {
    struct perfdata_sample s;
    uint32_t event;
    uint64_t time;
    perfdata_sample_key(data, record, &event, &time, NULL);
    if (!perfdata_sample(data, record, &s, NULL))
        return;
    const struct perfdata_event *e = &data->events.items[s.event];
    touch(s.read, s.read_size);
    touch(s.chain, 8 * s.chain_count);
    touch(s.raw, s.raw_size);
    touch(s.branches, 24 * s.branch_count);
    touch(s.branch_counters, 8 * s.branch_count);
    touch(s.regs_user, 8 * (size_t)__builtin_popcountll(e->regs_user));
    touch(s.regs_intr, 8 * (size_t)__builtin_popcountll(e->regs_intr));
    touch(s.stack, s.stack_dumped);
    touch(s.aux, s.aux_size);
}

static void decode_other(struct perfdata *data, const struct perfdata_record *record) {
    struct perfdata_trailer trailer;
    struct perfdata_mmap mmap;
    struct perfdata_task task;
    struct perfdata_comm comm;
    struct perfdata_ksymbol ksymbol;
    struct perfdata_deferred deferred;
    struct perfdata_build_id build_id;
    uint64_t lost;
    perfdata_check(data, record, NULL);
    perfdata_trailer(data, record, &trailer, NULL);
    if (perfdata_mmap(data, record, &mmap, NULL))
        touch(mmap.path.data, mmap.path.length);
    perfdata_task(data, record, &task, NULL);
    if (perfdata_comm(data, record, &comm, NULL))
        touch(comm.comm.data, comm.comm.length);
    if (perfdata_ksymbol(data, record, &ksymbol, NULL))
        touch(ksymbol.name.data, ksymbol.name.length);
    perfdata_lost(data, record, &lost, NULL);
    if (perfdata_deferred(data, record, &deferred, NULL))
        touch(deferred.chain, 8 * deferred.chain_count);
    if (perfdata_build_id(data, record, &build_id, NULL))
        touch(build_id.path.data, build_id.path.length);
}

static void read_entry(void *context, const struct carrier_entry *entry) {
    struct buffer bytes = {0};
    touch(entry->key.data, entry->key.length);
    if (carrier_read(context, entry, &bytes))
        touch(bytes.items, bytes.count);
    buffer_release(&bytes);
}

static void read_all(const uint8_t *bytes, size_t size) {
    struct file file = {.path = (char *)"fuzz", .data = bytes, .size = size};
    struct error error = {0};
    const struct context context = {.spool_limit = 16 << 20};
    struct perfdata *data =
        perfdata_open(&file, &(struct perfdata_options){.context = &context}, &error);
    assert(!data == !!error.kind);
    if (!data)
        return;
    for (size_t i = 0; i < data->events.count; i++)
        touch(data->events.items[i].name.data, data->events.items[i].name.length);
    for (size_t i = 0; i < data->build_ids.count; i++)
        touch(data->build_ids.items[i].path.data, data->build_ids.items[i].path.length);
    uint64_t offset = data->data_start, before = offset;
    struct perfdata_record record;
    while (perfdata_next(data, &offset, &record, &error)) {
        assert(offset > before && offset <= data->file->size);
        before = offset;
        if (record.type == PERF_RECORD_SAMPLE)
            decode_sample(data, &record);
        if (record.type == PERF_RECORD_BPF_EVENT && !carrier_add(data, &record, &error))
            break;
        decode_other(data, &record);
    }
    carrier_each(data, read_entry, data);
    perfdata_free(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    uint8_t *copy = (uint8_t *)memory_copy(bytes, size);
    fix_checksums(copy, size);
    read_all(copy, size);
    free(copy);
    return 0;
}
