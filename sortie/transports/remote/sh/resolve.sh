find_program "$name" "$search"
[ -n "$found" ] || no "$flaw"
yes
printf '%s' "$found"
