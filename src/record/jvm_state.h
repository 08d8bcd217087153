/* Private to jvm.c and jvm_samples.c: what is known of a virtual machine. */
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
    bool is_partial; /* the last walk did not come to its end */
    unsigned tries;
    uint64_t base;      /* of libjvm.so */
    uint64_t since;     /* what is new was made after that */
    uint64_t next_walk; /* when */
    uint64_t low, high; /* of its code */
    struct hotspot hotspot;
    struct remote remote;
    VECTOR(struct known_blob) blobs;
    struct index by_address; /* of blobs: numbers are places + 1 */
    addresses methods;       /* number - 1 is the place */
    struct index by_method;
    addresses frames; /* methods, perhaps, of interpreted frames that were sampled */
    addresses places; /* sampled addresses, each followed by what depth_of() says */
    addresses seen;   /* sampled addresses, so that each is asked for once */
    struct index by_seen;
    addresses asked; /* perhaps methods, since the last walk */
    struct index by_asked;
    struct buffer code, rows; /* of this turn */
    struct jvm_attach attach; /* if it is hopeless */
    const char *missing;      /* what made it so: a literal */
    bool is_told;             /* a note says so */
};

struct jvms {
    struct sink *sink;
    VECTOR(struct jvm *) list;
    struct hotspot_method method;
    struct hotspot_scopes scopes;
};

/* One that runs, or NULL. */
struct jvm *jvm_find(const struct jvms *jvms, pid_t pid);

/* Numbers are places + 1; 0: it is not there. */
uint64_t jvm_hash(uint64_t address);
uint32_t addresses_find(const addresses *list, const struct index *index, uint64_t address);
uint32_t addresses_add(addresses *list, struct index *index, uint64_t address);

#endif
