# Watches over a program on its host, and ends it with its tree when the lease ends. It runs in a
# session of its own and without the cookie and the mark, or it would end itself.

P=$1 S=$2 M=$3 C=$4 G=$5 L=$6 D=$7 U=$8 A=1
cd /
# The mark is the tree's.
ulimit -S -w 0 || ulimit -S -x 0
stat_of $$ && set -- $s && [ "$3" = "$P" ] && A=
echo $$
exec >/dev/null
# Where the host has no room for another process, dash exits at the next one it wants to start.
trap at_once EXIT
lease :
$U end
trap - EXIT
say "gone $m" >&4
say "gone $m" >&7
