# Makes the token of our lease known in a pod, where no session holds the root, and forgets older ones.
said=$(umask 077; mkdir -p -- "$fence" 2>&1) || because "$said"
for known in "$fence"/token.*; do
  [ "$known" = "$fence/token.*" ] || [ "${known##*.}" -le "$token" ] || whole lost
done
printf '' >"$fence/token.$token" || no "$fence/token.$token cannot be written; look at the space there"
for known in "$fence"/token.*; do
  [ "${known##*.}" -le "$token" ] || whole lost
  [ "${known##*.}" = "$token" ] || rm -f -- "$known"
done
whole yes
