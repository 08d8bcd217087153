/* Strings, formats and numbers through the C library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
    char line[200], all[4000] = "";
    for (int i = 0; i < 40; i++) {
        snprintf(line, sizeof line, "%d:%s:%#x:%-8s|%+.3e;", i, argv[argc > 1], i * 77u, i & 1 ? "odd" : "even", i / 7.0);
        strcat(all, line);
    }
    int sum = 0;
    for (char *save, *part = strtok_r(all, ";", &save); part; part = strtok_r(NULL, ";", &save)) {
        char *colon = strchr(part, ':');
        sum += atoi(part) + (int)strtod(strchr(part, '|') + 1, NULL) + (colon != NULL) + (int)strlen(part);
    }
    printf("%d %s\n", sum, strstr(all, "0") ? "yes" : "no");
    return 0;
}
