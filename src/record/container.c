/*
 * Which container a cgroup's path belongs to. Runtimes put the container's id, 64 hexadecimal digits, into the last parts of the path,
 * each in its own way:
 *
 *     docker       /docker/ID, …/docker-ID.scope
 *     podman       …/libpod-ID.scope, …/libpod-ID
 *     containerd   …/cri-containerd-ID.scope, …:cri-containerd:ID, /NAMESPACE/ID
 *     Kubernetes   /kubepods/…/podUID/ID, and the above below kubepods.slice; CRI-O: …/crio-ID.scope
 *     LXC          /lxc/NAME, /lxc.payload.NAME
 *     systemd      …/machine-NAME.scope, …/systemd-nspawn@NAME.service, else the innermost NAME.service
 *
 * An id is shown by its first twelve digits, as the runtimes' own tools do.
 */
#include "record/internal.h"

#include <ctype.h>

enum { ID_LENGTH = 64, ID_SHOWN = 12 };

/* Find an id at the end of a component, after nothing but a prefix that ends in '-' or ':'. */
static bool id_in(struct text part, struct text *id) {
    static const struct text scope = TEXT(".scope");
    if (text_ends(part, scope))
        part.length -= scope.length;
    if (part.length < ID_LENGTH)
        return false;
    *id = text_from(part, part.length - ID_LENGTH);
    for (size_t i = 0; i < ID_LENGTH; i++)
        if (!isxdigit((unsigned char)id->data[i]))
            return false;
    char before = part.length > ID_LENGTH ? id->data[-1] : '-';
    return before == '-' || before == ':';
}

/* Get the text between a prefix and a suffix; return false if the component does not have both, or nothing is between them. */
static bool between(struct text part, struct text prefix, struct text suffix, struct text *name) {
    if (part.length <= prefix.length + suffix.length || !text_starts(part, prefix) ||
        !text_ends(part, suffix))
        return false;
    *name = text_from(text_upto(part, part.length - suffix.length), prefix.length);
    return true;
}

/* systemd writes bytes that are not allowed in a unit's name as \xNN. */
static void add_unescaped(struct buffer *buffer, struct text name) {
    for (size_t i = 0; i < name.length; i++) {
        uint64_t byte;
        bool escaped = name.data[i] == '\\' && i + 3 < name.length && name.data[i + 1] == 'x' &&
                       text_hex_to_u64((struct text){name.data + i + 2, 2}, &byte);
        buffer_add_char(buffer, escaped ? (char)byte : name.data[i]);
        i += escaped ? 3 : 0;
    }
}

static bool name_of_part(struct text part, struct text before, struct buffer *container) {
    static const struct text scope = TEXT(".scope"), service = TEXT(".service"), none = TEXT("");
    struct text name;
    if (id_in(part, &name)) {
        buffer_add(container, text_upto(name, ID_SHOWN));
        return true;
    }
    if (between(part, TEXT("machine-"), scope, &name) ||
        between(part, TEXT("systemd-nspawn@"), service, &name) ||
        between(part, TEXT("lxc.payload."), none, &name) ||
        (text_equal(before, TEXT("lxc")) && between(part, none, none, &name))) {
        add_unescaped(container, name);
        return true;
    }
    return false;
}

/* Look from the innermost component outwards; a service is a container only if no component around it is one. */
bool container_of_cgroup(struct text path, struct buffer *container) {
    struct text service = {0};
    while (path.length) {
        size_t slash = text_find_last(path, '/');
        struct text part = slash == SIZE_MAX ? path : text_from(path, slash + 1);
        path = text_upto(path, slash == SIZE_MAX ? 0 : slash);
        size_t above = text_find_last(path, '/');
        struct text before = above == SIZE_MAX ? path : text_from(path, above + 1);
        if (name_of_part(part, before, container))
            return true;
        if (!service.length && text_ends(part, TEXT(".service")))
            service = part;
    }
    add_unescaped(container, service);
    return service.length > 0;
}
