# What watchdogs of supervised programs have in common: the lease is a FIFO, to which attachments write.
# It ends where the program has ended or is to be ended, and without a sign of life for L seconds, R of
# them from when the program has begun.

trap '' 1 2 3 13 15
PATH=$PATH:/usr/bin:/bin
export LC_ALL=C
D=${TMPDIR:-/tmp}/sortie-run.$id
# The lease is opened before the watchdog says that it is there: what is written to a FIFO that no
# process has open is lost.
exec 2>/dev/null 3<>"$D/lease" 4>/dev/null 7>/dev/null
note_us() { stat_of $$ && set -- $s && echo "$$ ${20}" >"$D/watchdog"; }
note_us

# 0 is a sign of life, 7 a stream that has ended, where that is asked for, 8 that the program has begun, 9
# the end, 10 that all was heard. An attachment that was followed by another is not listened to.
heed='while IFS=" " read -r k x; do [ "$k" = - ] || [ -e "$0/at.$k" ] || continue; case $x in beat) exit 0 ;; kept) [ -z "$1" ] || exit 7 ;; armed) exit 8 ;; done) exit 10 ;; *) exit 9 ;; esac; done'
line() { timeout -s KILL "$L" /bin/sh -c "$heed" "$D" "$1" <&3 3<&-; }

# Tells whether all are there that the program needs.
all_there() {
  IFS=' ' read -r p b <"$D/supervisor" && lives "$p" "$b" || return 1
  for n in 1 2; do
    [ -e "$D/end$n" ] || { IFS=' ' read -r p b <"$D/spool$n" && lives "$p" "$b"; } || return 1
  done
}

lease() {
  while line; h=$?; do
    case $h in
      0) "$1"; all_there || break ;;
      8) L=$R ;;
      *) break ;;
    esac
  done
  case $h in 0 | 9 | 10) ;; *) : >"$D/lapsed" ;; esac
}

# Tells whether the exit is known, or the supervisor, which waits for the program, will not tell it soon.
exit_is_told() {
  [ -s "$D/exit" ] || [ "$quiet" -ge 2 ] || ! { IFS=' ' read -r p b <"$D/supervisor" && lives "$p" "$b"; }
}

# What the watchdog says last goes to the link that is attached, behind the streams.
said=
say() {
  case $1 in gone*) [ -n "$said" ] || { said=yes; conclude "${1#gone}"; } ;; esac
}

# Waits for the end of both streams, which a process out of reach may hold open, and then until all was
# heard, or no link has come in time to hear it.
conclude() {
  echo "$1" >"$D/left"
  limit=${L%.*}
  # No link has come for a long time, and one that comes now does not wait for anything.
  [ ! -e "$D/lapsed" ] || limit=5
  L=1 quiet=0 sizes= heard=0
  # What keeps a stream may be about to write its end, which the shell that sends it has to find.
  until [ -s "$D/end1" ] && [ -s "$D/end2" ] && exit_is_told; do
    line kept
    case $? in
      0) heard=0 ;;
      8) limit=$R ;;
      10) remove ;;
      7 | 9) ;;
      *) quiet=$((quiet + 1)) heard=$((heard + 1)) ;;
    esac
    [ "$heard" -le "$limit" ] || remove
    now=
    for n in 1 2; do read -r total <"$D/total$n" && now="$now $total"; done
    [ "$now" = "$sizes" ] || { sizes=$now; quiet=0; }
    for n in 1 2; do
      [ "$quiet" -lt 2 ] || [ -s "$D/end$n" ] || [ -s "$D/need$n" ] || cut_stream "$n"
    done
  done
  : >"$D/over"
  for n in 1 2; do
    [ ! -s "$D/want$n" ] || echo 1<>"$D/bell$n"
  done
  L=$limit
  while line; h=$?; do
    case $h in 8) L=$R ;; 0 | 9) ;; *) break ;; esac
  done
  remove
}

# kill_noted FILE kills the process that is noted there, with its child.
kill_noted() {
  p=
  { IFS=' ' read -r p b <"$1"; } && lives "$p" "$b" || return
  kill -s STOP "$p"
  child_of "$p"
  kill -s KILL "$p" $c
}

# Ends what keeps a stream that does not end, at the byte where it is.
cut_stream() {
  kill_noted "$D/spool$1"
  last=0
  for file in "$D/o$1".*; do
    start=${file##*.}
    [ "$start" = '*' ] || [ "$start" -lt "$last" ] || last=$start
  done
  # As place.sh publishes it.
  total=$((last + $(wc -c <"$D/o$1.$last" || echo 0) + 1000000000000000))
  echo "$total" >"$D/total$1"
  echo "$total" >"$D/end$1"
}

remove() {
  for name in "$D"/at.*/* "$D/spool1" "$D/spool2" "$D/feeder"; do kill_noted "$name"; done
  # An attachment that comes now finds no place to leave anything in.
  mv -- "$D" "$D.gone"
  rm -rf -- "$D.gone"
  exit 0
}
