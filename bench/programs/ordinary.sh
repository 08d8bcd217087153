#!/bin/sh
# usage: ordinary.sh PROGRAM SECONDS: a machine at work: a program with threads, and many short ones beside it.
"$1" "$2" &
while kill -0 $! 2>/dev/null; do
    ls -lR /usr/share/doc 2>/dev/null | head -2000 | sort | gzip | wc -c >/dev/null
    sed -n 's/a/b/p' /etc/passwd >/dev/null
done
wait
