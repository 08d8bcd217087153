/* Directories that are gone when wick ends before they are done, by a signal or without memory, as out_remove_temporaries() does it for files. */
#ifndef WICK_BASE_TEMPORARY_H
#define WICK_BASE_TEMPORARY_H

struct temporary;

/* create_unique() for such a directory, which holds files and nothing deeper. `base` must stay open until *registered is forgotten. */
int temporary_directory(int base, const char *beginning, int mode, char **name,
                        struct temporary **registered);
/* A directory itself, not what a link of that name leads to: -1 if it is none. */
int directory_open(int base, const char *name);
/* Remove it with its files, by calls that a signal handler may make, and without memory. `directory` is what `name` was when it was looked at; closes it. */
void directory_remove(int base, int directory, const char *name);
/* It is done, or removed already. */
void temporary_forget(struct temporary *temporary);

#endif
