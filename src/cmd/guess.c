/* Guess the intended word for a mistyped one. */
#include "cmd/cmd.h"

#include <stdio.h>

enum { LETTERS = 40 }; /* longer words are ignored */

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Return the number of letters to insert, delete or change, or of neighbours to swap, that turns one word into the
   other. */
static size_t distance(struct text a, struct text b) {
    size_t steps[LETTERS + 1][LETTERS + 1];
    for (size_t i = 0; i <= a.length; i++)
        for (size_t k = 0; k <= b.length; k++) {
            if (!i || !k) {
                steps[i][k] = i + k;
                continue;
            }
            bool same = a.data[i - 1] == b.data[k - 1];
            steps[i][k] =
                least(least(steps[i - 1][k], steps[i][k - 1]) + 1, steps[i - 1][k - 1] + !same);
            if (i > 1 && k > 1 && a.data[i - 1] == b.data[k - 2] && a.data[i - 2] == b.data[k - 1])
                steps[i][k] = least(steps[i][k], steps[i - 2][k - 2] + 1);
        }
    return steps[a.length][b.length];
}

/* Allow one wrong letter in short words and two in others. The first of equally near words wins. */
void guess_offer(struct guess *guess, const char *name) {
    struct text typed = guess->typed, offered = text_of(name);
    if (typed.length > LETTERS || offered.length > LETTERS || (guess->best && !guess->distance))
        return;
    size_t most = guess->best ? guess->distance - 1 : typed.length < 4 ? 1 : 2;
    size_t found = distance(typed, offered);
    if (found > most)
        return;
    guess->best = name;
    guess->distance = found;
}

/* Among names that contain the word, the shortest is the nearest; any of them is nearer than a name that does not. */
static void offer_longer(struct guess *guess, const char *name) {
    struct text best = guess->best ? text_of(guess->best) : TEXT(""), offered = text_of(name);
    bool first = !guess->best || !strcasestr(guess->best, guess->typed.data);
    if (first || offered.length < best.length ||
        (offered.length == best.length && text_compare(offered, best) < 0))
        guess->best = name;
    guess->distance = 0;
}

void guess_offer_function(struct guess *guess, const char *name) {
    if (strcasestr(name, guess->typed.data)) {
        offer_longer(guess, name);
        return;
    }
    if (guess->best && !guess->distance)
        return;
    const char *own = name;
    for (const char *at = name; (at = strstr(at, "::")); at += 2)
        own = at + 2;
    char bare[LETTERS + 2];
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(own, "<("), own);
    guess_offer(guess, bare);
    if (guess->best == bare)
        guess->best = name;
}

void guess_add(const struct guess *guess, struct buffer *text) {
    struct buffer shown = {0};
    if (!guess->best)
        return;
    buffer_add_shown(&shown, text_of(guess->best));
    buffer_printf(text, "; did you mean %.*s?", TEXT_ARGS(buffer_text(&shown)));
    buffer_release(&shown);
}
