/*
 * perfdata: the perf.data format, read in place.
 *
 * perfdata_open() checks the header, the attributes with their ids and the feature sections, and keeps what wick
 * uses. Records are then read directly in the mapped file: perfdata_next() returns one after the other, and the
 * decoders below turn a record into a struct whose pointers point into the file. Nothing is copied or allocated for a
 * record. Each length, offset and count is checked before it is used; a violation is an error with the byte offset.
 *
 * A stream (`perf record -o -`) has attributes, names and features as records among the others; these are collected
 * first, and the rest is read like any file. Compressed records (`perf record -z`) are unpacked once, with everything
 * around them, into an unlinked temporary file; errors in it name it "PATH, unpacked" and give its byte offset.
 *
 * `perf record --threads` makes a directory: `data` is an ordinary file, and `data.0`, `data.1` and so on contain
 * only the records of each thread. They are concatenated in such a temporary file, too.
 *
 * A file cut in its data (a killed `perf record`) is used up to the cut, at offset `cut`. With `strict` that is an
 * error. Byte-swapped files are refused, with an error that says so.
 */
#ifndef WICK_PERFDATA_H
#define WICK_PERFDATA_H

#include <linux/perf_event.h>
#include <stdatomic.h>

#include "base/base.h"
#include "object/object.h"

/* Records that only user space writes. */
enum perfdata_user_record {
    RECORD_HEADER_ATTR = 64,
    RECORD_HEADER_EVENT_TYPE = 65,
    RECORD_HEADER_TRACING_DATA = 66,
    RECORD_HEADER_BUILD_ID = 67,
    RECORD_FINISHED_ROUND = 68,
    RECORD_ID_INDEX = 69,
    RECORD_AUXTRACE_INFO = 70,
    RECORD_AUXTRACE = 71,
    RECORD_AUXTRACE_ERROR = 72,
    RECORD_THREAD_MAP = 73,
    RECORD_CPU_MAP = 74,
    RECORD_STAT_CONFIG = 75,
    RECORD_STAT = 76,
    RECORD_STAT_ROUND = 77,
    RECORD_EVENT_UPDATE = 78,
    RECORD_TIME_CONV = 79,
    RECORD_HEADER_FEATURE = 80,
    RECORD_COMPRESSED = 81,
    RECORD_FINISHED_INIT = 82,
    RECORD_COMPRESSED2 = 83,
    RECORD_BPF_METADATA = 84,
};

/* Linux 6.18's callchain marker and record for user chains delivered later; older headers lack them. */
#define CONTEXT_USER_DEFERRED 0xfffffffffffffd80ull
#define RECORD_CALLCHAIN_DEFERRED 22
#define CONTEXT_MARKERS_FROM                                                                       \
    0xfffffffffffff001ull /* every value from here up is a marker, not an address */

/* Bits of an attribute's flags, by number. */
enum {
    ATTRIBUTE_FREQUENCY = 10,
    ATTRIBUTE_SAMPLE_ID_ALL = 18,
    ATTRIBUTE_EXCLUDE_CALLCHAIN_USER = 22,
    ATTRIBUTE_CLOCK = 25, /* a chosen one */
    ATTRIBUTE_SWITCHES = 26,
    ATTRIBUTE_BUILD_ID = 34,
};

/* One attribute: what one event's samples look like. */
struct perfdata_event {
    uint32_t type;
    uint64_t config;
    uint64_t sample_type;
    uint64_t read_format;
    uint64_t flags; /* the attribute's bit field: ATTRIBUTE_… */
    uint64_t branch_sample_type;
    uint64_t regs_user;
    uint64_t regs_intr;
    uint64_t sample_period; /* or frequency, if ATTRIBUTE_FREQUENCY is set */
    uint32_t stack_user;
    int32_t clock;               /* CLOCK_…, if ATTRIBUTE_CLOCK is set */
    uint64_t breakpoint_address; /* also config1 */
    uint32_t breakpoint_type;
    struct text
        name; /* EVENT_DESC's, else made from type and config; lives as long as the perfdata */
    const uint8_t *ids; /* unaligned u64s */
    size_t id_count;
    uint32_t trailer_size; /* bytes of sample_id in other records; 0 without sample_id_all */
    /* Where things are in a sample, from the start of its header. */
    uint32_t fixed_size;  /* the header and every field up to PERIOD */
    uint32_t time_offset; /* 0: not recorded */
};

struct perfdata_build_id {
    struct text path;
    struct build_id id;
    int32_t pid;
    uint16_t misc; /* cpumode */
};

/* Maps ids to events. A file with one event, or with events that can't be distinguished, needs no table. */
struct perfdata_ids {
    struct perfdata_id {
        uint64_t id;
        uint32_t event; /* index + 1; 0: empty slot */
    } * slots;
    uint32_t mask;
    uint32_t
        sample_offset; /* of the id, from the start of a sample's header; 0: all belong to event 0 */
    uint32_t trailer_offset; /* of the id, from the end of any other record */
};

/* The header's feature sections, by bit number. */
enum perfdata_feature {
    FEATURE_TRACING_DATA = 1,
    FEATURE_BUILD_ID = 2,
    FEATURE_HOSTNAME = 3,
    FEATURE_OSRELEASE = 4,
    FEATURE_VERSION = 5,
    FEATURE_ARCH = 6,
    FEATURE_NRCPUS = 7,
    FEATURE_CPUDESC = 8,
    FEATURE_CPUID = 9,
    FEATURE_TOTAL_MEM = 10,
    FEATURE_CMDLINE = 11,
    FEATURE_EVENT_DESC = 12,
    FEATURE_CPU_TOPOLOGY = 13,
    FEATURE_NUMA_TOPOLOGY = 14,
    FEATURE_PMU_MAPPINGS = 16,
    FEATURE_SAMPLE_TIME = 21,
    FEATURE_CLOCKID = 23,
    FEATURE_DIR_FORMAT = 24,
    FEATURE_COMPRESSED = 27,
    FEATURE_CLOCK_DATA = 29,
    FEATURES = 256,
};

/* The position of a part of a carrier entry: see carrier_add(). */
struct carrier_part {
    uint32_t entry;
    uint32_t number;
    uint64_t offset;
};

struct perfdata {
    const struct file *file;   /* the file that offsets refer to: as given, or unpacked */
    const struct file *source; /* as given */
    VECTOR(struct perfdata_event) events;
    VECTOR(struct perfdata_build_id) build_ids;
    uint64_t data_start; /* byte offsets of the records */
    uint64_t data_end;   /* of the last whole record, once walked; before: of the section */
    bool is_stream;      /* written to a pipe */
    bool is_cut;
    uint64_t cut; /* offset in `source` of the first incomplete record */
    struct text arch, hostname, os_release, version, cmdline,
        cpu_desc; /* empty when not recorded */
    uint32_t cpus_online, cpus_available;
    uint64_t first_sample, last_sample; /* their times; both 0: not recorded */
    uint64_t clock_day,
        clock_own;      /* Unix time, and the samples' clock, at one moment; 0: not recorded */
    struct notes notes; /* unknown record types, damaged feature sections */
    struct arena arena;
    /* The rest is private to this room. */
    bool
        open_ended; /* the section's end is not the header's word, so a record that overruns it is a cut */
    const struct context *context; /* as given, or NULL */
    bool strict;
    bool asks_build_ids;  /* an attribute does: mappings may carry them */
    bool unpacking;       /* compressed records are expected */
    struct file unpacked; /* `file`, if records are compressed */
    struct perfdata_ids ids;
    struct budget budget; /* what is kept of its header and records */
    VECTOR(struct carrier_part) parts;
    atomic_uint_fast64_t carried;   /* bytes of entries that were read */
    struct text features[FEATURES]; /* empty when absent */
};

struct perfdata_options {
    bool strict;
    const struct context *context; /* or NULL */
};

/* Open a perf.data; `file` must stay open as long as the result. Return NULL if it is not a perf.data or is broken.
   */
struct perfdata *perfdata_open(const struct file *file, const struct perfdata_options *options,
                               struct error *error);
void perfdata_free(struct perfdata *data);
/* Charge `bytes` of memory for the record at `offset` to the recording's budget; return false and set *error if it is
   exceeded. */
bool perfdata_take(struct perfdata *data, uint64_t bytes, uint64_t offset, struct error *error);
/* Return true and set *error if the file shrank while it was read. */
bool perfdata_changed(const struct perfdata *data, struct error *error);
bool perfdata_is(struct text beginning); /* the magic, of any age and byte order, pipe or file */

/* ---- walking ------------------------------------------------------------------------------ */

struct perfdata_record {
    uint64_t offset; /* of its header in the file */
    uint32_t type;
    uint16_t misc;
    uint16_t size;       /* with the header */
    const uint8_t *data; /* the header */
};

/* Return a name such as "MMAP2", or "record" for an unknown type. */
const char *perfdata_record_name(uint32_t type);

/* Read the record at *offset and advance *offset; begin with data_start, or with the offset of any record. Return
   false at the end, on an error (set the kind to ERROR_NONE before the call to distinguish them), or at a cut: then
   is_cut and cut are set and data_end is moved there, so later walks, by any number of threads, end there. Costs one
   cache miss a record; the rest is the slow path. */
static inline bool perfdata_next(struct perfdata *data, uint64_t *offset,
                                 struct perfdata_record *record, struct error *error);

/* ---- decoding: on failure return false and set *error, which names the record and its offset - */

#define PERFDATA_NO_EVENT UINT32_MAX

/* The fields of a sample, in place. Fields that the event does not record are 0 (pid, tid: -1; cpu: UINT32_MAX;
   period: the attribute's, unless that is a frequency). */
struct perfdata_sample {
    uint32_t event; /* index into events */
    uint64_t identifier, ip, time, address, id, stream_id, period;
    int32_t pid, tid;
    uint32_t cpu;
    const uint8_t *read; /* unparsed, validated */
    size_t read_size;
    const uint8_t *chain; /* u64s, markers included; NULL when the event records none */
    uint64_t chain_count;
    const uint8_t *raw;
    uint32_t raw_size;
    const uint8_t *branches; /* 24 bytes each: from, to, flags */
    uint64_t branch_count;
    uint64_t branch_hw_index;       /* 0 unless recorded */
    const uint8_t *branch_counters; /* branch_count u64s; NULL unless recorded */
    uint64_t regs_user_abi;
    const uint8_t *regs_user; /* popcount(event's regs_user) u64s; NULL when abi is 0 */
    const uint8_t *stack;
    uint64_t stack_size;   /* bytes that are valid: the dynamic size */
    uint64_t stack_dumped; /* bytes that are in the record */
    uint64_t weight;       /* for WEIGHT_STRUCT the first, 32 bits wide */
    uint16_t weight_2, weight_3;
    uint64_t data_source, transaction, physical_address, cgroup, data_page_size, code_page_size;
    uint64_t regs_intr_abi;
    const uint8_t *regs_intr;
    const uint8_t *aux;
    uint64_t aux_size;
    uint8_t mode; /* PERF_RECORD_MISC_CPUMODE of misc */
};
/* Decode the whole sample. A sample of an unknown event (see below) is an error. */
bool perfdata_sample(const struct perfdata *data, const struct perfdata_record *record,
                     struct perfdata_sample *sample, struct error *error);
/* Since Linux 6.16 `perf record --off-cpu` puts the thread, the duration and the chain of a wait into the sample's
   raw data; copy these to the sample's fields. Other samples are not changed. perf 6.1 does not do this. */
void perfdata_unwrap_wait(const struct perfdata *data, struct perfdata_sample *sample);
/* Get the event of a sample and its time (0: not recorded), as pass 1 needs them; costs a few loads. An id that no
   attribute has gives PERFDATA_NO_EVENT: such samples can't be decoded; skip them with a note, as perf does. */
static inline bool perfdata_sample_key(const struct perfdata *data,
                                       const struct perfdata_record *record, uint32_t *event,
                                       uint64_t *time, struct error *error);

/* The sample_id trailer of any other record; missing fields are 0 (pid, tid: -1; cpu: UINT32_MAX). Records of user space (types from 64) have
   none. */
struct perfdata_trailer {
    uint32_t event; /* PERFDATA_NO_EVENT: no attribute has its id */
    bool has_time;
    uint64_t time, id, stream_id;
    int32_t pid, tid;
    uint32_t cpu;
};
bool perfdata_trailer(const struct perfdata *data, const struct perfdata_record *record,
                      struct perfdata_trailer *trailer, struct error *error);

/*
 * Whether a MMAP2 record has a build id and not a device and inode in its place. Kernels up to at least 6.18 also set the bit that says so if another
 * recording, running at the same time, requested build ids and this one did not. `size` is the size field with its padding: four bytes, of which
 * three must be 0.
 */
static inline bool perfdata_has_build_id(bool asked, uint16_t misc, uint32_t size) {
    enum { MISC_MMAP_BUILD_ID = 1 << 14 };
    return misc & MISC_MMAP_BUILD_ID && size && size <= BUILD_ID_MAX &&
           (asked || size == BUILD_ID_MAX); /* no device has that number */
}

struct perfdata_mmap {
    int32_t pid, tid;
    uint64_t start, length, offset;
    struct build_id build_id;
    uint32_t major, minor;
    uint64_t inode, generation;
    uint32_t protection, flags; /* MMAP (1): PROT_EXEC unless the misc bit says data */
    bool executable;
    struct text path;
};
struct perfdata_task { /* FORK, EXIT */
    int32_t pid, parent_pid, tid, parent_tid;
    uint64_t time;
};
struct perfdata_comm {
    int32_t pid, tid;
    struct text comm;
    bool exec;
};
struct perfdata_namespaces {
    int32_t pid, tid;
    uint64_t mount_device, mount_inode; /* of the mount namespace; 0: unknown */
};
struct perfdata_ksymbol {
    uint64_t address;
    uint32_t length;
    uint16_t type, flags;
    bool unregister;
    struct text name;
};
bool perfdata_mmap(const struct perfdata *data, const struct perfdata_record *record,
                   struct perfdata_mmap *mmap, struct error *error); /* MMAP and MMAP2 */
bool perfdata_task(const struct perfdata *data, const struct perfdata_record *record,
                   struct perfdata_task *task, struct error *error);
bool perfdata_comm(const struct perfdata *data, const struct perfdata_record *record,
                   struct perfdata_comm *comm, struct error *error);
bool perfdata_namespaces(const struct perfdata *data, const struct perfdata_record *record,
                         struct perfdata_namespaces *namespaces, struct error *error);
bool perfdata_ksymbol(const struct perfdata *data, const struct perfdata_record *record,
                      struct perfdata_ksymbol *ksymbol, struct error *error);
/* Get the number of lost records from LOST (2) or LOST_SAMPLES (13). */
bool perfdata_lost(const struct perfdata *data, const struct perfdata_record *record,
                   uint64_t *lost, struct error *error);
/* CALLCHAIN_DEFERRED (22): the user part of chains that end in CONTEXT_USER_DEFERRED and this cookie. */
struct perfdata_deferred {
    uint64_t cookie;
    const uint8_t *chain; /* u64s */
    uint64_t chain_count;
};
bool perfdata_deferred(const struct perfdata *data, const struct perfdata_record *record,
                       struct perfdata_deferred *deferred, struct error *error);
/* Decode HEADER_BUILD_ID (67) among the records of a file; those of the header, and of a stream, are in `build_ids`. */
bool perfdata_build_id(const struct perfdata *data, const struct perfdata_record *record,
                       struct perfdata_build_id *build_id, struct error *error);
/* Check any record but a sample against the minimum size of its type, and note unknown types. Adds notes, so call it in pass 1 from one thread.
   The decoders above do their own checks. */
bool perfdata_check(struct perfdata *data, const struct perfdata_record *record,
                    struct error *error);

/* ---- the carrier: data in a recording besides perf's own records ----------------------------- */

/*
 * JIT maps, files that will be gone, labels and the like, in entries with a kind, a key and bytes; docs/carrier.md specifies the format and each
 * kind's key. They are stored among the records, in a type that perf ignores, so that they survive pipes, `perf inject` and killed recorders.
 * Readers skip unknown kinds; writer.h has carrier_write().
 */
enum carrier_kind {
    CARRIER_PERF_MAP = 1,      /* the text of a process's perf map */
    CARRIER_FILE = 2,          /* a file with code, whole */
    CARRIER_LABELS = 3,        /* labels of a process */
    CARRIER_FACT = 4,          /* a fact about the recording, by name */
    CARRIER_FUNCTIONS = 5,     /* functions of interpreters, by number */
    CARRIER_STACKS = 6,        /* their stacks, by thread and time */
    CARRIER_JAVA_CODE = 7,     /* what a Java virtual machine has compiled */
    CARRIER_JAVA_METHODS = 8,  /* its methods, as far as they ran */
    CARRIER_DUMP = 9,          /* a jitdump of a process */
    CARRIER_DEBUG = 10,        /* a file with debug information, whole */
    CARRIER_KERNEL = 11,       /* the kernel's list of symbols, as text */
    CARRIER_KERNEL_NAMES = 12, /* the part of that list that names the recorded addresses */
    CARRIER_BLOCKS = 13,       /* blocks of memory, by number */
    CARRIER_MEMORY = 14,       /* the blocks of which stacks consist, by thread and time */
};
enum { CARRIER_KEY_MOST = 8192, CARRIER_READ_MOST = 512 << 20 };
#define CARRIER_LARGE_MOST (3ull << 30)

/* `key` points into the file. The fields after it are private to this room. */
struct carrier_entry {
    uint32_t kind; /* any number: a newer wick may know more kinds */
    struct text key;
    uint64_t stored; /* bytes in the file, perhaps packed */
    uint64_t offset; /* of its first record */
    size_t first, parts;
    bool is_packed;
};

/* Remember a BPF_EVENT record if it is a part of an entry. Fail if this exceeds the budget. Call it in pass 1 from one thread. */
bool carrier_add(struct perfdata *data, const struct perfdata_record *record, struct error *error);
/* Call visit(context, entry) for each entry, in the order in which they were written, after all records were walked. Skip and note entries that are
   damaged or lack a part. Call it from one thread. Costs a sort of the parts, and a checksum of the first part of each entry. */
typedef void carrier_visit(void *context, const struct carrier_entry *entry);
void carrier_each(struct perfdata *data, carrier_visit *visit, void *context);
/* Read an entry into `bytes`. Return false if a checksum is wrong, or if the total read from the recording would exceed its limit: the larger of
   CARRIER_READ_MOST and 16 times its size, at most CARRIER_LARGE_MOST. Thread-safe. */
bool carrier_read(struct perfdata *data, const struct carrier_entry *entry, struct buffer *bytes);
/* The same. Also false if the entry has more than `most` bytes. */
bool carrier_read_most(struct perfdata *data, const struct carrier_entry *entry, uint64_t most,
                       struct buffer *bytes);

/* ---- the hot path, inlined ---------------------------------------------------------------- */

/* Handle the end, cuts, invalid records, and records that are followed by a payload or contain other records. */
bool perfdata_next_slow(struct perfdata *data, uint64_t *offset, struct perfdata_record *record,
                        struct error *error);
bool perfdata_sample_short(const struct perfdata *data, const struct perfdata_record *record,
                           struct error *error);

static inline bool perfdata_next(struct perfdata *data, uint64_t *offset,
                                 struct perfdata_record *record, struct error *error) {
    uint64_t at = *offset;
    if (__builtin_expect(
            at >= data->data_end || data->data_end - at < sizeof(struct perf_event_header), 0))
        return perfdata_next_slow(data, offset, record, error);
    const uint8_t *p = data->file->data + at;
    *record = (struct perfdata_record){.offset = at,
                                       .type = load_u32(p),
                                       .misc = load_u16(p + 4),
                                       .size = load_u16(p + 6),
                                       .data = p};
    bool special = record->type - RECORD_HEADER_TRACING_DATA <=
                   RECORD_COMPRESSED2 - RECORD_HEADER_TRACING_DATA;
    if (__builtin_expect(special || record->size < sizeof(struct perf_event_header) ||
                             record->size > data->data_end - at,
                         0))
        return perfdata_next_slow(data, offset, record, error);
    *offset = at + record->size;
    return true;
}

/* Return the slot of this id in the table, or the empty slot where it would be. */
static inline uint32_t perfdata_id_slot(const struct perfdata_ids *ids, uint64_t id) {
    uint32_t slot = (uint32_t)(hash_mix(id, 0) >> 32) & ids->mask;
    while (ids->slots[slot].id != id && ids->slots[slot].event)
        slot = (slot + 1) & ids->mask;
    return slot;
}

/* Return the event with this id. perf gives records that it synthesizes the id 0, which means the first event. */
static inline uint32_t perfdata_find_event(const struct perfdata *data, uint64_t id) {
    if (id == 0)
        return 0;
    return data->ids.slots[perfdata_id_slot(&data->ids, id)].event -
           1; /* PERFDATA_NO_EVENT when empty */
}

static inline bool perfdata_sample_key(const struct perfdata *data,
                                       const struct perfdata_record *record, uint32_t *event,
                                       uint64_t *time, struct error *error) {
    *event = 0;
    *time = 0;
    uint32_t id_offset = data->ids.sample_offset;
    if (id_offset) {
        if (__builtin_expect(id_offset + 8 > record->size, 0))
            return perfdata_sample_short(data, record, error);
        *event = perfdata_find_event(data, load_u64(record->data + id_offset));
        if (*event == PERFDATA_NO_EVENT)
            return true;
    }
    const struct perfdata_event *found = &data->events.items[*event];
    if (__builtin_expect(found->fixed_size > record->size, 0))
        return perfdata_sample_short(data, record, error);
    if (found->time_offset)
        *time = load_u64(record->data + found->time_offset);
    return true;
}

#endif
