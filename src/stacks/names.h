/* Private to this room: naming, and its two sets of rules. */
#ifndef WICK_STACKS_NAMES_H
#define WICK_STACKS_NAMES_H

#include "import/import.h"
#include "stacks/stacks.h"

/* A frame, as input for either set of rules. */
struct named_frame {
    struct text symbol;  /* "[unknown]" if there is none */
    struct text object;  /* as shown; "[unknown]" if there is none */
    struct text address; /* hexadecimal, as sampled; empty if it was not kept */
    uint32_t kinds;      /* enum frame_kind */
    struct text file;    /* for source lines, or empty */
    uint32_t line;
};

struct namer {
    const struct naming_options *options;
    struct naming *naming;
    struct buffer name, repaired;
    bool cut; /* out: --skip-after names this frame */
};

/* Append the frame's labels, outermost first; none if it is left out. */
void names_wick(struct namer *namer, const struct named_frame *frame);
void names_inferno(struct namer *namer, const struct named_frame *frame, bool java);

/* Append namer->name as a label. */
void namer_push(struct namer *namer, struct text object, uint32_t kinds);
/* Strip from namer->name what strip_templates and strip_arguments say; keep its mark. */
void namer_strip(struct namer *namer);
/* Append the mark for these kinds to namer->name, if it was requested. */
void namer_mark(struct namer *namer, uint32_t kinds);
/* Append the source line of a frame, if it was requested and is known. */
void namer_add_source(struct namer *namer, struct text file, uint32_t line);
/* Whether --skip-after names this symbol: drop its callers. */
bool namer_skips_after(const struct namer *namer, struct text symbol);

/* Return an entry of the labels from `first` on. */
struct naming_entry naming_entry_from(const struct naming *naming, size_t first);

/* A frame whose labels are known. */
struct known_frame {
    uint32_t symbol, object, file, line, kinds;
    uint32_t module; /* if the source names the frame itself */
    uint64_t address, offset;
    struct naming_entry entry;
};

struct names {
    const struct tree *tree;
    struct namer namer;
    bool java;
    /* --addrs shows addresses as sampled, which perf prints for samples without call chains. */
    bool sampled_addresses;
    VECTOR(struct known_frame) known; /* [0] unused */
    struct index index;
    uint32_t last_object, last_kinds; /* neighbours are often of one object */
    struct buffer text, address, lossy, comm;
    uint16_t *numbered; /* numbered_threads(), if they are grouped */
};

/* Append the root frames of a series. */
struct naming_entry names_series_entry(struct names *n, const struct series *series);

/* Append a name that is safe in a folded line: `;` would split it, a line end would end it, and a tab might be taken for the one before the
   count. */
void buffer_add_frame_name(struct buffer *buffer, struct text t);

#endif
