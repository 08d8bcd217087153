/*
 * The memory of another process, which may exit or change. A read of less than a page reads the whole page, because most reads are close
 * together.
 */
#include "record/hotspot.h"

#include <sys/types.h>
#include <sys/uio.h>

void remote_begin(struct remote *remote, uint64_t reads) {
    remote->left = reads;
    for (size_t i = 0; i < REMOTE_PAGES; i++)
        remote->pages[i].address = 0;
}

bool remote_bytes(struct remote *remote, uint64_t address, void *bytes, size_t size) {
    if (!remote->left || address >> 56 || address < REMOTE_PAGE)
        return false;
    remote->left--;
    return remote->read(remote->context, address, bytes, size);
}

static const uint8_t *page_at(struct remote *remote, uint64_t address) {
    uint64_t start = address & ~(uint64_t)(REMOTE_PAGE - 1);
    struct remote_page *page = &remote->pages[start / REMOTE_PAGE % REMOTE_PAGES];
    if (page->address != start + 1) {
        page->address = 0;
        if (!remote_bytes(remote, start, page->bytes, REMOTE_PAGE))
            return NULL;
        page->address = start + 1;
    }
    return page->bytes;
}

bool remote_small(struct remote *remote, uint64_t address, void *bytes, size_t size) {
    uint8_t *to = bytes;
    while (size) {
        size_t into = address & (REMOTE_PAGE - 1), here = REMOTE_PAGE - into;
        const uint8_t *page = page_at(remote, address);
        if (!page)
            return false;
        here = here < size ? here : size;
        memcpy(to, page + into, here);
        to += here;
        address += here;
        size -= here;
    }
    return true;
}

bool remote_u16(struct remote *remote, uint64_t address, uint16_t *value) {
    return remote_small(remote, address, value, sizeof *value);
}

bool remote_u32(struct remote *remote, uint64_t address, uint32_t *value) {
    return remote_small(remote, address, value, sizeof *value);
}

bool remote_u64(struct remote *remote, uint64_t address, uint64_t *value) {
    return remote_small(remote, address, value, sizeof *value);
}

bool remote_string(struct remote *remote, uint64_t address, char *string, size_t size) {
    for (size_t at = 0; at < size;) {
        size_t into = (address + at) & (REMOTE_PAGE - 1), here = REMOTE_PAGE - into;
        const uint8_t *page = page_at(remote, address + at);
        if (!page)
            return false;
        here = here < size - at ? here : size - at;
        memcpy(string + at, page + into, here);
        if (memchr(string + at, 0, here))
            return true;
        at += here;
    }
    return false;
}

bool process_read(void *context, uint64_t address, void *bytes, size_t size) {
    const pid_t *pid = context;
    struct iovec to = {bytes, size};
    struct iovec from = {(void *)(uintptr_t)address, size}; // NOLINT(performance-no-int-to-ptr)
    return process_vm_readv(*pid, &to, 1, &from, 1, 0) == (ssize_t)size;
}
