# Says which of the supervisors with the $ids have a program that another daemon can go on with.
exec 2>/dev/null
found=
for id in $ids; do
  place=${TMPDIR:-/tmp}/sortie-run.$id
  [ -d "$place" ] && [ ! -L "$place" ] && [ -O "$place" ] && adoptable || continue
  found="$found $id"
done
whole yes "$found"
