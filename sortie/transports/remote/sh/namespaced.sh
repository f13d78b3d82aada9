# Starts the watchdog of a program that is to run in a PID namespace, which the watchdog has made.
watched=$(watch $$ "$born" "$grace" "$lease" "$pipe" "$wrappers" 2>&6 5<&- 6>&- | {
  await_namespace
  [ -z "$c" ] || ! stat_of "$c" || { set -- $s; echo "yes $c ${20} $holder"; exit; }
  echo "no $flaw"
})
case $watched in
  yes*) set -- $watched; namespace_init=$2 namespace_born=$3 holder=$4; say namespace "$2" "$3" ;;
  'no missing '*) [ -z "$pipe" ] || rm -rf -- "$pipe"; refuse missing "${watched#no missing }" ;;
  'no directory'*) [ -z "$pipe" ] || rm -rf -- "$pipe"; refuse directory ;;
  'no uncontained '*) [ -z "$pipe" ] || rm -rf -- "$pipe"; refuse uncontained "${watched#no uncontained }" ;;
  *) [ -z "$pipe" ] || rm -rf -- "$pipe"; refuse unspaced "${watched#no }" ;;
esac
# The program's own end of the pipe is opened in the namespace, so that no other process has it open.
[ -z "$pipe" ] || { say pipe "$pipe/stdin"; exec 5</dev/null; }
