/*
 * A credentials file: a token, "USER:PASSWORD" in one line or in two, or whole header lines. It is read for each request, so that a new one
 * takes effect at once, and is overwritten in memory afterwards.
 */
#include "net/helper/helper.h"

#include <ctype.h>
#include <curl/curl.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CREDENTIALS_MOST = 8192 };

static bool add(struct curl_slist **headers, const char *line) {
    struct curl_slist *longer = curl_slist_append(*headers, line);
    if (longer)
        *headers = longer;
    return longer != NULL;
}

static void encode64(const char *text, char *encoded) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *in = (const uint8_t *)text;
    size_t left = strlen(text);
    for (; left > 0; in += 3, left -= left < 3 ? left : 3) {
        uint32_t bits =
            (uint32_t)in[0] << 16 | (left > 1 ? (uint32_t)in[1] << 8 : 0) | (left > 2 ? in[2] : 0);
        *encoded++ = digits[bits >> 18];
        *encoded++ = digits[bits >> 12 & 63];
        *encoded++ = left > 1 ? digits[bits >> 6 & 63] : '=';
        *encoded++ = left > 2 ? digits[bits & 63] : '=';
    }
    *encoded = 0;
}

/* "Name: value": letters, digits and dashes, a colon and a space. */
static bool is_header(const char *line) {
    size_t name = 0;
    while (isalnum((unsigned char)line[name]) || line[name] == '-')
        name++;
    return name && line[name] == ':' && line[name + 1] == ' ';
}

static bool add_line(struct curl_slist **headers, const char *line) {
    char header[CREDENTIALS_MOST * 2], encoded[CREDENTIALS_MOST * 2 - 64];
    bool good;
    if (is_header(line))
        return add(headers, line);
    if (strchr(line, ':')) {
        encode64(line, encoded);
        snprintf(header, sizeof header, "Authorization: Basic %s", encoded);
        explicit_bzero(encoded, sizeof encoded);
    } else {
        snprintf(header, sizeof header, "Authorization: Bearer %s", line);
    }
    good = add(headers, header);
    explicit_bzero(header, sizeof header);
    return good;
}

/* Join a user and a password on two lines, as in stores' own files, into one line. */
static void join_two(char *text) {
    char *first = strchr(text, '\n');
    size_t rest = first ? strcspn(first + 1, "\r\n") : 0;
    if (rest && first > text && !memchr(text, ':', (size_t)(first - text)) &&
        strspn(first + 1 + rest, "\r\n") == strlen(first + 1 + rest))
        *first = ':';
}

static ssize_t read_file(const char *path, char *text, size_t size, const char **why) {
    struct stat status;
    ssize_t length = -1;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *why = "it can't be read";
    if (file >= 0 && fstat(file, &status) == 0) {
        if (!S_ISREG(status.st_mode))
            *why = "it is no file";
        else if (status.st_mode & 07)
            *why = "others may read it (chmod 600)";
        else if (status.st_size >= (off_t)size)
            *why = "it is too large";
        else
            length = read(file, text, size - 1);
    }
    if (file >= 0)
        close(file);
    if (length >= 0)
        text[length] = 0;
    return length;
}

bool add_credentials(const char *path, struct curl_slist **headers, const char **why) {
    char text[CREDENTIALS_MOST], *rest = text, *line;
    ssize_t length = read_file(path, text, sizeof text, why);
    bool good = length >= 0, any = false;
    if (good && strlen(text) != (size_t)length) {
        *why = "it holds a NUL";
        good = false;
    }
    join_two(text);
    while (good && (line = strsep(&rest, "\r\n"))) {
        if (!*line)
            continue;
        good = add_line(headers, line);
        any = true;
    }
    if (good && !any)
        *why = "it is empty";
    explicit_bzero(text, sizeof text);
    return good && any;
}
