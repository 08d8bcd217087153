/* Private to the room: the two sets of naming rules. */
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

/* `;` would divide a folded line, a line end would end it, and a tab might be taken for the one before the count. */
void buffer_add_frame_name(struct buffer *buffer, struct text t);

#endif
