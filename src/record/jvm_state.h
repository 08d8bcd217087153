/* Private to jvm.c and jvm_samples.c: the state of a virtual machine. */
#ifndef WICK_RECORD_JVM_STATE_H
#define WICK_RECORD_JVM_STATE_H

#include "record/hotspot.h"
#include "record/jvm.h"
#include "record/jvm_attach.h"

struct known_blob {
    uint64_t address;
    uint64_t identity; /* a hash */
};

typedef VECTOR(uint64_t) addresses;

struct jvm {
    pid_t pid;
    bool has_ended;
    bool is_hopeless;
    bool is_learned;
    bool is_partial; /* the last walk was not completed */
    unsigned tries;
    uint64_t base;      /* of libjvm.so */
    uint64_t since;     /* new code was made after this time */
    uint64_t next_walk; /* when */
    uint64_t low, high; /* of its code */
    struct hotspot hotspot;
    struct remote remote;
    VECTOR(struct known_blob) blobs;
    struct index by_address; /* of blobs: numbers are places + 1 */
    addresses methods;       /* number - 1 is the place */
    struct index by_method;
    addresses frames; /* possible methods of sampled interpreted frames */
    addresses places; /* sampled addresses, each followed by the result of depth_of() */
    addresses seen;   /* sampled addresses, so that each is looked up once */
    struct index by_seen;
    addresses asked; /* possible methods looked up since the last walk */
    struct index by_asked;
    struct buffer code, rows; /* of this turn */
    struct jvm_attach attach; /* if it is hopeless */
    const char *missing;      /* the reason: a literal */
    bool is_told;             /* a note says so */
};

struct jvms {
    struct sink *sink;
    VECTOR(struct jvm *) list;
    struct hotspot_method method;
    struct hotspot_scopes scopes;
};

/* Return the running JVM with this pid, or NULL. */
struct jvm *jvm_find(const struct jvms *jvms, pid_t pid);

/* Numbers are places + 1; 0: not found. */
uint64_t jvm_hash(uint64_t address);
uint32_t addresses_find(const addresses *list, const struct index *index, uint64_t address);
uint32_t addresses_add(addresses *list, struct index *index, uint64_t address);

#endif
