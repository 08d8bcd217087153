/* Private to the room: whether libdw may run the rules of a file, which it does without bounds. */
#ifndef WICK_OBJECT_CFI_CHECK_H
#define WICK_OBJECT_CFI_CHECK_H

#include "object/elf.h"

/* False: they name registers that no machine has, remember too many states, or can't be followed. */
bool cfi_eh_frame_is_sane(const struct elf_image *image);
bool cfi_debug_frame_is_sane(Elf *elf, bool is_64);

#endif
