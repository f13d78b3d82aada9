# Takes a root over from an older leader of the same workflow, though that may live: ends what holds the
# root for it, and all that it has noted as under way there.

until=
lost() { printf '\001%s lost\n' "$nonce"; exit 0; }

# Makes our token known, from which on nothing of an older leader begins here.
announce() {
  said=$(umask 077; mkdir -p -- "$fence" 2>&1) || because "$said"
  [ ! -L "$fence" ] && [ -O "$fence" ] || no "$fence is a link, or another user's; remove it"
  for known in "$fence"/token.*; do
    [ "$known" = "$fence/token.*" ] || [ "${known##*.}" -le "$token" ] || lost
  done
  printf '' >"$fence/token.$token" || no "$UNWRITABLE"
}

# Ends what holds the root for an older leader. Fails where another workflow has it, or it does not end.
oust() {
  by= whose= before= pid= born=
  { IFS= read -r by; IFS=' ' read -r whose before pid born; } <"$lock"
  [ "$by" != "$holder" ] && [ "$whose" = "${fence##*/}" ] || return 1
  [ "$before" -le "$token" ] || lost
  clock
  until=${until:-$((t + 1000))}
  [ "$t" -lt "$until" ] || return 1
  ! lives "$pid" "$born" || kill -s KILL "$pid"
  sleep 0.02 || sleep 1
}

# Makes a launch ours that an older leader has noted: its program goes on, and has no link any more by
# which that leader could hear or end it. One that has not begun is left to be ended.
spare() {
  kept=${TMPDIR:-/tmp}/sortie-run.$id
  [ -e "$kept/started" ] && mv -- "$1" "$fence/launch.$token.${1##*.}" || return
  for one in "$kept"/at.*/*; do
    p=
    { IFS=' ' read -r p b <"$one"; } || continue
    while lives "$p" "$b"; do
      child_of "$p"
      kill -s KILL "-$p" || kill -s KILL "$p" $c
      sleep 0.01 || sleep 1
    done
  done
}

# Ends what older leaders have noted, but for the programs that are gone on with, and removes their
# notes.
end_older() {
  for note in "$fence"/launch.*.*; do
    is_older "$note" || continue
    read_note "$note"
    case " $spared " in *" $id "*) spare "$note" ;; esac
  done
  clock
  until=$((t + 1000))
  while :; do
    # Each in a process of its own, which has no lock of ours.
    stays=$(
      exec 3<&- 8<&- 9>&-
      for note in "$fence"/*.*.*; do
        is_older "$note" && (end_noted "$note") &
      done
      wait
    )
    for note in "$fence"/*.*.*; do
      ! is_older "$note" || { find_living "$note"; stays="$stays$living"; }
    done
    case $stays in *[0-9]*) ;; *) break ;; esac
    clock
    [ "$t" -lt "$until" ] || no "these processes of the daemon that led the workflow before cannot be ended: $stays; look at them with ps"
    sleep 0.02 || sleep 1
  done
  for note in "$fence"/*.*; do
    ! is_older "$note" || rm -f -- "$note"
  done
  is_leader || lost
}

is_older() {
  older=${1##*/}
  older=${older#*.}
  [ "${older%%.*}" -lt "$token" ]
}

# Reads a note; what is not known is 0. The first line of a launch is whole before it looks for its
# leader, the second before its program begins.
read_note() {
  pid=0 born=0 marker=- cookie=- wrappers=0 id=- watchdog=0 watched=0 init=0 at=0 program=0 start=0
  case $1 in
    */ask.*) IFS=' ' read -r pid born <"$1" ;;
    *)
      {
        IFS=' ' read -r pid born marker cookie wrappers id
        IFS=' ' read -r watchdog watched init at program start marker
      } <"$1"
      ;;
  esac
}

# Leaves in living the pids of what is noted and lives.
find_living() {
  read_note "$1"
  living=
  for one in "$pid $born" "$program $start" "$init $at" "$watchdog $watched"; do
    case $one in [1-9]*) ;; *) continue ;; esac
    ! lives $one || living="$living ${one%% *}"
  done
}

# Ends what is noted, and says the pids that stay.
end_noted() {
  read_note "$1"
  case $1 in */ask.*) ! lives "$pid" "$born" || end_below "$pid"; return ;; esac
  # It begins nothing more while it is looked at what it has begun.
  ! lives "$pid" "$born" || kill -s STOP "$pid"
  read_note "$1"
  if [ "${init:-0}" != 0 ]; then
    end_namespaces 0 "$program" "$start" "$init" "$at" "$wrappers"
  else
    P=${program:-0} S=$start M=$marker C= G=0 A=apart
    [ "$P" != 0 ] || P=$pid S=$born
    [ "$cookie" = - ] || C=$cookie
    [ "$M" != - ] || M=
    end
  fi
  for one in "$pid $born" "$watchdog $watched"; do
    case $one in [1-9]*) ! lives $one || kill -s KILL "${one%% *}" ;; esac
  done
  [ "$id" = - ] || clean_up "${TMPDIR:-/tmp}/sortie-run" "$id" ''
  printf '%s ' "$m"
}

# end_below PID kills a process with all that it has started.
end_below() {
  kill -s STOP "$1"
  for below in $(children_of "$1"); do
    (end_below "$below")
  done
  kill -s KILL "$1"
}

children_of() {
  list=/proc/$1/task/$1/children
  [ ! -e "$list" ] || { cat "$list"; return; }
  for e in /proc/[0-9]*; do
    stat_of "${e#/proc/}" && set -- "$1" $s && [ "$3" = "$1" ] && echo "${e#/proc/}"
  done
}

# Removes the notes of what has ended; a shell that lives notes its questions in one file. Makes our token
# known again where its file was removed.
tidy() {
  for note in "$fence"/*."$token".*; do
    case $note in */ask.*) [ ! -e "/proc/${note##*.}" ] || continue ;; esac
    find_living "$note"
    [ -n "$living" ] || rm -f -- "$note"
  done
  is_leader || announce
}
