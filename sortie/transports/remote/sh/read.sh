reach || whole yes absent
[ -L "./$last" ] && no "$A_LINK"
exists "./$last" || whole yes absent
[ -f "./$last" ] || no 'it is no regular file'
[ -r "./$last" ] || no 'Permission denied'
yes there
# GNU's dd follows no link that came meanwhile, and does not wait at a FIFO.
safely=iflag=nofollow,nonblock,fullblock,count_bytes
if dd if=/dev/null of=/dev/null status=none "$safely" count=0; then
  dd if="./$last" bs=65536 count="$limit" status=none "$safely" || exit 1
else
  head -c "$limit" -- "./$last" || exit 1
fi
