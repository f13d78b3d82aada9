exists "$root" || { yes absent; leave; }
go_to_root "$root" || { yes absent; leave; }
exists "./$name" || { yes absent; leave; }
is_directory "./$name" || no "$NO_DIRECTORY"
for try in 1 2 3; do
  # What is no directory of ours to change is told by rm itself.
  said=$(rm -rf -- "./$name" 2>&1) && break
  [ "$try" = 1 ] && find "./$name" -type d ! -perm -700 -execdir chmod u+rwx {} \;
done
exists "./$name" && no "something in it stays, the first: $(printf '%s' "$said" | head -n 1)"
yes removed
