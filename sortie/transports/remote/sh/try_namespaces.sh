# Tries ways to make a PID namespace, one after the other. Yes names the way that works, what its
# init can do while it idles, what to enter it with, and why no better way works.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin
lacks= flaws= quiet= idle='while :; do sleep 86400; done'
for tool in nsenter setsid; do command -v "$tool" >/dev/null || lacks="$lacks $tool"; done
[ -z "$lacks" ] || whole yes "none - - - it lacks$lacks, which are part of util-linux"
nsenter=$(command -v nsenter) setsid=$(command -v setsid)
env --ignore-signal=CHLD true && quiet=quiet

# try_way NAME ENTERING WORD... makes one with these words, and enters it with nsenter's options.
try_way() {
  way=$1 entering=$2
  shift 2
  flaw=$({ become_holder "$@" & echo "holder $!"; wait; } | {
    await_namespace
    if [ -n "$c" ]; then
      flaw=$("$nsenter" --target "$c" $entering -- "$setsid" /bin/sh -c 'exit 77' 2>&1)
      [ $? != 77 ] || flaw=works
      kill -s KILL "$c"
    fi
    printf %s "${flaw:-it could not be entered}"
  })
  [ "$flaw" != works ] || whole yes "$way ${quiet:--} $nsenter $setsid $flaws"
  case $flaws in *"$flaw"*) ;; *) flaws=$flaws${flaws:+; }$flaw ;; esac
}
