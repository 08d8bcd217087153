/*
 * perfdata: the perf.data format, read in place.
 *
 * perfdata_open() checks the header, the attributes with their ids and the feature sections, and keeps what wick uses of
 * them. Records are then walked straight in the mapped file: perfdata_next() gives one after the other, and the decoders below
 * turn one record into a struct whose pointers point into the file. Nothing is copied and nothing allocated for a
 * record. Each length, offset and count is checked against its bounds before it is used; what contradicts them is an
 * error with the byte offset.
 *
 * A file cut in its data (a killed `perf record`) is used up to the cut: `cut` says where. With `strict` that is an error.
 */
#ifndef WICK_PERFDATA_H
#define WICK_PERFDATA_H

#include <linux/perf_event.h>

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
#define CONTEXT_MARKERS_FROM 0xfffffffffffff000ull /* every value from here up is a marker, not an address */

/* One attribute: what one event's samples look like. */
struct perfdata_event {
    uint32_t type;
    uint64_t config;
    uint64_t sample_type;
    uint64_t read_format;
    uint64_t flags; /* the attribute's bit field, sample_id_all is bit 18 */
    uint64_t branch_sample_type;
    uint64_t regs_user;
    uint64_t regs_intr;
    uint64_t sample_period; /* or frequency, if the freq flag (bit 10) is set */
    uint32_t stack_user;
    struct text name; /* EVENT_DESC's, else made from type and config; lives as long as the perfdata */
    const uint8_t *ids; /* unaligned u64s */
    size_t id_count;
    uint32_t trailer_size; /* of sample_id in other records; 0 without sample_id_all */
};

struct perfdata_build_id {
    struct text path;
    struct build_id id;
    int32_t pid;
    uint16_t misc; /* cpumode */
};

struct perfdata {
    const struct file *file;
    VECTOR(struct perfdata_event) events;
    VECTOR(struct perfdata_build_id) build_ids;
    uint64_t data_start; /* byte offsets of the records */
    uint64_t data_end;   /* of the last whole record, once walked; before: of the section */
    bool is_cut;
    uint64_t cut; /* where the first record that is not whole begins */
    struct text arch, hostname, os_release, version, cmdline, cpu_desc; /* empty when not recorded */
    uint32_t cpus_online, cpus_available;
    struct notes notes;
    struct arena arena;
    /* private: ids to events, feature table */
    struct perfdata_ids *ids;
};

struct perfdata_options {
    bool strict;
};

/* `file` stays open as long as the perfdata. NULL: not a perf.data or a broken one. */
struct perfdata *perfdata_open(const struct file *file, const struct perfdata_options *options,
                               struct error *error);
void perfdata_free(struct perfdata *data);
bool perfdata_is(struct text beginning); /* the magic, either byte order, pipe or file */

/* ---- walking ------------------------------------------------------------------------------ */

struct perfdata_record {
    uint64_t offset; /* of its header in the file */
    uint32_t type;
    uint16_t misc;
    uint16_t size; /* with the header */
    const uint8_t *data; /* the header */
};

/* *offset is where to read and is moved on; begin with data_start, or with the offset of any record. False at the end, or at a cut
   (then is_cut and cut are set, unless strict, when *error is). Records other than samples are rare, so this is inlined. */
bool perfdata_next(struct perfdata *data, uint64_t *offset, struct perfdata_record *record, struct error *error);

/* ---- decoding: false with an error that names the record and its offset --------------------- */

/* The fields of a sample, in place. Those the event does not record are 0 (pid, tid: -1; cpu: UINT32_MAX). */
struct perfdata_sample {
    uint32_t event; /* index into events */
    uint64_t identifier, ip, time, address, id, stream_id, period;
    int32_t pid, tid;
    uint32_t cpu;
    const uint8_t *read;  /* unparsed, validated */
    size_t read_size;
    const uint8_t *chain; /* u64s, markers included; NULL when the event records none */
    uint64_t chain_count;
    const uint8_t *raw;
    uint32_t raw_size;
    const uint8_t *branches; /* 24 bytes each */
    uint64_t branch_count;
    uint64_t regs_user_abi;
    const uint8_t *regs_user; /* popcount(event's regs_user) u64s; NULL when abi is 0 */
    const uint8_t *stack;
    uint64_t stack_size;    /* bytes that are valid: the dynamic size */
    uint64_t stack_dumped;  /* bytes that are in the record */
    uint64_t weight, data_source, transaction, physical_address, cgroup, data_page_size, code_page_size;
    uint64_t regs_intr_abi;
    const uint8_t *regs_intr;
    uint8_t mode; /* PERF_RECORD_MISC_CPUMODE of misc */
};
/* Whole. */
bool perfdata_sample(const struct perfdata *data, const struct perfdata_record *record,
                     struct perfdata_sample *sample, struct error *error);
/* Which event a sample belongs to, and its time: what pass 1 needs, at a few loads each. */
bool perfdata_sample_key(const struct perfdata *data, const struct perfdata_record *record, uint32_t *event,
                         uint64_t *time, struct error *error);

/* The sample_id trailer of any other record; what is absent is 0 (pid, tid: -1; cpu: UINT32_MAX). */
struct perfdata_trailer {
    uint32_t event;
    bool has_time;
    uint64_t time, id, stream_id;
    int32_t pid, tid;
    uint32_t cpu;
};
bool perfdata_trailer(const struct perfdata *data, const struct perfdata_record *record,
                      struct perfdata_trailer *trailer, struct error *error);

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
bool perfdata_ksymbol(const struct perfdata *data, const struct perfdata_record *record,
                      struct perfdata_ksymbol *ksymbol, struct error *error);
/* LOST (2) and LOST_SAMPLES (13): how many. */
bool perfdata_lost(const struct perfdata *data, const struct perfdata_record *record, uint64_t *lost,
                   struct error *error);
/* Checks every other kernel record (THROTTLE, READ, AUX, SWITCH, NAMESPACES, BPF_EVENT, CGROUP, TEXT_POKE, …) and user record
   against its least size. */
bool perfdata_check(const struct perfdata *data, const struct perfdata_record *record, struct error *error);

#endif
