/*
 * Estimate what demangling a name would cost.
 *
 * A mangled name refers back to its own parts, so a short one may expand to exponentially many. libiberty walks them one by one, in places
 * without printing any, and can't be stopped there. So the references are followed here first, each part once: the cost of a part is the sum of
 * its parts' costs, however often they are shared. This parses the name, but only if it could be expensive.
 */
#include "object/demangle.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <stdlib.h>

/* More components than any real name shows; printing them takes some ten milliseconds. */
#define COST_MOST (1ull << 20)

/* ---- C++ ---- */

enum { PLAIN_LENGTH = 1000, PLAIN_REFERENCES = 20, CONVERSIONS_MOST = 16 };

/* What can be told from the letters alone. */
struct letters {
    unsigned references; /* at most: S and T begin other things, too */
    unsigned packs;
    unsigned applied; /* template parameters with arguments: T_I, T0_I */
    bool converts;
};

static struct letters letters_count(const char *name, size_t length) {
    struct letters l = {0};
    for (size_t i = 0; i < length; i++) {
        l.references += name[i] == 'S' || name[i] == 'T';
        l.packs += name[i] == 'p' && i && (name[i - 1] == 'D' || name[i - 1] == 's');
        l.converts |= name[i] == 'v' && i && name[i - 1] == 'c';
        if (name[i] != 'T')
            continue;
        size_t end = i + 1;
        while (end < length &&
               (isdigit((unsigned char)name[end]) || isupper((unsigned char)name[end])))
            end++;
        l.applied += end + 1 < length && name[end] == '_' && name[end + 1] == 'I';
    }
    return l;
}

/* What a component stands for, when all that it refers to is written out. */
struct cost {
    uint64_t parts;
    uint64_t parameters; /* template parameters among them, which print an argument */
    uint32_t list;       /* the length of the list that begins here */
    enum { COST_UNKNOWN, COST_BEGUN, COST_KNOWN } state;
};

struct pricing {
    struct demangle_component *first; /* all components are in one array */
    size_t count;
    struct cost *costs;
    uint64_t arguments; /* the most that a template's arguments cost */
    uint32_t longest;   /* list of arguments: no pack is longer */
    uint32_t members;   /* of any pack, at most */
    VECTOR(struct demangle_component *) open;
};

static bool is_component(const struct pricing *p, const struct demangle_component *c) {
    return (uintptr_t)c >= (uintptr_t)p->first && (uintptr_t)c < (uintptr_t)(p->first + p->count);
}

/* As libiberty walks them: both parts, unless it is one of these. What is no component is no part. */
static void parts_of(const struct pricing *p, const struct demangle_component *c,
                     struct demangle_component *parts[2]) {
    parts[0] = parts[1] = NULL;
    switch (c->type) {
    case DEMANGLE_COMPONENT_NAME:
    case DEMANGLE_COMPONENT_TEMPLATE_PARAM:
    case DEMANGLE_COMPONENT_FUNCTION_PARAM:
    case DEMANGLE_COMPONENT_SUB_STD:
    case DEMANGLE_COMPONENT_BUILTIN_TYPE:
    case DEMANGLE_COMPONENT_OPERATOR:
    case DEMANGLE_COMPONENT_CHARACTER:
    case DEMANGLE_COMPONENT_NUMBER:
    case DEMANGLE_COMPONENT_UNNAMED_TYPE:
        return;
    case DEMANGLE_COMPONENT_FIXED_TYPE:
        parts[0] = c->u.s_fixed.length;
        break;
    case DEMANGLE_COMPONENT_CTOR:
        parts[0] = c->u.s_ctor.name;
        break;
    case DEMANGLE_COMPONENT_DTOR:
        parts[0] = c->u.s_dtor.name;
        break;
    case DEMANGLE_COMPONENT_EXTENDED_OPERATOR:
        parts[0] = c->u.s_extended_operator.name;
        break;
    case DEMANGLE_COMPONENT_LAMBDA:
    case DEMANGLE_COMPONENT_DEFAULT_ARG:
        parts[0] = c->u.s_unary_num.sub;
        break;
    default:
        parts[0] = c->u.s_binary.left;
        parts[1] = c->u.s_binary.right;
        break;
    }
    for (int i = 0; i < 2; i++)
        if (!is_component(p, parts[i]))
            parts[i] = NULL;
}

static struct cost *cost_of(const struct pricing *p, const struct demangle_component *c) {
    return &p->costs[c - p->first];
}

static bool is_list(const struct demangle_component *c) {
    return c->type == DEMANGLE_COMPONENT_ARGLIST || c->type == DEMANGLE_COMPONENT_TEMPLATE_ARGLIST;
}

static uint64_t times(uint64_t a, uint64_t b) {
    uint64_t product;
    return checked_multiply(a, b, &product) ? product : UINT64_MAX;
}

/* With its parts known. */
static void cost_add_up(struct pricing *p, const struct demangle_component *c,
                        struct demangle_component *const parts[2]) {
    struct cost cost = {.state = COST_KNOWN};
    cost.parameters = c->type == DEMANGLE_COMPONENT_TEMPLATE_PARAM;
    for (int i = 0; i < 2; i++)
        if (parts[i]) {
            cost.parts = saturating_add(cost.parts, cost_of(p, parts[i])->parts);
            cost.parameters = saturating_add(cost.parameters, cost_of(p, parts[i])->parameters);
        }
    if (c->type == DEMANGLE_COMPONENT_PACK_EXPANSION) {
        /* What is expanded is searched for the pack, and then printed for each of its members. */
        cost.parts = times(cost.parts, p->members + 1);
        cost.parameters = times(cost.parameters, p->members + 1);
    }
    cost.parts = saturating_add(cost.parts, 1);
    if (is_list(c))
        cost.list = 1 + (parts[1] ? cost_of(p, parts[1])->list : 0);
    p->longest = cost.list > p->longest ? cost.list : p->longest;
    if (c->type == DEMANGLE_COMPONENT_TEMPLATE && parts[1] &&
        cost_of(p, parts[1])->parts > p->arguments)
        p->arguments = cost_of(p, parts[1])->parts;
    *cost_of(p, c) = cost;
}

/* False: it refers to itself. */
static bool cost_walk(struct pricing *p, struct demangle_component *root) {
    struct demangle_component *parts[2];
    vector_push(&p->open, root);
    while (p->open.count) {
        struct demangle_component *c = p->open.items[p->open.count - 1];
        struct cost *cost = cost_of(p, c);
        parts_of(p, c, parts);
        if (cost->state == COST_UNKNOWN) {
            cost->state = COST_BEGUN;
            for (int i = 0; i < 2; i++) {
                if (parts[i] && cost_of(p, parts[i])->state == COST_BEGUN)
                    return false;
                if (parts[i] && cost_of(p, parts[i])->state == COST_UNKNOWN)
                    vector_push(&p->open, parts[i]);
            }
            continue;
        }
        p->open.count--;
        if (cost->state == COST_BEGUN)
            cost_add_up(p, c, parts);
    }
    return true;
}

static uint64_t pricing_total(const struct pricing *p, const struct demangle_component *root) {
    return saturating_add(cost_of(p, root)->parts,
                          times(cost_of(p, root)->parameters, p->arguments));
}

/* How long packs may be is known after the first walk. */
static bool components_are_cheap(struct demangle_component *root, void *memory, size_t length,
                                 bool packs) {
    struct pricing p = {.first = memory, .count = 2 * length};
    if (!is_component(&p, root))
        return false;
    p.costs = memory_zero(p.count, sizeof *p.costs);
    bool cheap = cost_walk(&p, root) && pricing_total(&p, root) <= COST_MOST;
    if (cheap && packs) {
        p.members = p.longest;
        memset(p.costs, 0, p.count * sizeof *p.costs);
        cheap = cost_walk(&p, root) && pricing_total(&p, root) <= COST_MOST;
    }
    vector_release(&p.open);
    free(p.costs);
    return cheap;
}

bool demangling_cpp_is_cheap(const char *name, size_t length, int flags) {
    if (length > 11 && memcmp(name, "_GLOBAL_", 8) == 0)
        name += 11, length -= 11;
    struct letters l = letters_count(name, length);
    /* A conversion operator's type is parsed twice where a template parameter has arguments, and so is each in these. */
    if (l.converts && l.applied > CONVERSIONS_MOST)
        return false;
    if (length <= PLAIN_LENGTH && l.references <= PLAIN_REFERENCES && l.packs <= 1)
        return true;
    void *memory = NULL;
    struct demangle_component *root = cplus_demangle_v3_components(name, flags, &memory);
    bool cheap = !root || components_are_cheap(root, memory, length, l.packs);
    free(memory);
    return cheap;
}

/* ---- D ---- */

/* The end of the type at `at`, if it is easy to tell; else `limit`, before which it ends. */
static size_t type_end(const char *name, size_t at, size_t limit) {
    while (at < limit && memchr("APxyO", name[at], 5))
        at++;
    if (at >= limit)
        return limit;
    if (name[at] == 'Q') {
        for (at++; at < limit && isupper((unsigned char)name[at]);)
            at++;
        return at < limit ? at + 1 : limit;
    }
    return memchr("vghstiklmfdeopjqrcbauwn", name[at], 23) ? at + 1 : limit;
}

/* How far back a reference goes: a number to the base of 26, whose last digit is a small letter. 0: it is none. */
static size_t distance_of(const char *name, size_t length, size_t at) {
    size_t distance = 0;
    for (; at < length && isupper((unsigned char)name[at]) && distance < length; at++)
        distance = distance * 26 + (size_t)(name[at] - 'A');
    return at < length && islower((unsigned char)name[at])
               ? distance * 26 + (size_t)(name[at] - 'a')
               : 0;
}

/* Every reference to a type costs what the text there does, with its references; one to a name costs its letters, which are no more than
   the text has. `sums` are of what stands before each place. */
bool demangling_d_is_cheap(const char *name, size_t length) {
    uint64_t *sums = memory_alloc((length + 1) * sizeof *sums);
    bool cheap = true;
    sums[0] = 0;
    for (size_t i = 0; i < length && cheap; i++) {
        size_t distance = name[i] == 'Q' ? distance_of(name, length, i + 1) : 0;
        uint64_t cost = 1;
        if (distance && distance <= i) {
            size_t from = i - distance;
            bool is_name = isdigit((unsigned char)name[from]);
            cost = is_name ? distance : sums[type_end(name, from, i)] - sums[from] + 1;
        }
        sums[i + 1] = sums[i] + cost;
        cheap = sums[i + 1] <= COST_MOST;
    }
    free(sums);
    return cheap;
}
