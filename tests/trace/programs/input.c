/* Reads standard input, counts its words, sorts them. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct word { char text[32]; int count; };
static struct word words[500];
static int used;
static void add(const char *text) {
    for (int i = 0; i < used; i++)
        if (strcmp(words[i].text, text) == 0) {
            words[i].count++;
            return;
        }
    snprintf(words[used].text, sizeof words[used].text, "%s", text);
    words[used++].count = 1;
}
static int order(const void *a, const void *b) {
    const struct word *x = a, *y = b;
    return x->count != y->count ? y->count - x->count : strcmp(x->text, y->text);
}
int main(void) {
    char line[300];
    while (fgets(line, sizeof line, stdin))
        for (char *save, *w = strtok_r(line, " \n", &save); w && used < 500; w = strtok_r(NULL, " \n", &save)) {
            for (char *c = w; *c; c++)
                *c = (char)tolower((unsigned char)*c);
            add(w);
        }
    qsort(words, (size_t)used, sizeof *words, order);
    printf("%d %s %d\n", used, words[0].text, words[0].count);
    return 0;
}
