# Goes on when the watchdog is there, up to where the shell becomes the program.

# A value may hold line ends, and so what looks like a name.
set -f
IFS='
'
for name in $(export -p); do
  case $name in
    'export '*) name=${name#export } ;;
    'declare -x '*) name=${name#declare -x } ;;
    *) continue ;;
  esac
  name=${name%%=*}
  case " $kept kept nonce found marker namespace_init pipe place setsid " in *" $name "*) continue ;; esac
  case $name in
    '' | [0-9]* | *[!A-Za-z0-9_]* | UID | EUID | PPID | SHELLOPTS | BASHOPTS | BASH_VERSINFO) ;;
    *) unset "$name" ;;
  esac
done
unset IFS
set +f
say_started() { say started "$marker"; say started >&2; }
