# clean_up PLACES COOKIES removes what is left of supervisors that are no more, and ends those of the runs
# with these cookies, whose files it removes, too. Leaves in was the pids that it has ended.
clean_up() {
  was=
  for d in "$1".*; do
    [ -d "$d" ] && [ ! -L "$d" ] && [ -O "$d" ] || continue
    run= there=
    read -r run <"$d/run"
    case " $2 " in *" ${run:--} "*) of=yes ;; *) of= ;; esac
    # The watchdog last: it would bring the program to an end that nobody hears of.
    for name in "$d"/at.*/* "$d/feeder" "$d/spool1" "$d/spool2" "$d/supervisor" "$d/watchdog"; do
      p=
      { IFS=' ' read -r p b <"$name"; } && lives "$p" "$b" || continue
      there="$there $p"
      [ -z "$of" ] || { child_of "$p"; kill -s KILL "$p" $c; }
    done
    [ -z "$there" ] || [ -n "$of" ] || continue
    was="$was$there"
    # Who has made it, and has not said yet who it is.
    [ -e "$d/supervisor" ] || continue
    rm -rf -- "$d"
  done
}
