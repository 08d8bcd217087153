/*
 * What was inlined into a compiled method, and where: a PcDesc for each place where a frame can be seen points to packed numbers, which begin
 * with the position of the enclosing scope, the method, and the position in its bytecode.
 */
#include "record/hotspot.h"

#include <stdlib.h>

enum {
    PCS_MOST = 1 << 16,
    DATA_MOST = 1 << 22,
    METHODS_MOST = 1 << 14,
    DEPTH_MOST = 256,
    SCOPES_MOST = 1 << 16
};

struct source {
    const struct hotspot *h;
    uint8_t *data;
    size_t size;
    uint8_t *methods;
    size_t method_count;
};

static uint32_t scope_find(const struct hotspot_scopes *scopes, uint32_t offset) {
    uint32_t number;
    for (struct probe p = index_probe(&scopes->index, hash_mix(offset, 5));
         (number = index_next(&scopes->index, &p));)
        if (scopes->offsets.items[number - 1] == offset)
            return number;
    return 0;
}

/* Add a scope and those around it, whose positions may be smaller or larger but never form a cycle: each is added once, before what is inside
   it. */
static uint32_t scope_add(const struct source *source, struct hotspot_scopes *scopes,
                          uint32_t offset) {
    uint32_t chain[DEPTH_MOST], parents[DEPTH_MOST], methods[DEPTH_MOST], bytecodes[DEPTH_MOST];
    size_t depth = 0;
    uint32_t known = 0;
    if (scopes->scopes.count > SCOPES_MOST)
        return 0;
    for (; offset && !(known = scope_find(scopes, offset)); depth++) {
        size_t at = offset;
        if (depth == DEPTH_MOST ||
            !hotspot_number(source->h, source->data, source->size, &at, &parents[depth]) ||
            !hotspot_number(source->h, source->data, source->size, &at, &methods[depth]) ||
            !hotspot_number(source->h, source->data, source->size, &at, &bytecodes[depth]) ||
            !methods[depth] || methods[depth] > source->method_count)
            return 0;
        chain[depth] = offset;
        offset = parents[depth];
    }
    while (depth-- > 0) {
        struct hotspot_scope scope = {
            .parent = known,
            .method = load_u64(source->methods + 8 * (size_t)(methods[depth] - 1)),
            .bytecode = bytecodes[depth] < 0x10000 ? (int32_t)bytecodes[depth] - 1 : -1};
        vector_push(&scopes->scopes, scope);
        vector_push(&scopes->offsets, chain[depth]);
        known = (uint32_t)scopes->scopes.count;
        index_add(&scopes->index, hash_mix(chain[depth], 5), known);
    }
    return known;
}

/* Read pages that the process may have unmapped: all or nothing. */
static uint8_t *read_piece(struct remote *remote, uint64_t start, uint64_t end, size_t most) {
    if (start >= end || end - start > most)
        return NULL;
    uint8_t *bytes = memory_alloc(end - start);
    if (remote_bytes(remote, start, bytes, end - start))
        return bytes;
    free(bytes);
    return NULL;
}

static void add_pcs(const struct source *source, const uint8_t *pcs, size_t size, uint32_t code,
                    struct hotspot_scopes *scopes) {
    const struct hotspot *h = source->h;
    uint32_t last = 0;
    for (size_t at = 0; at + h->pc_size <= size; at += h->pc_size) {
        uint32_t pc = load_u32(pcs + at + h->pc_offset), scope = load_u32(pcs + at + h->pc_scope);
        if (pc > code || pc < last || !scope)
            continue; /* the first and last mark the ends */
        uint32_t number = scope_add(source, scopes, scope);
        if (number)
            vector_push(&scopes->pcs, ((struct hotspot_pc){pc, number}));
        last = pc;
    }
}

bool hotspot_scopes(const struct hotspot *h, struct remote *remote, const struct hotspot_blob *blob,
                    struct hotspot_scopes *scopes) {
    scopes->scopes.count = scopes->pcs.count = scopes->offsets.count = 0;
    index_release(&scopes->index);
    if (h->pc_offset + 4 > (int)h->pc_size || h->pc_scope + 4 > (int)h->pc_size)
        return false;
    struct source source = {.h = h};
    uint8_t *pcs =
        read_piece(remote, blob->scopes_pcs, blob->scopes_pcs_end, PCS_MOST * h->pc_size);
    source.data = read_piece(remote, blob->scopes_data, blob->scopes_data_end, DATA_MOST);
    source.methods = read_piece(remote, blob->metadata, blob->metadata_end, 8 * METHODS_MOST);
    if (pcs && source.data && source.methods) {
        source.size = blob->scopes_data_end - blob->scopes_data;
        source.method_count = (blob->metadata_end - blob->metadata) / 8;
        add_pcs(&source, pcs, blob->scopes_pcs_end - blob->scopes_pcs,
                (uint32_t)(blob->code_end - blob->code), scopes);
    }
    free(pcs);
    free(source.data);
    free(source.methods);
    return scopes->pcs.count;
}

void hotspot_scopes_release(struct hotspot_scopes *scopes) {
    vector_release(&scopes->scopes);
    vector_release(&scopes->pcs);
    vector_release(&scopes->offsets);
    index_release(&scopes->index);
}
