# Shows the host's processes and signals some of them, as it is told line by line, until stdin ends.

look_at() {
  IFS= read -r stat <"/proc/$1/stat" || return 1
  set -- ${stat##*) }
  started=${20}
}
say() { printf '\001%s %s\n' "$nonce" "$*"; }

exec 3<&0 2>/dev/null
unset SORTIE_RUN_ID
LC_ALL=C
export LC_ALL
boot=
read -r boot </proc/sys/kernel/random/boot_id
[ -n "$boot" ] && [ -r /proc/self/environ ] || { say blind; exit 0; }
say ready $$ "$boot"
while IFS= read -r line <&3; do
  set -- $line
  case $1 in
    look)
      cat /proc/[0-9]*/stat
      say cookies
      grep -saHz '^SORTIE_RUN_ID=' /proc/[0-9]*/environ
      say looked
      ;;
    signal)
      signal=$2 refused=
      shift 2
      while [ $# -gt 1 ]; do
        pid=$1 born=$2
        shift 2
        # What has the pid now may be another process.
        look_at "$pid" && [ "$started" = "$born" ] || continue
        kill -s "$signal" "$pid" || refused="$refused $pid"
      done
      say signalled "$refused"
      ;;
  esac
done
