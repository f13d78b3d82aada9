# Reads what a namespace's holder says, and "holder" with its pid. Leaves in c the pid of the
# namespace's init, or nothing there and the reason in flaw.
await_namespace() {
  holder= ready= flaw= c=
  while [ -z "$holder" ] || [ -z "$ready" ]; do
    IFS= read -r line || break
    case $line in
      ready) ready=yes ;;
      'holder '*) holder=${line#* } ;;
      ?*) flaw=${flaw:-$line} ;;
    esac
  done
  [ -z "$ready" ] || child_of "$holder"
  [ -n "$c" ] || flaw=${flaw:-it ended at once}
}
