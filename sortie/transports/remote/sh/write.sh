umask 077
make_below() { exists "./$1" || mkdir -- "./$1" || exists "./$1" || no 'Permission denied'; }
reach_or_make
is_directory "./$last" && no 'it is a directory'
new=.sortie-$$-$nonce
set -C
{ content >"./$new"; } || { rm -f -- "./$new"; no "it cannot be written; look at the space and the rights there"; }
if ! mv -fT -- "./$new" "./$last"; then
  [ -L "./$last" ] && rm -f -- "./$last"
  if [ -d "./$last" ] || ! mv -f -- "./$new" "./$last"; then
    rm -f -- "./$new"
    no 'it cannot be replaced'
  fi
fi
whole yes written
