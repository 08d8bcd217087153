/*
 * Offsets and addresses in a HotSpot virtual machine, from the tables that libjvm.so exports for debuggers. Two lists, of fields and of
 * types, are walked once per process; each matching entry sets a number.
 */
#include "record/hotspot.h"

#include <stddef.h>

enum { ENTRIES_MOST = 8192, STRIDE_MOST = 256, NAME_MOST = 128 };

struct wanted_field {
    const char *type, *field;
    size_t to; /* in struct hotspot */
    bool is_static;
    bool is_needed;
};

#define FIELD(type, field, member)                                                                 \
    { type, field, offsetof(struct hotspot, member), false, true }
#define MAYBE(type, field, member)                                                                 \
    { type, field, offsetof(struct hotspot, member), false, false }
#define STATIC(type, field, member)                                                                \
    { type, field, offsetof(struct hotspot, member), true, true }

static const struct wanted_field wanted_fields[] = {
    STATIC("CodeCache", "_heaps", heaps),
    STATIC("CodeCache", "_low_bound", low_bound),
    STATIC("CodeCache", "_high_bound", high_bound),
    STATIC("Abstract_VM_Version", "_vm_major_version", major_version),
    FIELD("GrowableArrayBase", "_len", array_length),
    MAYBE("GenericGrowableArray", "_len", array_length), /* until 15 */
    FIELD("GrowableArray<int>", "_data", array_data),
    FIELD("CodeHeap", "_memory", heap_memory),
    FIELD("CodeHeap", "_log2_segment_size", heap_log2_segment),
    FIELD("VirtualSpace", "_low", space_low),
    FIELD("VirtualSpace", "_high", space_high),
    FIELD("HeapBlock::Header", "_length", block_length),
    FIELD("HeapBlock::Header", "_used", block_used),
    FIELD("CodeBlob", "_name", blob_name),
    FIELD("CodeBlob", "_size", blob_size),
    FIELD("CodeBlob", "_frame_size", blob_frame_size),
    FIELD("CodeBlob", "_frame_complete_offset", blob_frame_complete),
    MAYBE("CodeBlob", "_code_begin", blob_code_begin),
    MAYBE("CodeBlob", "_code_end", blob_code_end),
    MAYBE("CodeBlob", "_code_offset", blob_code_offset),
    MAYBE("CodeBlob", "_data_offset", blob_data_offset),
    MAYBE("CodeBlob", "_mutable_data", blob_mutable),
    MAYBE("CodeBlob", "_mutable_data_size", blob_mutable_size),
    MAYBE("CodeBlob", "_relocation_size", blob_relocation_size),
    MAYBE("CompiledMethod", "_method", method_of_code),
    MAYBE("nmethod", "_method", method_of_code),
    MAYBE("CompiledMethod", "_scopes_data_begin", compiled_scopes_data),
    MAYBE("nmethod", "_metadata_offset", nmethod_metadata),
    MAYBE("nmethod", "_dependencies_offset", nmethod_dependencies),
    MAYBE("nmethod", "_scopes_pcs_offset", nmethod_scopes_pcs),
    MAYBE("nmethod", "_scopes_data_offset", nmethod_scopes_data),
    MAYBE("nmethod", "_immutable_data", nmethod_immutable),
    MAYBE("nmethod", "_immutable_data_size", nmethod_immutable_size),
    MAYBE("nmethod", "_compile_id", nmethod_compile_id),
    FIELD("Method", "_constMethod", method_const),
    FIELD("ConstMethod", "_constants", const_constants),
    FIELD("ConstMethod", "_code_size", const_code_size),
    FIELD("ConstMethod", "_name_index", const_name),
    MAYBE("ConstMethod", "_flags", const_flags),
    MAYBE("ConstMethod", "_flags._flags", const_flags),
    FIELD("ConstantPool", "_pool_holder", pool_holder),
    FIELD("ConstantPool", "_length", pool_length),
    MAYBE("ConstantPool", "_source_file_name_index", pool_source_file),
    MAYBE("InstanceKlass", "_source_file_name_index", klass_source_file),
    FIELD("InstanceKlass", "_constants", klass_constants),
    FIELD("Klass", "_name", klass_name),
    FIELD("Symbol", "_length", symbol_length),
    FIELD("Symbol", "_body", symbol_body),
    FIELD("PcDesc", "_pc_offset", pc_offset),
    FIELD("PcDesc", "_scope_decode_offset", pc_scope),
};

static const struct wanted_type {
    const char *type;
    size_t to;
} wanted_types[] = {
    {"HeapBlock", offsetof(struct hotspot, block_size)},
    {"ConstMethod", offsetof(struct hotspot, const_size)},
    {"ConstantPool", offsetof(struct hotspot, pool_size)},
    {"PcDesc", offsetof(struct hotspot, pc_size)},
};

/* Read the value of an exported variable. */
static bool exported(struct remote *remote, uint64_t base, const char *name, uint64_t *value) {
    uint64_t address = remote_symbol(remote, base, name);
    return address && remote_u64(remote, address, value);
}

/* A list of entries with a stride, and parts at these offsets. */
struct list {
    uint64_t first, stride;
    uint64_t offsets[5];
};

static bool find_list(struct remote *remote, uint64_t base, const char *const *names, size_t count,
                      struct list *list) {
    if (!exported(remote, base, names[0], &list->first) ||
        !exported(remote, base, names[1], &list->stride) || list->stride > STRIDE_MOST ||
        list->stride < 16)
        return false;
    for (size_t i = 2; i < count; i++)
        if (!exported(remote, base, names[i], &list->offsets[i - 2]) ||
            list->offsets[i - 2] > list->stride - 8)
            return false;
    return true;
}

static void *member(struct hotspot *h, size_t offset) {
    return (char *)h + offset;
}

enum { TYPE, FIELD_NAME, IS_STATIC, OFFSET, ADDRESS };

static void take_field(struct hotspot *h, const struct list *list, const uint8_t *entry,
                       const char *type, const char *field) {
    for (size_t i = 0; i < COUNT_OF(wanted_fields); i++) {
        const struct wanted_field *wanted = &wanted_fields[i];
        if (strcmp(wanted->type, type) != 0 || strcmp(wanted->field, field) != 0 ||
            wanted->is_static != (load_u32(entry + list->offsets[IS_STATIC]) != 0))
            continue;
        uint64_t offset = load_u64(entry + list->offsets[OFFSET]);
        if (wanted->is_static)
            *(uint64_t *)member(h, wanted->to) = load_u64(entry + list->offsets[ADDRESS]);
        else if (offset < 4096)
            *(int *)member(h, wanted->to) = (int)offset;
    }
}

static bool learn_fields(struct hotspot *h, struct remote *remote, uint64_t base) {
    static const char *const names[] = {
        "gHotSpotVMStructs",
        "gHotSpotVMStructEntryArrayStride",
        "gHotSpotVMStructEntryTypeNameOffset",
        "gHotSpotVMStructEntryFieldNameOffset",
        "gHotSpotVMStructEntryIsStaticOffset",
        "gHotSpotVMStructEntryOffsetOffset",
        "gHotSpotVMStructEntryAddressOffset",
    };
    struct list list;
    uint8_t entry[STRIDE_MOST];
    char type[NAME_MOST], field[NAME_MOST];
    if (!find_list(remote, base, names, COUNT_OF(names), &list))
        return false;
    for (size_t i = 0; i < ENTRIES_MOST; i++) {
        if (!remote_small(remote, list.first + i * list.stride, entry, list.stride))
            return false;
        uint64_t type_name = load_u64(entry + list.offsets[TYPE]);
        uint64_t field_name = load_u64(entry + list.offsets[FIELD_NAME]);
        if (!type_name)
            return true;
        if (!field_name)
            continue;
        if (!remote_string(remote, type_name, type, sizeof type) ||
            !remote_string(remote, field_name, field, sizeof field))
            return false; /* not relocated yet */
        take_field(h, &list, entry, type, field);
    }
    return false;
}

static bool learn_types(struct hotspot *h, struct remote *remote, uint64_t base) {
    static const char *const names[] = {
        "gHotSpotVMTypes",
        "gHotSpotVMTypeEntryArrayStride",
        "gHotSpotVMTypeEntryTypeNameOffset",
        "gHotSpotVMTypeEntrySizeOffset",
    };
    struct list list;
    uint8_t entry[STRIDE_MOST];
    char type[NAME_MOST];
    if (!find_list(remote, base, names, COUNT_OF(names), &list))
        return false;
    for (size_t i = 0; i < ENTRIES_MOST; i++) {
        if (!remote_small(remote, list.first + i * list.stride, entry, list.stride))
            return false;
        uint64_t name = load_u64(entry + list.offsets[0]);
        if (!name)
            return true;
        if (!remote_string(remote, name, type, sizeof type))
            return false;
        for (size_t k = 0; k < COUNT_OF(wanted_types); k++)
            if (strcmp(wanted_types[k].type, type) == 0)
                *(uint64_t *)member(h, wanted_types[k].to) = load_u64(entry + list.offsets[1]);
    }
    return false;
}

static const char *first_missing(struct hotspot *h) {
    for (size_t i = 0; i < COUNT_OF(wanted_fields); i++) {
        const struct wanted_field *wanted = &wanted_fields[i];
        if (wanted->is_needed && (wanted->is_static ? !*(uint64_t *)member(h, wanted->to)
                                                    : *(int *)member(h, wanted->to) < 0))
            return wanted->field;
    }
    for (size_t i = 0; i < COUNT_OF(wanted_types); i++) {
        uint64_t size = *(uint64_t *)member(h, wanted_types[i].to);
        if (size < 4 || size > 4096)
            return wanted_types[i].type;
    }
    if (h->method_of_code < 0)
        return "nmethod::_method";
    if ((h->blob_code_begin < 0 || h->blob_code_end < 0) &&
        (h->blob_code_offset < 0 || h->blob_data_offset < 0))
        return "CodeBlob::_code_begin";
    return NULL;
}

bool hotspot_learn(struct hotspot *h, struct remote *remote, uint64_t base, const char **missing) {
    *h = (struct hotspot){0};
    for (size_t i = 0; i < COUNT_OF(wanted_fields); i++)
        if (!wanted_fields[i].is_static)
            *(int *)member(h, wanted_fields[i].to) = HOTSPOT_NONE;
    *missing = "gHotSpotVMStructs";
    if (!learn_fields(h, remote, base))
        return false;
    *missing = "gHotSpotVMTypes";
    if (!learn_types(h, remote, base))
        return false;
    *missing = first_missing(h);
    return !*missing && remote_u32(remote, h->major_version, &h->major);
}
