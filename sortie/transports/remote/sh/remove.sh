# Looks for a mount at a path or below it: rm would remove what another process has mounted there, and
# tells a bind mount from a directory no more than find -xdev does.
refuse_mounts() {
  [ -r /proc/self/mountinfo ] || return 0
  # As the kernel writes it.
  at=$(printf '%s.' "$1" | sed -e 's/\\/\\134/g' -e 's/ /\\040/g' -e 's/	/\\011/g')
  at=${at%.}
  while IFS=" " read -r x x x x place x; do
    case $place in
      "$at" | "$at"/*)
        place=$(printf '%b' "$(printf '%s' "$place" | sed 's/\\/\\0/g')" | tr '\n' '?')
        no "something is mounted on $place, and what is mounted is not removed; unmount it"
        ;;
    esac
  done </proc/self/mountinfo
}

exists "$root" || whole yes absent
go_to_root "$root" || whole yes absent
exists "./$name" || whole yes absent
is_directory "./$name" || no "$NO_DIRECTORY"
refuse_mounts "${PWD%/}/$name"
# The second net, where a file system is mounted right now.
apart=--one-file-system
rm -f "$apart" || apart=
for try in 1 2 3; do
  # What is no directory of ours to change is told by rm itself.
  said=$(rm -rf $apart -- "./$name" 2>&1) && break
  [ "$try" = 1 ] && find "./$name" -xdev -type d ! -perm -700 -execdir chmod u+rwx {} \;
done
exists "./$name" && no "something in it stays, the first: $(printf '%s' "$said" | head -n 1)"
whole yes removed
