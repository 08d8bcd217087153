/* What a C library asks of the system: files, large memory, time, the environment. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
int main(int count, char **arguments) {
    char line[200];
    long size = 0;
    FILE *file = fopen("/data", "r");
    while (file && fgets(line, sizeof line, file))
        size += (long)strlen(line);
    fseek(file, 0, SEEK_SET);
    int first = fgetc(file);
    printf("%ld bytes, %d %c, then at %ld\n", size, first, first, ftell(file));
    fclose(file);
    struct stat by_name, by_number, none;
    int number = open("/data", O_RDONLY);
    stat("/data", &by_name);
    fstat(number, &by_number);
    printf("size %ld %ld\n", (long)by_name.st_size, (long)by_number.st_size);
    printf("absent %d\n", stat("/absent", &none));
    printf("read-only %d\n", open("/data", O_WRONLY));
    char *large = malloc(3 << 20);
    memset(large, 1, 3 << 20);
    large = realloc(large, 9 << 20);
    if (!large || large[(3 << 20) - 1] != 1 || time(NULL) <= 0)
        return 1;
    free(large);
    for (int i = 0; i < 100; i++)
        free(malloc((size_t)i * 4000 + 1));
    printf("%s ", getenv("PLACE") ? getenv("PLACE") : "nowhere");
    for (int i = 1; i < count; i++)
        printf("%s;", arguments[i]);
    puts("");
    return 3;
}
