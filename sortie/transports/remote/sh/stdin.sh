# Passes on to a program's stdin, through the FIFO that waits for it, what comes once it is here.
#
# It is in the namespace of the program's tree, or carries its mark and cookie, and so is ended with
# it: a write to the FIFO of a program that reads nothing may last as long as the program.

cd /
{ ulimit -S -w "$marker" || ulimit -S -x "$marker"; } 2>/dev/null
export SORTIE_RUN_ID="$cookie"
printf '\001%s here\n' "$nonce"
inside cat >"$fifo" 2>/dev/null
