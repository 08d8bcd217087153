/* Private to this room: whether a file's unwinding rules are safe for libdw, which runs them without bounds. */
#ifndef WICK_OBJECT_CFI_CHECK_H
#define WICK_OBJECT_CFI_CHECK_H

#include "object/elf.h"

/* Return false if they name registers that no machine has, remember too many states, or can't be parsed. */
bool cfi_eh_frame_is_sane(const struct elf_image *image);
bool cfi_debug_frame_is_sane(Elf *elf, bool is_64);

#endif
