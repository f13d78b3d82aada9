# Connects a link with a supervisor: K is the number of the attachment, at1 and at2 are how many bytes
# of stdout and stderr have come to the daemon. A later attachment ends all earlier ones first, and what
# is told to the watchdog counts as long as its at.K is there.

attach() {
  trap '' 13
  LC_ALL=C
  export LC_ALL
  [ "$K" = 1 ] || mkdir -- "$place/at.$K" || refuse stale
  note_process "at.$K/link" $$
  # A newer leader sees the note, or we see its token.
  is_leader || refuse "$refused"
  for other in "$place"/at.*; do [ "${other##*.}" -le "$K" ] || refuse stale; done
  for other in "$place"/at.*; do
    [ "${other##*.}" != "$K" ] || continue
    for one in "$other"/*; do end_noted "$one"; done
    rm -rf -- "$other"
  done
  IFS=' ' read -r watchdog watchdog_born <"$place/watchdog"
  watched || refuse unwatched
  # What is acknowledged does not grow any more.
  [ -z "$adopting" ] || { adoptable || refuse unadoptable; say_program; }
  taken=0 ended=
  while IFS=' ' read -r from to file; do
    [ "$to" = eof ] && ended=eof || taken=$to
  done <"$place/taken"
  say attached "$taken" "${ended:--}"
  say attached >&6
  # What is sent before the daemon has understood this could be taken for what a login prints.
  IFS=' ' read -r word x <&3 && [ "$word" = armed ] || exit 1
  tell lease "$K armed"
  (exec 3<&- 6>&-; send 1 "$at1") &
  note_process "at.$K/send1" $!
  (exec 3<&- 7>&6 6>&-; send 2 "$at2") &
  note_process "at.$K/send2" $!
  # The feeder may not have been told of stdin that came while no link was attached.
  tell kick ''
  while IFS=' ' read -r word x y <&3; do
    case $word in
      '')
        tell lease "$K beat"
        watched || say unwatched
        # The shells that send on this link are gone: another link brings the rest.
        sending || break
        ;;
      end) tell lease "$K end" ;;
      done)
        # The watchdog kills each process that is noted, and this shell may have more to do.
        : >"$place/at.$K/link"
        tell lease "$K done"
        ;;
      ack)
        acknowledge 1 "$x"
        acknowledge 2 "$y"
        ;;
      in) take "$x" "$y" || break ;;
      eof)
        [ -n "$ended" ] || echo "$x eof -" >>"$place/taken"
        ended=eof
        tell kick ''
        ;;
    esac
    [ "$word" != done ] || break
  done
  for one in "$place/at.$K"/send*; do end_noted "$one"; done
  [ "$word" = done ]
  exit
}

# Ends the process that a file notes, with its group where it leads one, else with its child.
end_noted() {
  pid=
  { IFS=' ' read -r pid born <"$1"; } || return 0
  while lives "$pid" "$born"; do
    child_of "$pid"
    kill -s KILL -- "-$pid" || kill -s KILL "$pid" $c
    sleep 0.01
  done
}

# acknowledge STREAM POSITION: a daemon that reads anew has less than the one before had.
acknowledge() {
  published "acked$1" && [ "$value" -ge "$2" ] || publish "acked$1" "$2"
  wake "need$1" "room$1"
}

watched() { lives "$watchdog" "$watchdog_born"; }

# Tells whether both streams are sent, or were.
sending() {
  for n in 1 2; do
    pid=
    { IFS=' ' read -r pid born <"$place/at.$K/send$n"; } && lives "$pid" "$born" || [ -e "$place/at.$K/sent$n" ] || return 1
  done
}

# take FROM LENGTH accepts a piece of stdin whole, or not at all.
take() {
  file=i.$1.$K
  copied "$(dd bs="$2" count=1 iflag=fullblock 2>&1 >"$place/$file" <&3)"
  [ "$got" = "$2" ] || return 1
  [ "$1" = "$taken" ] || return 0
  taken=$(($1 + $2))
  echo "$1 $taken $file" >>"$place/taken"
  tell kick ''
}

# send STREAM POSITION writes the stream to fd 7, from that byte on, and behind its end what became of
# the program.
send() {
  n=$1 at=$2 segment= fed=0 broken= exit=
  exec 5<>"$place/bell$n"
  for file in "$place/o$n".*; do
    start=${file##*.}
    [ "$start" = '*' ] || [ "$start" -gt "$at" ] || [ "$start" -lt "${segment:-0}" ] || segment=$start
  done
  if [ -n "$segment" ]; then
    exec 8<"$place/o$n.$segment"
    # The next dd goes on behind what this one has read.
    [ "$at" = "$segment" ] || dd bs=$((at - segment)) count=1 of=/dev/null <&8
  fi
  asked=
  while :; do
    if published "total$n" && [ "$value" -gt "$at" ]; then
      [ "$segment" = "$at" ] || [ ! -e "$place/o$n.$at" ] || { segment=$at; exec 8<"$place/o$n.$at"; }
      said=$(dd bs=131072 count=1 <&8 2>&1 >&7) || exit
      copied "$said"
      at=$((at + got))
      [ -z "$asked" ] || { asked=; : >"$place/want$n"; }
      [ "$n" != 1 ] || say_news >&7
      continue
    fi
    [ "$n" != 1 ] || say_news >&7
    if [ -e "$place/over" ]; then
      if published "end$n" && [ "$value" = "$at" ]; then
        # The exit may have come since it was looked for.
        [ "$n" != 1 ] || say_news >&7
        left=
        read -r left <"$place/left"
        [ ! -e "$place/lapsed" ] || say lapsed >&7
        [ ! -e "$place/unkept" ] || say unkept >&7
        say gone "$left" >&7
        : >"$place/at.$K/sent$n"
        exit
      fi
    fi
    [ -n "$asked" ] || { asked=yes; echo yes >"$place/want$n"; continue; }
    read -r x <&5
    asked=
    : >"$place/want$n"
  done
}

# Says how much of its stdin the program has been given, and how it has ended.
say_news() {
  ! published fed || [ "$value" -le "$fed" ] || { fed=$value; say fed "$fed"; }
  [ -n "$broken" ] || [ ! -e "$place/broken" ] || { broken=yes; say fed broken; }
  [ -n "$exit" ] || read -r exit <"$place/exit"
  [ -z "$exit" ] || [ "$exit" = told ] || { [ ! -e "$place/unkept" ] || say unkept; say exit "$exit"; exit=told; }
}
