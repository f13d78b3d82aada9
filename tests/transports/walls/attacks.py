"""What programs inside a wall try in order to get out; each prints what it has got.

``$HOME``, ``$OUT`` (a directory beside the workspace ``$WS``), ``$VICTIM`` (a process outside),
``$PORT`` (a server on this machine's loopback), ``$SOCKET`` and ``$ABSTRACT`` (servers on unix
sockets) are real; what must stay outside holds the word in ``CANARY``.
"""

from __future__ import annotations

CANARY = "canary-that-must-stay-outside"

READS = {
    "key of the user": "cat $HOME/.ssh/id_ed25519",
    "credentials of a cloud": "cat $HOME/.aws/credentials; ls $HOME/.aws",
    "history of a shell": "cat $HOME/.bash_history",
    "netrc": "cat $HOME/.netrc; curl -sn file://$HOME/.netrc",
    "home by the list of users": "cat ~root/.netrc; cat /proc/self/root$HOME/.netrc",
    "file beside the workspace": "cat ../out/secret; cat $OUT/secret",
    "workspace of another issue": "cat ../other/secret; ls ..",
    "link in the workspace": "ln -s $OUT/secret here; cat here",
    "link of a link": "ln -s / root; cat root$OUT/secret",
    "hard link": "ln $OUT/secret there; cat there",
    "link through /proc": "ln -s /proc/1/root$OUT/secret p; cat p; cat /proc/1/cwd/../out/secret",
    "descriptors of process 1": "timeout 2 cat /proc/1/fd/*; ls -l /proc/1/fd",
    "inherited descriptors": "for fd in 3 4 5 6 7 8 9; do eval cat /dev/fd/$fd; done",
    "environment of process 1": "cat /proc/1/environ | tr '\\0' '\\n'",
    "environment of all processes": "cat /proc/[0-9]*/environ | tr '\\0' '\\n'",
    "environment of the victim": "cat /proc/$VICTIM/environ",
    "memory of the victim": "dd if=/proc/$VICTIM/mem bs=1 count=9; cat /proc/$VICTIM/maps",
    "list of processes": "ps axeww; cat /proc/[0-9]*/cmdline | tr '\\0' ' '",
    "database of the daemon": "cat $OUT/.sortie.db; strings $OUT/.sortie.db",
    "hidden file": "cat $HIDDEN; cat < $HIDDEN; head -c 99 $HIDDEN",
    "hidden file by a mount": "umount $HIDDEN; cat $HIDDEN",
    "mount of all": "mkdir m; mount --bind / m; mount -t proc proc m; cat m$OUT/secret",
    "user namespace": "unshare -Urm sh -c 'umount -l /tmp; mount -t tmpfs t /mnt; cat $OUT/secret'",
    "chroot": "chroot /proc/1/root cat $OUT/secret; chroot . cat /secret",
    "pivot by a new root": "unshare -Urm sh -c 'pivot_root . .; cat $OUT/secret'",
    "disk": "cat /dev/vda /dev/sda /dev/mem /dev/kmsg | head -c 4096 | grep -a canary",
    "device made by hand": "mknod d b 254 0 && dd if=d bs=1M count=8 | grep -a canary",
    "handle of a file": 'python3 -c "import os; os.open_by_handle_at"; debugfs -R ls /dev/vda',
    "kernel's symbols and log": "dmesg | grep canary; head -c 99 /proc/kcore | grep -a canary",
    "keyring": "cat /proc/keys | grep canary; keyctl show",
    "setuid program": "su -c 'cat $OUT/secret' nobody; sudo -n cat $OUT/secret",
    "capability of a file": "cp /bin/cat c; setcap cap_dac_override+ep c; ./c $OUT/secret",
}
"""What reads."""

WRITES = {
    "file beside the workspace": "echo x > ../out/written; echo x > $OUT/written",
    "home": "echo x > $HOME/.bashrc; mkdir -p $HOME/.ssh; echo x > $HOME/.ssh/authorized_keys",
    "system": (
        "echo x > /usr/local/bin/git; echo x > /etc/profile.d/x.sh; echo x > /etc/ld.so.preload"
    ),
    "temporary directory": "echo x > /tmp/written; echo x > /var/tmp/written",
    "crontab and units": (
        "echo x > /var/spool/cron/crontabs/root; echo x > /etc/systemd/system/x.service"
    ),
    "remount": "mount -o remount,rw /; mount -o remount,rw /usr; echo x > /usr/written",
    "cgroup": "echo $$ > /sys/fs/cgroup/cgroup.procs; mkdir /sys/fs/cgroup/unified/written",
    "settings of the kernel": "echo 1 > /proc/sys/kernel/sysrq; echo h > /proc/sysrq-trigger",
    "core pattern": "echo '|/bin/sh -c x' > /proc/sys/kernel/core_pattern",
    "replaced link to the workspace": (
        "cd /; rm -rf $WS; mv $WS $WS.old; ln -s $OUT $WS; echo x > $WS/written"
    ),
    "program of the daemon": "echo x >> $(command -v git); echo x > /bin/sh",
}
"""What writes."""

SIGNALS = {
    "the victim": "kill -9 $VICTIM",
    "everybody": "kill -9 -1",
    "its group": "kill -9 0",
    "parent": "kill -9 $PPID; kill -9 1",
    "debugger": "gdb -p $VICTIM -batch; strace -p $VICTIM",
    "ptrace": (
        "python3 -c \"import ctypes, os; v = int(os.environ['VICTIM']);"
        ' print(ctypes.CDLL(None).ptrace(16, v, 0, 0)); os.kill(v, 9)"'
    ),
    "priority": "renice 19 -p $VICTIM; prlimit --pid $VICTIM --nofile=1",
}
"""What reaches for processes."""

CONNECTIONS = {
    "server on this machine": "curl -sm 2 http://127.0.0.1:$PORT/; curl -sm 2 http://localhost:$PORT/",
    "socket of unix": "curl -sm 2 --unix-socket $SOCKET http://x/",
    "abstract socket": "curl -sm 2 --abstract-unix-socket $ABSTRACT http://x/",
    "address of the host": "curl -sm 2 http://$(hostname -I | cut -d' ' -f1):$PORT/",
    "docker": "curl -sm 2 --unix-socket /var/run/docker.sock http://x/info | grep canary",
    "names": "getent hosts example.com; cat /etc/resolv.conf | grep canary",
    "raw packets": "ping -c 1 -W 1 127.0.0.1 && curl -sm 2 http://127.0.0.1:$PORT/",
    "network of the victim": "nsenter -t $VICTIM -n curl -sm 2 http://127.0.0.1:$PORT/",
    "network that is brought up": "ip link set lo up; curl -sm 2 127.0.0.1:$PORT",
    "proxy of the environment": "http_proxy=http://127.0.0.1:$PORT curl -sm 2 http://example.com/",
}
"""What reaches for servers, where there is no network."""
