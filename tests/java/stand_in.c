/*
 * usage: stand_in HOW. A process with a libjvm.so that is none, so that wick asks it for a perf map as it asks Java virtual machines that it can't read, if it may.
 * HOW: "deaf" has no handler for SIGQUIT, and blocks it, so that one that was sent would be seen; "dies" ends when it is asked; "hangs" takes the command and ends without an
 * answer. It runs for ten seconds otherwise.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void die(int number) {
    (void)number;
    _exit(5);
}

static int listener = -1;

static void listen_now(int number) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)number;
    snprintf(address.sun_path, sizeof address.sun_path, "/tmp/.java_pid%d", (int)getpid());
    int made = socket(AF_UNIX, SOCK_STREAM, 0);
    bind(made, (struct sockaddr *)&address, sizeof address);
    listen(made, 1);
    listener = made;
}

int jvm_main(int count, char **words) {
    char bytes[64];
    sigset_t quit;
    sigemptyset(&quit);
    sigaddset(&quit, SIGQUIT);
    if (count > 1 && strcmp(words[1], "deaf") == 0)
        sigprocmask(SIG_BLOCK, &quit, NULL);
    else
        signal(SIGQUIT, count > 1 && strcmp(words[1], "dies") == 0 ? die : listen_now);
    puts("begin");
    fflush(stdout);
    for (int i = 0; i < 1000 && listener < 0; i++)
        usleep(10000);
    if (listener >= 0) {
        int peer = accept(listener, NULL, NULL);
        read(peer, bytes, sizeof bytes);
        snprintf(bytes, sizeof bytes, "/tmp/.java_pid%d", (int)getpid());
        unlink(bytes);
        _exit(6);
    }
    return 0;
}
