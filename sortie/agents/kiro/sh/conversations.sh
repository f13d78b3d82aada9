# Prints what Kiro keeps of one directory, each part behind a line that begins with a nonce:
#   NONCE at STORE VERSION       the newest conversation there, whose version tells whether it changed
#   NONCE trouble STORE REASON   it cannot be looked at
#   NONCE content STORE PLACE    its document, or its session's file, follows
#   NONCE messages STORE PLACE   the session's messages follow
#   NONCE end
# Arguments: nonce, limit in bytes, SQL that is the directory, regular expressions that find it in a
# session of v2 and of v3, "read" or "look", and the versions that were there before, one a line.
# The tables beside those of conversations hold credentials and are never named.
# Where there is nothing of Kiro's, nothing is started.

nonce=$1 limit=$2 key=$3 in_v2=$4 in_v3=$5 mode=$6 before=$7
LC_ALL=C
export LC_ALL
line='
'

# What is short is told at once, in the end or before a content.
told=
say() { told="$told$line$nonce $*$line"; }
tell() {
printf '%s' "$told"
told=
}

# whether a version is another one than before, which is told, and its content is wanted
is_new() {
say at "$1 $2"
[ "$mode" = read ] || return 1
case "$line$before$line" in *"$line$1 $2$line"*) return 1 ;; esac
}

fits() {
[ "$2" -le "$limit" ] && return
say trouble "$1" "the conversation has more than $limit bytes"
return 1
}

# v1

data=$XDG_DATA_HOME
case $data in
/*) ;;
*) data=$HOME/.local/share
[ -e /proc/self ] || [ "$(uname)" != Darwin ] || data=$HOME/Library/Application\ Support ;;
esac
database=$data/kiro-cli/data.sqlite3

select_python='
import sqlite3, sys
from urllib.parse import quote
name = "file:" + quote(sys.argv[1]) + "?mode=ro"
try:
  database = sqlite3.connect(name, uri=True, timeout=0.5)
except sqlite3.Error as error:
  sys.exit(str(error))
database.text_factory = bytes
for number, query in enumerate(sys.argv[2:], 1):
  try:
    for row in database.execute(query):
      cells = [each if isinstance(each, bytes) else str(each).encode() for each in row]
      sys.stdout.buffer.write(b"|".join(cells) + b"\n")
  except sqlite3.Error as error:
    print(f"near line {number}: {error}", file=sys.stderr)
'

# prints the rows of two queries, or of one; what is wrong with the first names line 1
query() {
if command -v sqlite3 >/dev/null 2>&1; then
sqlite3 -batch -init /dev/null -readonly -noheader -cmd '.timeout 500' "$database" <<SQL
$1;
$2;
SQL
elif command -v python3 >/dev/null 2>&1; then
python3 -I -c "$select_python" "$database" "$@"
else
echo 'near line 1: neither sqlite3 nor python3 is installed'
fi
}

# $1 a row, $2 the query for its content
look_v1() {
store=${1%%|*} size=${1##*|}
case $size in
'' | *[!0-9]*) say trouble "$store" "no answer that is understood"; return ;;
esac
# The older table has no id.
version=${1#*|}
while :; do case $version in *'|'*) version="${version%%|*} ${version#*|}" ;; *) break ;; esac; done
is_new "$store" "$version" && fits "$store" "$size" || return
say content "$store" "$database"
tell
query "$2" 2>/dev/null
# What other stores hold besides is not asked.
mode=look
}

if [ -f "$database" ]; then
newest="(SELECT rowid FROM conversations_v2 WHERE key = $key ORDER BY updated_at DESC, rowid DESC LIMIT 1)"
size='length(CAST(value AS BLOB))'
# No more than that, though it may have grown meanwhile.
value="SELECT CAST(substr(CAST(value AS BLOB), 1, $limit) AS TEXT) FROM"
rows=$(query \
"SELECT 'v1', substr(conversation_id, 1, 200), substr(updated_at, 1, 40), $size FROM conversations_v2 WHERE rowid = $newest" \
"SELECT 'v1-older', '', 0, $size FROM conversations WHERE key = $key" 2>&1)
set -f
IFS=$line
for row in $rows; do
unset IFS
case $row in
'v1|'*) look_v1 "$row" "$value conversations_v2 WHERE rowid = $newest" ;;
'v1-older|'*) look_v1 "$row" "$value conversations WHERE key = $key" ;;
*'no such table'*) ;;
*'near line 2'*) say trouble v1-older "$database cannot be read: $row" ;;
*) say trouble v1 "$database cannot be read: $row" ;;
esac
done
unset IFS
set +f
fi

# v2 and v3

sessions=${KIRO_HOME:-$HOME/.kiro}/sessions

bytes_of() { if [ -f "$1" ]; then wc -c <"$1"; else echo 0; fi; }

# $1 store, $2 what finds the directory; the others are the sessions
look_at_sessions() {
store=$1 in_it=$2
shift 2
[ $# -gt 1 ] || [ -e "$1" ] || return
names=$(ls -t "$@" 2>/dev/null | head -n 50)
set -f
IFS=$line
for name in $names; do
unset IFS
[ -f "$name" ] || continue
head -c "$limit" <"$name" | tr '\n' ' ' | grep -qE -e "$in_it" || continue
messages=${name%session.json}messages.jsonl
[ "$store" = v3 ] || messages=${name}l
own=$(($(bytes_of "$name"))) said=$(($(bytes_of "$messages")))
is_new "$store" "$name $own $said" || break
fits "$store" $((own + said)) || break
say content "$store" "$name"
tell
head -c "$limit" <"$name"
say messages "$store" "$name"
tell
[ ! -f "$messages" ] || head -c "$limit" <"$messages"
break
done
unset IFS
set +f
}

look_at_sessions v2 "$in_v2" "$sessions"/cli/*.json
look_at_sessions v3 "$in_v3" "$sessions"/*/sess_*/session.json
say end
tell
