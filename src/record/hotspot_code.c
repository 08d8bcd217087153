/*
 * The code cache: heaps of consecutive blocks, each with its length in segments, a flag that says whether it is in use, and then a blob.
 */
#include "record/hotspot.h"

enum { HEAPS_MOST = 16, BLOBS_MOST = 1 << 20, HEADER_MOST = 512, FRAME_MOST = 1 << 16 };
#define CACHE_MOST (4ull << 30)

bool hotspot_range(const struct hotspot *h, struct remote *remote, uint64_t *low, uint64_t *high) {
    return remote_u64(remote, h->low_bound, low) && remote_u64(remote, h->high_bound, high) &&
           *low && *low < *high && *high - *low <= CACHE_MOST;
}

/* The header of a block and the bytes after it that are needed. */
struct header {
    uint64_t blob; /* its address */
    const uint8_t *bytes;
    size_t size;
};

static bool header_u64(const struct header *header, int offset, uint64_t *value) {
    if (offset < 0 || (size_t)offset + 8 > header->size)
        return false;
    *value = load_u64(header->bytes + offset);
    return true;
}

static bool header_u32(const struct header *header, int offset, uint32_t *value) {
    if (offset < 0 || (size_t)offset + 4 > header->size)
        return false;
    *value = load_u32(header->bytes + offset);
    return true;
}

static bool read_extent(const struct hotspot *h, const struct header *header,
                        struct hotspot_blob *blob) {
    uint32_t begin, end;
    if (h->blob_code_begin >= 0 && h->blob_code_end >= 0)
        return header_u64(header, h->blob_code_begin, &blob->code) &&
               header_u64(header, h->blob_code_end, &blob->code_end);
    if (!header_u32(header, h->blob_code_offset, &begin) ||
        !header_u32(header, h->blob_data_offset, &end))
        return false;
    blob->code = header->blob + begin;
    blob->code_end = header->blob + end;
    return true;
}

/* The virtual machine itself calls these stubs, and they push nothing: no return address in them is Java's. */
static bool is_called_from_c(const char *name) {
    return strstr(name, "icache") || strstr(name, "VM_Version") || strstr(name, "CPUID");
}

static void find_kind(struct hotspot_blob *blob) {
    struct text name = text_of(blob->name);
    if (text_ends(name, TEXT("nmethod")))
        blob->kind = HOTSPOT_COMPILED;
    else if (text_equal(name, TEXT("Interpreter")))
        blob->kind = HOTSPOT_INTERPRETER;
    else if (text_starts(name, TEXT("Stub")))
        blob->kind = HOTSPOT_STUB;
    else
        blob->kind =
            blob->frame_size || is_called_from_c(blob->name) ? HOTSPOT_SIZED : HOTSPOT_FRAMELESS;
}

/* Up to version 22 everything is in the blob itself; later in two other pieces of memory. */
static void find_scopes(const struct hotspot *h, const struct header *header,
                        struct hotspot_blob *blob) {
    uint32_t pcs, end, metadata, relocation, pcs_end, size;
    uint64_t immutable;
    if (header_u64(header, h->nmethod_immutable, &immutable) &&
        header_u32(header, h->nmethod_scopes_pcs, &pcs) &&
        header_u32(header, h->nmethod_scopes_data, &end) &&
        header_u32(header, h->nmethod_immutable_size, &size) &&
        header_u64(header, h->blob_mutable, &blob->metadata) &&
        header_u32(header, h->blob_mutable_size, &metadata) &&
        header_u32(header, h->blob_relocation_size, &relocation) && relocation <= metadata) {
        blob->scopes_pcs = immutable + pcs;
        blob->scopes_pcs_end = blob->scopes_data = immutable + end;
        blob->scopes_data_end = immutable + size;
        blob->metadata_end = blob->metadata + metadata;
        blob->metadata += relocation; /* which comes first */
    } else if (header_u64(header, h->compiled_scopes_data, &blob->scopes_data) &&
               header_u32(header, h->nmethod_scopes_pcs, &pcs) &&
               header_u32(header, h->nmethod_dependencies, &pcs_end) &&
               header_u32(header, h->nmethod_metadata, &metadata)) {
        blob->scopes_pcs = blob->scopes_data_end = header->blob + pcs;
        blob->scopes_pcs_end = header->blob + pcs_end;
        blob->metadata = header->blob + metadata;
        blob->metadata_end = blob->scopes_data;
    }
}

static bool read_blob(const struct hotspot *h, struct remote *remote, const struct header *header,
                      uint64_t room, struct hotspot_blob *blob) {
    uint64_t name;
    uint32_t frame_complete;
    *blob = (struct hotspot_blob){.address = header->blob};
    if (!read_extent(h, header, blob) || !header_u32(header, h->blob_size, &blob->size) ||
        !header_u32(header, h->blob_frame_size, &blob->frame_size) ||
        !header_u32(header, h->blob_frame_complete, &frame_complete) ||
        !header_u64(header, h->blob_name, &name) || blob->code < header->blob ||
        blob->code >= blob->code_end || blob->code_end - header->blob > room || blob->size > room)
        return false;
    if (!remote_string(remote, name, blob->name, sizeof blob->name))
        return false;
    if (blob->frame_size > FRAME_MOST)
        blob->frame_size = 0; /* -1 of some adapters */
    /* Two bytes since version 23. */
    blob->frame_complete = h->blob_code_offset >= 0 && h->blob_code_begin < 0
                               ? (int16_t)frame_complete
                               : (int32_t)frame_complete;
    find_kind(blob);
    if (blob->kind != HOTSPOT_COMPILED)
        return true;
    find_scopes(h, header, blob);
    header_u32(header, h->nmethod_compile_id, &blob->compile_id);
    return header_u64(header, h->method_of_code, &blob->method);
}

struct walk {
    const struct hotspot *h;
    struct remote *remote;
    bool (*each)(void *context, const struct hotspot_blob *blob);
    void *context;
    size_t blobs;
    bool stopped;
};

/* Walk the blocks of one heap. The last page may be truncated: then read less than a whole header. */
static bool walk_heap(struct walk *walk, uint64_t low, uint64_t high, unsigned shift) {
    const struct hotspot *h = walk->h;
    uint8_t bytes[HEADER_MOST];
    struct hotspot_blob blob;
    for (uint64_t at = low; at < high && !walk->stopped; walk->blobs++) {
        size_t size = high - at < sizeof bytes ? high - at : sizeof bytes;
        if (walk->blobs > BLOBS_MOST || size < h->block_size + 16 ||
            !remote_bytes(walk->remote, at, bytes, size))
            return false;
        uint64_t length = h->block_size >= 16 ? load_u64(bytes + h->block_length)
                                              : load_u32(bytes + h->block_length);
        if (!length || length > (high - at) >> shift)
            return false;
        uint64_t room = (length << shift) - h->block_size;
        struct header header = {at + h->block_size, bytes + h->block_size, size - h->block_size};
        if (bytes[h->block_used] && read_blob(h, walk->remote, &header, room, &blob))
            walk->stopped = !walk->each(walk->context, &blob);
        at += length << shift;
    }
    return true;
}

bool hotspot_each_blob(const struct hotspot *h, struct remote *remote,
                       bool (*each)(void *context, const struct hotspot_blob *blob),
                       void *context) {
    struct walk walk = {h, remote, each, context, 0, false};
    uint64_t array, data, heap, low, high, cache_low, cache_high;
    uint32_t count, shift;
    bool fine = true;
    if (h->block_length + 8 > HEADER_MOST || h->block_used >= HEADER_MOST || h->block_size > 64 ||
        !hotspot_range(h, remote, &cache_low, &cache_high) ||
        !remote_u64(remote, h->heaps, &array) ||
        !remote_u32(remote, array + (uint64_t)h->array_length, &count) ||
        !remote_u64(remote, array + (uint64_t)h->array_data, &data) || !count || count > HEAPS_MOST)
        return false;
    for (uint32_t i = 0; i < count && !walk.stopped; i++) {
        uint64_t space;
        if (!remote_u64(remote, data + 8ull * i, &heap))
            return false;
        space = heap + (uint64_t)h->heap_memory;
        if (!remote_u64(remote, space + (uint64_t)h->space_low, &low) ||
            !remote_u64(remote, space + (uint64_t)h->space_high, &high) ||
            !remote_u32(remote, heap + (uint64_t)h->heap_log2_segment, &shift) || shift < 3 ||
            shift > 20 || low < cache_low || high > cache_high || low >= high)
            return false;
        fine = walk_heap(&walk, low, high, shift) && fine;
    }
    return true;
}
