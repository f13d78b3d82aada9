# Ends a program and all that descends from it: SIGTERM, grace, SIGKILL, until none is left.
#
# Needs: P its pid, S its start time (field 22 of /proc/P/stat), M the limit that marks what
# descends from it or nothing, C its cookie or nothing, G the grace time in 1/100 s,
# A nothing where we are in P's group ourselves. Leaves in m the pids that stay.
#
# Without /proc all that can be found is the group that P leads.

clock() {
  if read -r t rest </proc/uptime; then
    t=${t%.*}${t#*.}
    while :; do case $t in 0?*) t=${t#0} ;; *) return ;; esac; done
  fi
  t=$(date +%s)00
}

holders() {
  if [ -n "$M" ]; then
    grep -ls "^Max file locks  *$M " /proc/[0-9]*/limits
  elif [ -n "$C" ]; then
    grep -lsazxF "SORTIE_RUN_ID=$C" /proc/[0-9]*/environ
  fi
  echo .
}

# Does so without another process, which takes longer.
holders_alone() {
  found=
  [ -n "$M" ] || return 0
  for f in /proc/[0-9]*/limits; do
    while IFS= read -r line; do
      case $line in
        "Max file locks "*" $M "*) found="$found $f" ;;
        "Max file locks "*) ;;
        *) continue ;;
      esac
      break
    done <"$f"
  done
}

# One who starts another and exits while the list is read can be missed together with the other,
# so nobody is gone before nobody was seen three times, nor among the newest of all.
look() {
  glance
  for again in 1 2; do
    [ -z "$m" ] && glance
  done
  [ -n "$m" ] || each_marked 6 4 note_it
}

carries_mark() {
  while IFS= read -r line; do
    case $line in
      "Max file locks "*" $M "*) return 0 ;;
      "Max file locks "*) return 1 ;;
    esac
  done <"/proc/$1/limits"
  return 1
}

each_marked() { [ -z "$M" ] || each_newest "$1" "$2" carries_mark "$3"; }
note_it() {
  case "$m $spared " in *" $p "*) ;; *) m="$m $p" ;; esac
  return 1
}

kill_it() {
  if [ -n "$A" ]; then kill_group ''; else kill_group "$P"; fi
  kill -s KILL -- "$p"
}

# Puts who is alive into m, those of them in P's group into grouped, the stopped into stopped.
glance() {
  m= grouped= stopped=
  if [ ! -r /proc/self/stat ]; then
    [ "$P" -gt 1 ] && kill -s 0 -- "${A:+-}$P" && m=${A:+-}$P
    return
  fi
  found=
  [ -n "$alone" ] || found=$(holders)
  # Without the dot it was not run to its end: the host has no room for another process.
  case $found in
    *.) found=${found%.} ;;
    *) holders_alone ;;
  esac
  for e in "/proc/$P/stat" $found; do
    p=${e#/proc/} p=${p%/*}
    case "$m $spared " in *" $p "*) continue ;; esac
    stat_of "$p" || continue
    set -- $s
    # The pid alone does not make it our program; the mark does.
    case $e in */stat) [ "${20}" = "$S" ] || continue ;; esac
    case $1 in
      # A zombie with further threads is a program whose main thread has left the others.
      [ZXx]) [ "${18}" -gt 1 ] || continue ;;
      [Tt]) stopped="$stopped $p" ;;
    esac
    [ "$P" -gt 1 ] && [ "$3" = "$P" ] && grouped="$grouped $p"
    m="$m $p"
  done
}

rooted() { case "$m " in *" $P "*) ;; *) return 1 ;; esac; }

# What may not be signalled runs as another user and is out of our reach.
send() {
  for p in $2; do kill -s "$1" -- "$p" || spared="$spared $p"; done
}

# Nobody gets SIGTERM twice; a stopped process takes it only when it is continued.
politely() {
  [ -n "$A" ] && rooted && kill -s TERM -- "-$P" && termed="$termed$grouped"
  for p in $m; do
    case "$termed " in *" $p "*) ;; *) termed="$termed $p"; send TERM "$p" ;; esac
  done
  send CONT "$stopped"
}

# Kills without waiting and without starting anything.
at_once() {
  alone=yes spared=
  for again in 1 2 3; do
    glance
    [ -z "$m" ] && return
    [ -n "$A" ] && [ -n "$grouped" ] && kill -s KILL -- "-$P"
    send KILL "$m"
  done
}

end() {
  spared= termed= alone= pause=0.01
  clock; until=$((t + G))
  look
  rooted && root=alive || root=
  politely
  while [ -n "$m" ]; do
    clock; [ "$t" -lt "$until" ] || break
    sleep $pause || sleep 1
    pause=0.05
    look
    # What the program's own handler starts is left alone while the program lives.
    if [ -n "$root" ] && ! rooted; then root=; politely; fi
  done
  clock; until=$((t + 500))
  while [ -n "$m" ]; do
    # The group in one stroke, which what forks as fast as it can does not escape.
    [ -n "$A" ] && [ -n "$grouped" ] && kill -s KILL -- "-$P"
    send KILL "$m"
    each_marked 20 8 kill_it
    clock; [ "$t" -lt "$until" ] || break
    sleep 0.02 || sleep 1
    look
  done
}
