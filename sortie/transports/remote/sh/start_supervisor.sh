# Begins a supervisor and is attached to it. Its script may come on the link, once it is told "here".
#
# fd 3: what comes on the link; fd 6 and 7: its stderr and stdout.
exec 3<&0 6>&2 7>&1 2>/dev/null
unset CDPATH SORTIE_RUN_ID
say here
for tool in setsid timeout dd mkfifo rm sleep wc; do
  command -v "$tool" >/dev/null || refuse unsupervised "it lacks $tool"
done
[ -r /proc/self/stat ] || refuse unsupervised 'it has no /proc'
# What the supervisor says here stands on its fd 9; all of its own lets go of it.
up=$(supervisor 9>&1 >&7 2>&6 &)
[ "$up" = up ] || exit 1
attach
