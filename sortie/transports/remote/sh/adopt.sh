# Is attached, for another daemon, to a supervisor that is there: from the first byte of the output on.
exec 3<&0 6>&2 7>&1 2>/dev/null
unset CDPATH SORTIE_RUN_ID
say here
[ -d "$place" ] && [ ! -L "$place" ] && [ -O "$place" ] || refuse absent
is_leader || refuse "$refused"
# A link of the daemon before that comes now has a smaller number.
for other in "$place"/at.*; do
  other=${other##*.}
  [ "$other" = '*' ] || [ "$other" -lt "$K" ] || K=$((other + 1000))
done
# Says what the daemon before knew of the program.
say_program() {
  { IFS= read -r root; IFS= read -r marker; IFS= read -r namespace; } <"$place/program" || refuse unadoptable
  say number "$K"
  say root "$root"
  [ "$namespace" = ' ' ] || say namespace "$namespace"
  say started "$marker"
}
attach
