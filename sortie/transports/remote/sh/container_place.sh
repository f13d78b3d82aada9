# Makes a directory for a container, with the FIFO whose end it waits for, and tells it, ended by a NUL.
# Directories that a lost link has left go after a week. $1 is the name of the FIFO.
find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'sortie-container.*' -type d -user "$(id -un)" -mtime +7 -exec rm -rf -- {} +
place=$(umask 077; mktemp -d -- "${TMPDIR:-/tmp}/sortie-container.XXXXXXXX") || exit 1
mkdir -m 755 -- "$place/fifo" && mkfifo -m 600 -- "$place/fifo/$1" || { rm -rf -- "$place"; exit 1; }
printf '%s\0' "$place"
