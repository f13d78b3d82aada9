[ -L "$root" ] && no "$A_LINK"
if ! exists "$root"; then
  above=${root%/*}
  said=$(mkdir -p -- "${above:-/}" 2>&1) || because "$said"
  said=$(mkdir -m 700 -- "$root" 2>&1) || exists "$root" || because "$said"
fi
go_to_root "$root" || no "$REPLACED"
if said=$(mkdir -m 700 -- "./$name" 2>&1); then
  yes new
elif is_directory "./$name"; then
  yes old
elif exists "./$name"; then
  no "$NO_DIRECTORY"
else
  because "$said"
fi
printf '%s/%s' "${PWD%/}" "$name"
