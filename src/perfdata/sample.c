/*
 * Decode samples, in the kernel's order of fields, which is not the order of their bits. The fields up to PERIOD have a fixed size, known from the
 * attribute, and are checked together; each later field is checked separately.
 */
#include "perfdata/private.h"

enum { BRANCH_ENTRY = 24, BRANCH_HW_INDEX = 1 << 17, BRANCH_COUNTERS = 1 << 19 };

bool perfdata_sample_short(const struct perfdata *data, const struct perfdata_record *record,
                           struct error *error) {
    return error_at(error, data->file->path, record->offset,
                    "sample of %u bytes is too short for the fields its event records",
                    record->size);
}

/* Fixed fields: no checks, the caller made one for all. */
static const uint8_t *sample_fixed(uint64_t type, const uint8_t *p,
                                   struct perfdata_sample *sample) {
    if (type & PERF_SAMPLE_IDENTIFIER)
        sample->identifier = load_u64(p), p += 8;
    if (type & PERF_SAMPLE_IP)
        sample->ip = load_u64(p), p += 8;
    if (type & PERF_SAMPLE_TID) {
        sample->pid = (int32_t)load_u32(p);
        sample->tid = (int32_t)load_u32(p + 4);
        p += 8;
    }
    if (type & PERF_SAMPLE_TIME)
        sample->time = load_u64(p), p += 8;
    if (type & PERF_SAMPLE_ADDR)
        sample->address = load_u64(p), p += 8;
    if (type & PERF_SAMPLE_ID)
        sample->id = load_u64(p), p += 8;
    if (type & PERF_SAMPLE_STREAM_ID)
        sample->stream_id = load_u64(p), p += 8;
    if (type & PERF_SAMPLE_CPU)
        sample->cpu = load_u32(p), p += 8;
    if (type & PERF_SAMPLE_PERIOD)
        sample->period = load_u64(p), p += 8;
    return p;
}

/* What is left of a record. Taking more than there is makes `p` NULL, and so does everything after it. */
struct rest {
    const uint8_t *p;
    uint64_t left;
};

static const uint8_t *rest_take(struct rest *rest, uint64_t size) {
    const uint8_t *taken = rest->p;
    if (size > rest->left || !taken) {
        *rest = (struct rest){0};
        return NULL;
    }
    rest->p += size;
    rest->left -= size;
    return taken;
}

static uint64_t rest_u64(struct rest *rest) {
    const uint8_t *p = rest_take(rest, 8);
    return p ? load_u64(p) : 0;
}

/* `count` things of `each` bytes (a small power of two or 24): the count is the file's. */
static const uint8_t *rest_array(struct rest *rest, uint64_t count, uint64_t each) {
    return rest_take(rest, count > rest->left ? UINT64_MAX : count * each);
}

static void sample_read(uint64_t format, struct rest *rest, struct perfdata_sample *sample) {
    const uint64_t times = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    const uint8_t *start = rest->p;
    uint64_t first = rest_u64(rest); /* the value, or how many there are */
    uint64_t each =
        8ull * (unsigned)__builtin_popcountll(format & (PERF_FORMAT_ID | PERF_FORMAT_LOST));
    rest_take(rest, 8ull * (unsigned)__builtin_popcountll(format & times));
    if (format & PERF_FORMAT_GROUP)
        rest_array(rest, first, 8 + each);
    else
        rest_take(rest, each);
    sample->read = start;
    sample->read_size = rest->p ? (size_t)(rest->p - start) : 0;
}

static void sample_raw(struct rest *rest, struct perfdata_sample *sample) {
    const uint8_t *size = rest_take(rest, 4);
    sample->raw_size = size ? load_u32(size) : 0;
    sample->raw = rest_take(rest, sample->raw_size);
}

static void sample_branches(uint64_t type, struct rest *rest, struct perfdata_sample *sample) {
    sample->branch_count = rest_u64(rest);
    if (type & BRANCH_HW_INDEX)
        sample->branch_hw_index = rest_u64(rest);
    sample->branches = rest_array(rest, sample->branch_count, BRANCH_ENTRY);
    if (type & BRANCH_COUNTERS)
        sample->branch_counters = rest_array(rest, sample->branch_count, 8);
}

static const uint8_t *sample_registers(uint64_t mask, struct rest *rest, uint64_t *abi) {
    *abi = rest_u64(rest);
    return *abi ? rest_take(rest, 8ull * (unsigned)__builtin_popcountll(mask)) : NULL;
}

/* A dump of no bytes has no dynamic size after it. */
static void sample_stack(struct rest *rest, struct perfdata_sample *sample) {
    sample->stack_dumped = rest_u64(rest);
    if (sample->stack_dumped == 0)
        return;
    sample->stack = rest_take(rest, sample->stack_dumped);
    sample->stack_size = rest_u64(rest);
    if (sample->stack_size > sample->stack_dumped)
        *rest = (struct rest){0};
}

static void sample_weight(uint64_t type, struct rest *rest, struct perfdata_sample *sample) {
    sample->weight = rest_u64(rest);
    if (!(type & PERF_SAMPLE_WEIGHT_STRUCT))
        return;
    sample->weight_2 = (uint16_t)(sample->weight >> 32);
    sample->weight_3 = (uint16_t)(sample->weight >> 48);
    sample->weight = (uint32_t)sample->weight;
}

/* What few recordings have. */
static void sample_rare(const struct perfdata_event *event, struct rest *rest,
                        struct perfdata_sample *sample) {
    uint64_t type = event->sample_type;
    if (type & PERF_SAMPLE_RAW)
        sample_raw(rest, sample);
    if (type & PERF_SAMPLE_BRANCH_STACK)
        sample_branches(event->branch_sample_type, rest, sample);
    if (type & PERF_SAMPLE_REGS_USER)
        sample->regs_user = sample_registers(event->regs_user, rest, &sample->regs_user_abi);
    if (type & PERF_SAMPLE_STACK_USER)
        sample_stack(rest, sample);
    if (type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT))
        sample_weight(type, rest, sample);
    if (type & PERF_SAMPLE_DATA_SRC)
        sample->data_source = rest_u64(rest);
    if (type & PERF_SAMPLE_TRANSACTION)
        sample->transaction = rest_u64(rest);
    if (type & PERF_SAMPLE_REGS_INTR)
        sample->regs_intr = sample_registers(event->regs_intr, rest, &sample->regs_intr_abi);
    if (type & PERF_SAMPLE_PHYS_ADDR)
        sample->physical_address = rest_u64(rest);
    if (type & PERF_SAMPLE_CGROUP)
        sample->cgroup = rest_u64(rest);
    if (type & PERF_SAMPLE_DATA_PAGE_SIZE)
        sample->data_page_size = rest_u64(rest);
    if (type & PERF_SAMPLE_CODE_PAGE_SIZE)
        sample->code_page_size = rest_u64(rest);
    if (type & PERF_SAMPLE_AUX) {
        sample->aux_size = rest_u64(rest);
        sample->aux = rest_take(rest, sample->aux_size);
    }
}

static bool sample_variable(const struct perfdata_event *event, struct rest rest,
                            struct perfdata_sample *sample) {
    if (event->sample_type & PERF_SAMPLE_READ)
        sample_read(event->read_format, &rest, sample);
    if (event->sample_type & PERF_SAMPLE_CALLCHAIN) {
        sample->chain_count = rest_u64(&rest);
        sample->chain = rest_array(&rest, sample->chain_count, 8);
    }
    const uint64_t common = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                            PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
                            PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
                            PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN;
    if (event->sample_type & ~common)
        sample_rare(event, &rest, sample);
    return rest.p != NULL;
}

void perfdata_unwrap_wait(const struct perfdata *data, struct perfdata_sample *sample) {
    const struct perfdata_event *event = &data->events.items[sample->event];
    struct rest rest = {sample->raw, sample->raw_size};
    if (!sample->raw || event->type != PERF_TYPE_SOFTWARE ||
        event->config != PERF_COUNT_SW_BPF_OUTPUT)
        return;
    uint64_t ids = rest_u64(&rest), period = rest_u64(&rest), count = rest_u64(&rest);
    const uint8_t *chain = rest_array(&rest, count, 8);
    if (!rest.p)
        return;
    sample->pid = (int32_t)(uint32_t)ids;
    sample->tid = (int32_t)(ids >> 32);
    sample->period = period;
    sample->chain = chain;
    sample->chain_count = count;
    sample->mode = PERF_RECORD_MISC_USER;
}

bool perfdata_sample(const struct perfdata *data, const struct perfdata_record *record,
                     struct perfdata_sample *sample, struct error *error) {
    uint32_t index;
    uint64_t time;
    if (!perfdata_sample_key(data, record, &index, &time, error))
        return false;
    if (index == PERFDATA_NO_EVENT)
        return error_at(error, data->file->path, record->offset,
                        "sample of an event that is not in the header");
    const struct perfdata_event *event = &data->events.items[index];
    *sample = (struct perfdata_sample){.event = index,
                                       .pid = -1,
                                       .tid = -1,
                                       .cpu = UINT32_MAX,
                                       .mode = record->misc & PERF_RECORD_MISC_CPUMODE_MASK};
    if (!(event->flags >> ATTRIBUTE_FREQUENCY & 1))
        sample->period = event->sample_period;
    const uint8_t *p = sample_fixed(event->sample_type, record->data + HEADER_SIZE, sample);
    struct rest rest = {p, record->size - event->fixed_size};
    return sample_variable(event, rest, sample) || perfdata_sample_short(data, record, error);
}
