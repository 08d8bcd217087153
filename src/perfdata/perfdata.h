/*
 * perfdata: the perf.data format, read in place.
 *
 * perfdata_open() checks the header, the attributes with their ids and the feature sections, and keeps what wick uses of
 * them. Records are then walked straight in the mapped file: perfdata_next() gives one after the other, and the decoders below
 * turn one record into a struct whose pointers point into the file. Nothing is copied and nothing allocated for a
 * record. Each length, offset and count is checked against its bounds before it is used; what contradicts them is an
 * error with the byte offset.
 *
 * What `perf record -o -` writes has attributes, names and features as records of its own among the others; they are looked for first, and
 * the rest is read like any file. Compressed records (`perf record -z`) are unpacked once, with everything around them, into an unlinked
 * temporary file: records then stand there, and errors about them name it "PATH, unpacked" and count its bytes.
 *
 * `perf record --threads` makes a directory: `data` is as any file, and the records that each thread wrote are in `data.0`, `data.1` and so on,
 * nothing else. They are put one behind the other in such a temporary file, too.
 *
 * A file cut in its data (a killed `perf record`) is used up to the cut: `cut` says where. With `strict` that is an error.
 * Byte-swapped files are refused, with an error that says so.
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
    uint32_t trailer_size; /* of sample_id in other records; 0 without sample_id_all */
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

/* Which event a sample or trailer belongs to. One event, or events that nothing tells apart, need no table. */
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

/* Where a part of what the recording keeps stands: see carrier_add(). */
struct carrier_part {
    uint32_t entry;
    uint32_t number;
    uint64_t offset;
};

struct perfdata {
    const struct file *file;   /* what offsets count in: as given, or unpacked */
    const struct file *source; /* as given */
    VECTOR(struct perfdata_event) events;
    VECTOR(struct perfdata_build_id) build_ids;
    uint64_t data_start; /* byte offsets of the records */
    uint64_t data_end;   /* of the last whole record, once walked; before: of the section */
    bool is_stream;      /* written to a pipe */
    bool is_cut;
    uint64_t cut; /* where in `source` the first record that is not whole begins */
    struct text arch, hostname, os_release, version, cmdline,
        cpu_desc; /* empty when not recorded */
    uint32_t cpus_online, cpus_available;
    uint64_t first_sample, last_sample; /* their times; both 0: not recorded */
    uint64_t clock_day,
        clock_own;      /* Unix time, and the samples' clock, at one moment; 0: not recorded */
    struct notes notes; /* unknown record types, damaged feature sections */
    struct arena arena;
    /* The rest is this room's own. */
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

/* `file` stays open as long as the perfdata. NULL: not a perf.data or a broken one. */
struct perfdata *perfdata_open(const struct file *file, const struct perfdata_options *options,
                               struct error *error);
void perfdata_free(struct perfdata *data);
/* Take memory for what is kept of the record at `offset` off the recording's budget; false with an error if it is more than that allows. */
bool perfdata_take(struct perfdata *data, uint64_t bytes, uint64_t offset, struct error *error);
/* True, and *error set, if the file shrank while it was read. */
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

/* "MMAP2"; "record" of a type that nobody knows. */
const char *perfdata_record_name(uint32_t type);

/* *offset is where to read and is moved on; begin with data_start, or with the offset of any record. False at the end, or with *error
   set (kind ERROR_NONE before the call tells them apart), or at a cut: then is_cut and cut are set and data_end is moved there, so a
   second walk, from any number of threads, just ends. Costs one cache miss a record; the rest is slow path. */
static inline bool perfdata_next(struct perfdata *data, uint64_t *offset,
                                 struct perfdata_record *record, struct error *error);

/* ---- decoding: false with an error that names the record and its offset --------------------- */

#define PERFDATA_NO_EVENT UINT32_MAX

/* The fields of a sample, in place. Those the event does not record are 0 (pid, tid: -1; cpu: UINT32_MAX; period: the
   attribute's, unless that is a frequency). */
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
    uint64_t weight;       /* of WEIGHT_STRUCT the first, 32 bits wide */
    uint16_t weight_2, weight_3;
    uint64_t data_source, transaction, physical_address, cgroup, data_page_size, code_page_size;
    uint64_t regs_intr_abi;
    const uint8_t *regs_intr;
    const uint8_t *aux;
    uint64_t aux_size;
    uint8_t mode; /* PERF_RECORD_MISC_CPUMODE of misc */
};
/* Whole. A sample of no known event (see below) is an error here. */
bool perfdata_sample(const struct perfdata *data, const struct perfdata_record *record,
                     struct perfdata_sample *sample, struct error *error);
/* Since Linux 6.16 `perf record --off-cpu` puts what its samples of waits are about (whose, how long, the chain) into their raw data; these
   become the sample's own. Others are left as they are; so perf 6.1 sees them all. */
void perfdata_unwrap_wait(const struct perfdata *data, struct perfdata_sample *sample);
/* Which event a sample belongs to, and its time (0: not recorded): what pass 1 needs, at a few loads each. An id that no attribute
   has gives PERFDATA_NO_EVENT: such samples can't be decoded; skip and note them, as perf does. */
static inline bool perfdata_sample_key(const struct perfdata *data,
                                       const struct perfdata_record *record, uint32_t *event,
                                       uint64_t *time, struct error *error);

/* The sample_id trailer of any other record; what is absent is 0 (pid, tid: -1; cpu: UINT32_MAX). Records that user space made up
   (types from 64) have none. */
struct perfdata_trailer {
    uint32_t event; /* PERFDATA_NO_EVENT: its id is no attribute's */
    bool has_time;
    uint64_t time, id, stream_id;
    int32_t pid, tid;
    uint32_t cpu;
};
bool perfdata_trailer(const struct perfdata *data, const struct perfdata_record *record,
                      struct perfdata_trailer *trailer, struct error *error);

/*
 * Whether a MMAP2 record has a build id, where it may also have a device and a file's number. Kernels (6.18 still) leave the bit set that says so when
 * somebody else's recording, running at the same time, asked for build ids and this one did not. `size` is its four bytes, of which three must be 0.
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
    uint64_t mount_device, mount_inode; /* of the mount namespace; 0: not told */
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
/* LOST (2) and LOST_SAMPLES (13): how many. */
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
/* HEADER_BUILD_ID (67) among the records of a file; those of the header, and of a stream, are in `build_ids`. */
bool perfdata_build_id(const struct perfdata *data, const struct perfdata_record *record,
                       struct perfdata_build_id *build_id, struct error *error);
/* Checks any record but a sample against the least size of its type, and notes types that nobody knows. Adds to the notes, so for pass
   1 and one thread. The decoders above check by themselves. */
bool perfdata_check(struct perfdata *data, const struct perfdata_record *record,
                    struct error *error);

/* ---- the carrier: what a recording keeps beside perf's own records --------------------------- */

/*
 * JIT maps, files that will be gone, labels and the like, in entries with a kind, a key and bytes; docs/carrier.md specifies the
 * format and each kind's key. They stand in the stream, in records that perf ignores, so that they pass through pipes, `perf inject`
 * and recorders that are killed. Readers skip kinds that they do not know; writer.h has carrier_write().
 */
enum carrier_kind {
    CARRIER_PERF_MAP = 1,     /* the text of a process's perf map */
    CARRIER_FILE = 2,         /* a file with code, whole */
    CARRIER_LABELS = 3,       /* labels of a process */
    CARRIER_FACT = 4,         /* something about the recording, by name */
    CARRIER_FUNCTIONS = 5,    /* functions of interpreters, by number */
    CARRIER_STACKS = 6,       /* their stacks, by thread and time */
    CARRIER_JAVA_CODE = 7,    /* what a Java virtual machine has compiled */
    CARRIER_JAVA_METHODS = 8, /* its methods, as far as they ran */
    CARRIER_DUMP = 9,         /* a jitdump of a process */
    CARRIER_DEBUG = 10,       /* a file with debug information, whole */
    CARRIER_KERNEL = 11,      /* the kernel's list of symbols, as text */
};
enum { CARRIER_KEY_MOST = 8192, CARRIER_READ_MOST = 512 << 20 };
#define CARRIER_LARGE_MOST (3ull << 30)

/* `key` points into the file. The rest is the room's own. */
struct carrier_entry {
    uint32_t kind; /* any number: a newer wick may know more kinds */
    struct text key;
    uint64_t stored; /* bytes in the file, perhaps packed */
    uint64_t offset; /* of its first record */
    size_t first, parts;
    bool is_packed;
};

/* Remembers a BPF_EVENT record if it is a part of an entry. False with an error if the budget does not allow it. For pass 1 and one thread. */
bool carrier_add(struct perfdata *data, const struct perfdata_record *record, struct error *error);
/* Calls visit(context, entry) for each entry, in the order in which they were written, after all records were walked. Entries
   that are damaged or lack a part are left out and noted. One thread; costs a sort of the parts, and a checksum of the first part of each entry. */
typedef void carrier_visit(void *context, const struct carrier_entry *entry);
void carrier_each(struct perfdata *data, carrier_visit *visit, void *context);
/* Puts the bytes of an entry into `bytes`. False: a checksum is wrong, or more than CARRIER_READ_MOST would have been read of the
   recording, or 16 times its size, if that is more, up to CARRIER_LARGE_MOST. Any thread. */
bool carrier_read(struct perfdata *data, const struct carrier_entry *entry, struct buffer *bytes);

/* ---- the hot path, inlined ---------------------------------------------------------------- */

/* Ends, cuts, nonsense, and records that are followed by a payload of their own or hold others. */
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

/* The place of this id in the table, or of the empty slot where it would be. */
static inline uint32_t perfdata_id_slot(const struct perfdata_ids *ids, uint64_t id) {
    uint32_t slot = (uint32_t)(hash_mix(id, 0) >> 32) & ids->mask;
    while (ids->slots[slot].id != id && ids->slots[slot].event)
        slot = (slot + 1) & ids->mask;
    return slot;
}

/* The event with this id; 0 is what perf gives records it made up, and means the first. */
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
