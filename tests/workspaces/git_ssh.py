"""Git over SSH from a real sshd, as a forge serves it: one key, git's programs and nothing else."""

from __future__ import annotations

import base64
import json
import os
import shutil
from pathlib import Path

from tests.transports.ssh.sshd import USER, Keys, Sshd

NAME = "forge"
"""The host's name in the client's ssh_config."""

_SERVE = """\
#!/bin/sh
# Serves git below one directory, whether the path begins with a slash or not, and says where files
# of LFS are: https://github.com/git-lfs/git-lfs/blob/main/docs/api/server-discovery.md
cd {root} || exit
case $SSH_ORIGINAL_COMMAND in git-lfs-authenticate*) cat lfs.json; exit ;; esac
exec git-shell -c "$(printf %s "$SSH_ORIGINAL_COMMAND" | sed "s#'/#'#")"
"""

_SSH = """\
#!/bin/sh
# The real ssh, with the files of a user who is made up.
exec {ssh} -F {config} "$@"
"""


class GitHost:
    """A host that serves the repositories below ``root``, and a user who has an account there.

    ``programs`` is a directory for the front of PATH: ssh finds its home by the user's id alone, so
    that a test's user needs an ``ssh`` that is told of other files.
    """

    def __init__(self, place: Path, root: Path) -> None:
        self.root = root
        self.keys = Keys.make(place / "user")
        self.sshd = Sshd(place / "host", self.keys)
        serve = place / "serve"
        _write(serve, _SERVE.format(root=root))
        public = Path(f"{self.keys.key}.pub").read_text()
        self.sshd.authorized_keys.write_text(f'command="{serve}",restrict {public}')
        self.keys.configure("Host *", f"  UserKnownHostsFile {self.keys.known_hosts}")
        self.sshd.alias(NAME)
        self.programs = place / "programs"
        self.programs.mkdir()
        ssh = shutil.which("ssh")
        _write(self.programs / "ssh", _SSH.format(ssh=ssh, config=self.keys.config))

    @property
    def path(self) -> str:
        """The user's PATH."""
        return f"{self.programs}:{os.environ['PATH']}"

    def url(self, form: str, path: str) -> str:
        """Return the address of a repository, of the form ``ssh`` or ``scp``."""
        if form == "ssh":
            return f"ssh://{USER}@127.0.0.1:{self.sshd.port}/{path}"
        return f"{USER}@{NAME}:{path}"

    def serve_lfs(self, url: str, name: str, password: str) -> None:
        """Have whoever logs in use an HTTP server for files of LFS."""
        told = base64.b64encode(f"{name}:{password}".encode()).decode()
        answer = {"href": f"{url}/info/lfs", "header": {"Authorization": f"Basic {told}"}}
        (self.root / "lfs.json").write_text(json.dumps(answer))

    def use_own_keys(self) -> None:
        """Have the user's ssh know the key by itself."""
        self.keys.configure("Host *", f"  IdentityFile {self.keys.key}", "  IdentitiesOnly yes")


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
