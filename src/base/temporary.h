/* Directories that are removed if wick ends early, by a signal or out of memory, as out_remove_temporaries() does for
   files. */
#ifndef WICK_BASE_TEMPORARY_H
#define WICK_BASE_TEMPORARY_H

struct temporary;

/* create_unique() for such a directory, which holds files and nothing deeper. `base` must stay open until *registered is forgotten. */
int temporary_directory(int base, const char *beginning, int mode, char **name,
                        struct temporary **registered);
/* Open a directory without following a link of that name; return -1 if it is not a directory. */
int directory_open(int base, const char *name);
/* Remove a directory with its files, async-signal-safely and without allocating. `directory` is the descriptor of
   `name`; it is closed. */
void directory_remove(int base, int directory, const char *name);
/* Forget a directory that is complete or was removed. */
void temporary_forget(struct temporary *temporary);

#endif
