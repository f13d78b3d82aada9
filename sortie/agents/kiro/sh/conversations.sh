# Prints what Kiro keeps of one directory, each part behind a line that begins with a nonce:
#   NONCE at STORE VERSION       the newest conversation there, whose version tells whether it changed
#   NONCE trouble STORE REASON   it cannot be looked at
#   NONCE content STORE PLACE    its document, or its session's file, follows
#   NONCE messages STORE PLACE   the session's messages follow
#   NONCE end
# Arguments: nonce, limit in bytes, SQL that is the directory, regular expressions that find it in a
# session of v2 and of v3, "read" or "look", and the versions that were there before, one a line.
# The tables beside those of conversations hold credentials and are never named.

nonce=$1 limit=$2 key=$3 in_v2=$4 in_v3=$5 mode=$6 before=$7
LC_ALL=C
export LC_ALL
say() { printf '\n%s %s\n' "$nonce" "$*"; }

# whether a version is another one than before, which is told, and its content is wanted
is_new() {
say at "$1 $2"
[ "$mode" = read ] || return 1
case "
$before
" in
*"
$1 $2
"*) return 1 ;;
esac
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
[ "$(uname)" != Darwin ] || data=$HOME/Library/Application\ Support ;;
esac
database=$data/kiro-cli/data.sqlite3

select_python='
import sqlite3, sys
from urllib.parse import quote
name = "file:" + quote(sys.argv[1]) + "?mode=ro"
try:
  database = sqlite3.connect(name, uri=True, timeout=0.5)
  database.text_factory = bytes
  for row in database.execute(sys.argv[2]):
    cells = [each if isinstance(each, bytes) else str(each).encode() for each in row]
    sys.stdout.buffer.write(b"|".join(cells) + b"\n")
except sqlite3.Error as error:
  sys.exit(str(error))
'
if command -v sqlite3 >/dev/null 2>&1; then
query() { sqlite3 -batch -init /dev/null -readonly -noheader -cmd '.timeout 500' "$database" "$1"; }
elif command -v python3 >/dev/null 2>&1; then
query() { python3 -I -c "$select_python" "$database" "$1"; }
else
query() { echo 'neither sqlite3 nor python3 is installed'; return 1; }
fi

# $1 store, $2 the query for its newest row, $3 that for its content; fails where it is no use to go on
look_v1() {
if row=$(query "$2" 2>&1); then
[ -n "$row" ] || return 0
# The older table has no id: then the row begins with a bar.
size=${row##*|}
case $size in
'' | *[!0-9]*) say trouble "$1" "no answer that is understood"; return 1 ;;
esac
version=$(printf '%s' "$row" | tr '|\n' '  ')
is_new "$1" "$version" || return 0
fits "$1" "$size" || return 0
say content "$1" "$database"
query "$3" 2>/dev/null
return 0
else
case $row in
*'no such table'*) return 0 ;;
*) say trouble "$1" "$(printf '%s' "$database cannot be read: $row" | tr '\n' ' ')"
return 1 ;;
esac
fi
}

if [ -f "$database" ]; then
newest="(SELECT rowid FROM conversations_v2 WHERE key = $key ORDER BY updated_at DESC, rowid DESC LIMIT 1)"
size='length(CAST(value AS BLOB))'
look_v1 v1 \
"SELECT conversation_id, updated_at, $size FROM conversations_v2 WHERE rowid = $newest" \
"SELECT value FROM conversations_v2 WHERE rowid = $newest" &&
look_v1 v1-older \
"SELECT '', 0, $size FROM conversations WHERE key = $key" \
"SELECT value FROM conversations WHERE key = $key"
fi

# v2 and v3

sessions=${KIRO_HOME:-$HOME/.kiro}/sessions

bytes_of() { if [ -f "$1" ]; then wc -c <"$1" | tr -d ' '; else echo 0; fi; }

# $1 store, $2 what finds the directory; the names of sessions come on stdin, the newest first
look_at_sessions() {
head -n 50 | while IFS= read -r name; do
[ -f "$name" ] || continue
head -c "$limit" <"$name" | tr '\n' ' ' | grep -qE -e "$2" || continue
messages=${name%session.json}messages.jsonl
[ "$1" = v3 ] || messages=${name}l
own=$(bytes_of "$name") said=$(bytes_of "$messages")
is_new "$1" "$name $own $said" || break
fits "$1" $((own + said)) || break
say content "$1" "$name"
head -c "$limit" <"$name"
say messages "$1" "$name"
[ ! -f "$messages" ] || head -c "$limit" <"$messages"
break
done
}

ls -t "$sessions"/cli/*.json 2>/dev/null | look_at_sessions v2 "$in_v2"
ls -t "$sessions"/*/sess_*/session.json 2>/dev/null | look_at_sessions v3 "$in_v3"
say end
