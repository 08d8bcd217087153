/* Private to wick doctor. */
#ifndef WICK_CMD_DOCTOR_H
#define WICK_CMD_DOCTOR_H

#include "cmd/recording.h"

/* Print one line, and what would change it, unless that is NULL. */
void doctor_say(enum record_verdict verdict, const char *what, const char *finding,
                const char *remedy);
/* Print for each object in a profile where its names come from. */
bool doctor_look_at_profile(struct request *request, const char *path, struct error *error);

#endif
