/* Directories that are gone when wick ends before they are done, by a signal or without memory, as out_remove_temporaries() does it for files. */
#ifndef WICK_BASE_TEMPORARY_H
#define WICK_BASE_TEMPORARY_H

struct temporary;

/* create_unique() for such a directory, which holds files and nothing deeper. `base` must stay open until *registered is forgotten. */
int temporary_directory(int base, const char *beginning, int mode, char **name,
                        struct temporary **registered);
/* It is done, or removed already. */
void temporary_forget(struct temporary *temporary);

#endif
