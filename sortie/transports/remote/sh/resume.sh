# Is attached, on another link, to a supervisor that is there.
exec 3<&0 6>&2 7>&1 2>/dev/null
unset CDPATH SORTIE_RUN_ID
say here
[ -d "$place" ] && [ ! -L "$place" ] && [ -O "$place" ] || refuse absent
is_leader || refuse "$refused"
attach
