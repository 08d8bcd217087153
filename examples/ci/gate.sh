#!/bin/sh
# Keeps slower builds out: records a benchmark several times, compares it with a kept baseline, and says so on the pull request.
#
# usage: gate.sh record DIR COMMAND…      record COMMAND $RUNS times (10 by default) into DIR
#        gate.sh turns DIR OLD NEW ARG…   the same of two programs in turns, into DIR/before and DIR/after
#        gate.sh compare BEFORE AFTER     write comment.md; status 6 if a rule of $RULES fails (one a line)
#        gate.sh comment NUMBER           put comment.md on that pull request (GitHub; needs gh)
#
# Prefer `turns` where the old program can be kept or built: a machine that is slower today than when the baseline was recorded looks like a slower program.
set -eu
runs=${RUNS:-10}
rules=${RULES:-total > +5%
* self > +10%}

# record_one FILE COMMAND…
record_one() {
    file=$1
    shift
    wick record -q -o "$file.data" -- "$@" >/dev/null
    wick save -q -o "$file.wick" "$file.data"
    rm -f "$file.data"
}

verb=$1
shift
case $verb in
record)
    directory=$1
    shift
    mkdir -p "$directory"
    for run in $(seq 1 "$runs"); do record_one "$directory/$run" "$@"; done
    ;;
turns)
    directory=$1 old=$2 new=$3
    shift 3
    mkdir -p "$directory/before" "$directory/after"
    for run in $(seq 1 "$runs"); do
        record_one "$directory/before/$run" "$old" "$@"
        record_one "$directory/after/$run" "$new" "$@"
    done
    ;;
compare)
    before=$1 after=$2
    set --
    while IFS= read -r rule; do
        [ -z "$rule" ] || set -- "$@" --fail-if "$rule"
    done <<END
$rules
END
    status=0
    wick diff -q --markdown "$@" -o comment.md "$before" "$after" || status=$?
    [ $status = 0 ] || [ $status = 6 ] || exit $status
    {
        printf '\n<details><summary>What changed most</summary>\n\n'
        wick diff -q --markdown --limit 15 "$before" "$after"
        printf '\n</details>\n'
    } >>comment.md
    cat comment.md
    exit $status
    ;;
comment)
    gh pr comment "$1" --body-file comment.md --edit-last || gh pr comment "$1" --body-file comment.md
    ;;
*)
    sed -n '4,7s/^# //p' "$0" >&2
    exit 2
    ;;
esac
