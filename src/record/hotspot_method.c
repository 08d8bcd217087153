/*
 * Methods: Method, its ConstMethod, the class's ConstantPool, Symbols. A pointer that only looks like a method is detected by following it
 * back: the pool's holder must have that pool.
 */
#include "record/hotspot.h"

#include <stdlib.h>

bool hotspot_number(const struct hotspot *h, const uint8_t *bytes, size_t size, size_t *at,
                    uint32_t *number) {
    /* Base 64 digits, lowest first; a byte below `low` is the last. Since version 20 no byte is 0. */
    unsigned excluded = h->major >= 20, low = 256 - 64 - excluded;
    uint32_t sum = 0;
    for (unsigned shift = 0; shift <= 24; shift += 6) {
        if (*at >= size || bytes[*at] < excluded)
            return false;
        uint32_t digit = bytes[(*at)++] - excluded;
        sum += digit << shift;
        if (digit < low)
            break;
    }
    *number = sum;
    return true;
}

static int32_t signed_number(uint32_t number) {
    return (int32_t)(number >> 1) ^ -(int32_t)(number & 1);
}

static bool read_symbol(const struct hotspot *h, struct remote *remote, uint64_t address,
                        char *name) {
    uint16_t length;
    if (!address || !remote_u16(remote, address + (uint64_t)h->symbol_length, &length))
        return false;
    if (length >= HOTSPOT_NAME_MOST)
        length = HOTSPOT_NAME_MOST - 1;
    if (!remote_small(remote, address + (uint64_t)h->symbol_body, name, length))
        return false;
    name[length] = 0;
    return length && !memchr(name, 0, length);
}

static bool read_pool_symbol(const struct hotspot *h, struct remote *remote, uint64_t pool,
                             uint16_t number, char *name) {
    uint32_t length;
    uint64_t symbol;
    return number && remote_u32(remote, pool + (uint64_t)h->pool_length, &length) &&
           number < length && remote_u64(remote, pool + h->pool_size + 8ull * number, &symbol) &&
           read_symbol(h, remote, symbol & ~(uint64_t)1, name);
}

/* Pairs of differences: both in one byte, or 255 and two numbers; 0 is the end. */
static void read_lines(const struct hotspot *h, struct remote *remote,
                       struct hotspot_method *method) {
    enum { BYTES_MOST = 8192 };
    uint8_t bytes[BYTES_MOST];
    uint64_t start = method->code + method->code_size;
    size_t size = BYTES_MOST;
    uint32_t bytecode = 0, line = 0, a, b;
    /* The length is not stored; most are shorter than the rest of the page. */
    while (size && !remote_small(remote, start, bytes, size))
        size = size > REMOTE_PAGE ? REMOTE_PAGE - (start & (REMOTE_PAGE - 1)) : 0;
    for (size_t at = 0; at < size && bytes[at] && method->lines.count < HOTSPOT_LINES_MOST;) {
        uint8_t first = bytes[at++];
        if (first != 0xff) {
            bytecode += first >> 3;
            line += first & 7;
        } else if (hotspot_number(h, bytes, size, &at, &a) &&
                   hotspot_number(h, bytes, size, &at, &b)) {
            bytecode += (uint32_t)signed_number(a);
            line += (uint32_t)signed_number(b);
        } else {
            return;
        }
        if (bytecode >= method->code_size || line > 0xffff)
            return;
        vector_push(&method->lines, ((struct hotspot_line){bytecode, line}));
    }
}

/* Classes generated at run time have an address in their name, which differs each time. */
static void drop_address(char *name) {
    char *at = strstr(name, "0x");
    if (at && at > name + 1 && (at[-1] == '+' || at[-1] == '/') &&
        strspn(at + 2, "0123456789abcdef") == strlen(at + 2))
        at[-1] = 0;
}

bool hotspot_method(const struct hotspot *h, struct remote *remote, uint64_t address,
                    struct hotspot_method *method) {
    enum { HAS_LINES = 1 };
    uint64_t constant, pool, holder, pool_again, class_name;
    uint16_t code_size, name, file = 0, flags = 0;
    method->lines.count = 0;
    method->address = address;
    method->file[0] = 0;
    if (!address || address & 7 ||
        !remote_u64(remote, address + (uint64_t)h->method_const, &constant) || !constant ||
        constant & 7 || !remote_u64(remote, constant + (uint64_t)h->const_constants, &pool) ||
        !pool || pool & 7 || !remote_u64(remote, pool + (uint64_t)h->pool_holder, &holder) ||
        !holder || holder & 7 ||
        !remote_u64(remote, holder + (uint64_t)h->klass_constants, &pool_again) ||
        !remote_u64(remote, holder + (uint64_t)h->klass_name, &class_name) ||
        !remote_u16(remote, constant + (uint64_t)h->const_code_size, &code_size) ||
        !remote_u16(remote, constant + (uint64_t)h->const_name, &name))
        return false;
    /* A redefined class has another pool than its old methods. */
    if (!read_symbol(h, remote, class_name, method->class_name) ||
        !read_pool_symbol(h, remote, pool, name, method->name))
        return false;
    (void)pool_again;
    drop_address(method->class_name);
    if (h->pool_source_file >= 0)
        remote_u16(remote, pool + (uint64_t)h->pool_source_file, &file);
    else if (h->klass_source_file >= 0)
        remote_u16(remote, holder + (uint64_t)h->klass_source_file, &file);
    if (!read_pool_symbol(h, remote, pool, file, method->file))
        method->file[0] = 0;
    method->code = constant + h->const_size;
    method->code_size = code_size;
    if (h->const_flags >= 0 && remote_u16(remote, constant + (uint64_t)h->const_flags, &flags) &&
        flags & HAS_LINES)
        read_lines(h, remote, method);
    return true;
}
