/* Private to the room: naming, and its two sets of rules. */
#ifndef WICK_STACKS_NAMES_H
#define WICK_STACKS_NAMES_H

#include "import/import.h"
#include "stacks/stacks.h"

/* A frame, as either set of rules wants it. */
struct named_frame {
    struct text symbol;  /* "[unknown]" when there is none */
    struct text object;  /* as shown; "[unknown]" when there is none */
    struct text address; /* hexadecimal, as sampled; empty when it was not kept */
    uint32_t kinds;      /* enum frame_kind */
    struct text file;    /* for source lines, or empty */
    uint32_t line;
};

struct namer {
    const struct naming_options *options;
    struct naming *naming;
    struct buffer name, repaired;
    bool cut; /* out: the frame is one to skip after */
};

/* Append the frame's labels, outermost first; none if it is left out. */
void names_wick(struct namer *namer, const struct named_frame *frame);
void names_inferno(struct namer *namer, const struct named_frame *frame, bool java);

/* Appends what is in namer->name as a label. */
void namer_push(struct namer *namer, struct text object, uint32_t kinds);
/* Takes off namer->name what strip_templates and strip_arguments ask for; its mark stays. */
void namer_strip(struct namer *namer);
/* Appends to namer->name the mark that was asked for of such frames. */
void namer_mark(struct namer *namer, uint32_t kinds);
/* Appends where a frame is, if that was asked for and is known. */
void namer_add_source(struct namer *namer, struct text file, uint32_t line);
/* Whether everything above a frame so called is to be dropped. */
bool namer_skips_after(const struct namer *namer, struct text symbol);

/* Those of the labels from `first` on. */
struct naming_entry naming_entry_from(const struct naming *naming, size_t first);

/* A frame whose labels are known. */
struct known_frame {
    uint32_t symbol, object, file, line, kinds;
    uint32_t module; /* of one that the source names itself */
    uint64_t address, offset;
    struct naming_entry entry;
};

struct names {
    const struct tree *tree;
    struct namer namer;
    bool java;
    /* --addrs shows them as sampled, which is what perf prints of samples without call chains. */
    bool sampled_addresses;
    VECTOR(struct known_frame) known; /* [0] unused */
    struct index index;
    uint32_t last_object, last_kinds; /* neighbours are often of one object */
    struct buffer text, address, lossy, comm;
    uint16_t *numbered; /* numbered_threads(), if they are grouped */
};

/* Appends the root frames of a series. */
struct naming_entry names_series_entry(struct names *n, const struct series *series);

/* `;` would divide a folded line, a line end would end it, and a tab might be taken for the one before the count. */
void buffer_add_frame_name(struct buffer *buffer, struct text t);

#endif
