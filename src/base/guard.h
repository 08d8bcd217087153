/*
 * Private to the room: which mapped files are guarded against shrinking.
 */
#ifndef WICK_BASE_GUARD_H
#define WICK_BASE_GUARD_H

#include "base/base.h"

/* Until left, a fault in data[0 … size) reads as zeroes and marks the guard. Never NULL. */
struct file_guard *guard_enter(const void *data, size_t size);
void guard_leave(struct file_guard *guard); /* NULL is fine */

#endif
