/*
 * Private to the room: the mapped files that are guarded against shrinking.
 */
#ifndef WICK_BASE_GUARD_H
#define WICK_BASE_GUARD_H

#include "base/base.h"

/* Guard data[0 … size): until guard_leave(), a fault in it reads as zeroes and marks the guard. Never returns NULL.
   */
struct file_guard *guard_enter(const void *data, size_t size);
void guard_leave(struct file_guard *guard); /* `guard` may be NULL */

#endif
