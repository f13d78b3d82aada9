# Frames an answer behind which the script goes on, without what question.sh watches its stdin with.
yes() { printf '\001%s yes %s\n' "$nonce" "$*"; }
no() { printf '\001%s no %s\n' "$nonce" "$*"; exit 0; }
because() { no "${1##*: }"; }

printf '\001%s here\n' "$nonce"
cd /
exec 3<&0 2>/dev/null
exec </dev/null
unset CDPATH SORTIE_RUN_ID
LC_ALL=C
export LC_ALL
