# Calls one of Sortie's tools: call.sh TOOL [ARGUMENTS], with ARGUMENTS as a JSON object, or - where
# that is in stdin. Without TOOL it says which tools there are. The answer goes to stdout; the exit
# status is 1 where the call was refused.

here=${0%/*}
say() {
  printf 'call %s\n' "${1-}"
  case ${2-} in
  -) cat ;;
  *) printf '%s\n' "${2-}" ;;
  esac
}
say "$@" | /bin/sh "$here/connect.sh" | {
  IFS= read -r refused || exit 1
  cat
  exit "$refused"
}
