# Keeps the streams of a program, starts its watchdog, waits for the program and keeps its exit. It is
# the parent of the program, and leads a session that no link belongs to.

# spool STREAM keeps what the program writes, at most $most bytes that were not acknowledged.
spool() {
  n=$1 total=0 start=0 acked=0 kept=
  exec 4<>"$place/room$n" 8<"$place/o$n"
  while said=$(dd bs=65536 count=1 2>&1 >>"$place/o$n.$start" <&8) && copied "$said" && [ "$got" != 0 ]; do
    total=$((total + got))
    publish "total$n" "$total"
    [ $((total - start)) -lt 65536 ] || { kept="$kept $start"; start=$total; }
    wake "want$n" "bell$n"
    heed_acks
    while [ $((total - acked)) -ge "$most" ]; do
      echo yes >"$place/need$n"
      heed_acks
      [ $((total - acked)) -lt "$most" ] || read -r x <&4
      heed_acks
      : >"$place/need$n"
    done
  done
  # dd has read what it could not write.
  [ "$got" = 0 ] || { : >"$place/unkept"; tell lease '- failed'; }
  publish "end$n" "$total"
  tell lease '- kept'
}

# Removes what was acknowledged, some files at a time: each ends where the next one begins. Nothing is
# removed of the first $whole bytes before there are more: another daemon may read them anew.
heed_acks() {
  ! published "acked$n" || [ "$value" -le "$acked" ] || acked=$value
  [ -z "$whole" ] || [ "$total" -gt "$whole" ] || return 0
  set -- $kept "$start"
  [ $# -gt 16 ] || [ $((total - acked)) -ge "$most" ] || return 0
  gone=
  while [ $# -gt 1 ] && [ "$2" -le "$acked" ]; do
    gone="$gone o$n.$1"
    shift
  done
  kept=
  while [ $# -gt 1 ]; do kept="$kept $1"; shift; done
  [ -z "$gone" ] || (cd -- "$place" && exec rm -f -- $gone)
}

# Gives the program its stdin, piece by piece, in the order in which they were accepted.
feed() {
  exec 4<>"$place/kick" 5<"$place/taken" 8>"$place/in"
  while read -r x <&4; do
    while IFS=' ' read -r from to file <&5; do
      [ "$to" != eof ] || exit
      if ! cat "$place/$file" >&8; then
        : >"$place/broken"
        wake want1 bell1
        exit
      fi
      rm -f -- "$place/$file"
      publish fed "$to"
      wake want1 bell1
    done
  done
}

# Some name a limit on file locks, which no system has, w and others x.
mark() { { ulimit -S -w "$1" || ulimit -S -x "$1"; } 2>/dev/null; }

clean_up "${place%.*}" '' "$id"
# Until all is written that other processes look for, the directory has a name with the pid of its maker.
made=$place
place=$made.$$.new
refuse() { say "$@"; rm -rf -- "$place"; exit 0; }
# With the place of the first attachment; no other user gets into it.
mkdir -m 700 -- "$place" "$place/at.1" || refuse unkept
note_process supervisor $$ || refuse unkept
echo "$id $cookie" >"$place/run" || refuse unkept
printf '' >"$place/taken" || refuse unkept
# As long as no more than this is acknowledged, there cannot be more than $whole bytes.
[ -z "$whole" ] || echo $((whole - most - 65536)) >"$place/whole" || refuse unkept
(cd -- "$place" && mkfifo lease kick begin in o1 o2 bell1 bell2 room1 room2) || refuse unkept
mv -- "$place" "$made" || refuse unkept
place=$made

# The program waits for a word, and ends where we have ended before.
exec 8<>"$place/begin"
(exec 3<&- 6>&- 7>&- 9>&-; become) &
P=$!
IFS= read -r stat <"/proc/$P/stat"
stat_of "$P" && set -- $s && born=${20} || refuse unwatched
