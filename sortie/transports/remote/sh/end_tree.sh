# Ends a program and all that descends from it: SIGTERM, grace, SIGKILL, until none is left.
#
# Needs: P its pid, S its start time (field 22 of /proc/P/stat), M the limit that marks what
# descends from it or nothing, C its cookie or nothing, G the grace time in 1/100 s,
# A nothing where we are in P's group ourselves. Leaves in m the pids that stay.
#
# Without /proc all that can be found is the group that P leads.

holders() {
  if [ -n "$M" ]; then
    exec grep -ls "^Max file locks  *$M " /proc/[0-9]*/limits
  elif [ -n "$C" ]; then
    exec grep -lsazxF "SORTIE_RUN_ID=$C" /proc/[0-9]*/environ
  fi
}

marked() {
  line=
  while IFS= read -r line; do
    case $line in "Max file locks "*) break ;; esac
  done <"/proc/$1/limits"
  case $line in *" $M "*) ;; *) return 1 ;; esac
}

# Does so without another process, which takes longer.
no_grep() {
  found=
  [ -n "$M" ] || return 0
  for e in /proc/[0-9]*; do
    marked "${e#/proc/}" && found="$found $e/limits"
  done
}

# A process that starts another and exits while the list is read can be missed together with the other.
# So the tree counts as gone once all processes were looked at that began after the list was begun, or,
# where these are not known, once three lists were empty. The kernel's count of pids can be relied on
# where it moves with the process that we start for the list.
look() {
  for n in 1 2 3; do
    since=
    read_newest && since=$newest
    glance
    { [ -z "$m" ] && ! all_seen && [ -z "$m" ]; } || return
  done
}

# Looks at the processes that began after the list was begun; fails where one may have been missed.
all_seen() {
  [ -n "$M" ] && [ -n "$since" ] && read_newest && [ "$newest" != "$since" ] || return 1
  each_since "$since" marked note_it
}

note_it() {
  case "$spared " in *" $p "*) return 0 ;; esac
  m="$m $p"
  return 1
}

kill_it() {
  kill_group "$own"
  kill -s KILL -- "$p" || :
}

# Puts the pids that are alive into m, those of them in P's group into grouped, the stopped into stopped.
glance() {
  m= grouped= stopped=
  if [ ! -r /proc/self/stat ]; then
    [ "$P" -gt 1 ] && kill -s 0 -- "${A:+-}$P" && m=${A:+-}$P
    return
  fi
  # Any other status is none of grep's: the host has no room for another process, say.
  [ -z "$alone" ] && found=$(holders)
  case $alone$? in 0 | 1 | 2) ;; *) no_grep ;; esac
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

# No process gets SIGTERM twice; a stopped one takes it only when it is continued.
politely() {
  [ -n "$A" ] && rooted && kill -s TERM -- "-$P" && termed="$termed$grouped"
  for p in $m; do
    case "$termed " in *" $p "*) ;; *) termed="$termed $p"; send TERM "$p" ;; esac
  done
  send CONT "$stopped"
}

# Kills: the group in one stroke, which what forks as fast as it can does not escape.
hard() {
  [ -n "$A" ] && [ -n "$grouped" ] && kill -s KILL -- "-$P"
  send KILL "$m"
}

# Kills without waiting and without starting anything.
at_once() {
  alone=yes spared=
  for n in 1 2 3; do
    glance
    [ -z "$m" ] && return
    hard
  done
}

end() {
  spared= termed= alone= own= pause=0.01
  [ -n "$A" ] || own=$P
  clock; until=$((t+G))
  look
  rooted && root=alive || root=
  politely
  while [ -n "$m" ]; do
    clock; [ "$t" -lt "$until" ] || break
    sleep $pause || sleep 1
    pause=0.05
    look
    # What the program's own handler starts is left alone while the program lives.
    [ -z "$root" ] || rooted || { root=; politely; }
  done
  clock; until=$((t + 500))
  while [ -n "$m" ]; do
    hard
    [ -z "$M" ] || [ -z "$since" ] || each_since "$since" marked kill_it
    clock; [ "$t" -lt "$until" ] || break
    sleep 0.02 || sleep 1
    look
  done
}
