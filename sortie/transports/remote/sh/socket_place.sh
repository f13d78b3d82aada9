# Makes a directory for a socket, and tells it and what can lead a port to that socket, each ended by a
# NUL. Directories that a lost link has left go after a week.
find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'sortie-net.*' -type d -user "$(id -un)" -mtime +7 -exec rm -rf -- {} +
lead=
for one in /usr/bin/perl /usr/bin/python3 /usr/libexec/platform-python /usr/local/bin/python3; do
  [ -z "$lead" ] && [ -x "$one" ] && lead=$one
done
place=$(umask 077; mktemp -d -- "${TMPDIR:-/tmp}/sortie-net.XXXXXXXX") || exit 1
printf '%s\0' "$place" "$lead"
