# clean_up PLACES NAMES SPARED removes what is left of supervisors that are no more, and ends those with
# these ids, or of the runs with these cookies, whose files it removes, too; but for those with the ids
# that are spared. Leaves in was the pids that it has ended.
clean_up() {
  was=
  for d in "$1".*; do
    [ -d "$d" ] && [ ! -L "$d" ] && [ -O "$d" ] || continue
    case $d in
      *.gone) rm -rf -- "$d"; continue ;;
      *.new)
        own=${d%.new}
        [ -e "/proc/${own##*.}" ] || rm -rf -- "$d"
        continue
        ;;
    esac
    own= run=
    IFS=' ' read -r own run <"$d/run"
    case " $3 " in *" ${own:--} "*) continue ;; esac
    case " $2 " in
      *" ${own:--} "* | *" ${run:--} "*) ;;
      *) ! is_noted "$d/supervisor" && ! is_noted "$d/watchdog" || continue ;;
    esac
    # The watchdog goes first: it would end the program, and no link would be told.
    for entry in "$d/watchdog" "$d/supervisor" "$d"/at.*/* "$d/feeder" "$d/spool1" "$d/spool2"; do
      is_noted "$entry" || continue
      was="$was $p"
      child_of "$p"
      kill -s KILL "$p" $c
    done
    # Ends the shell that waits for a line on behalf of the watchdog.
    echo '- end' 1<>"$d/lease"
    mv -- "$d" "$d.gone"
    rm -rf -- "$d.gone"
  done
}

is_noted() { p=; { IFS=' ' read -r p b <"$1"; } && lives "$p" "$b"; }
