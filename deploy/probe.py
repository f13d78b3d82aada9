"""Ask a daemon on this machine how it is: ``probe.py livez`` or ``probe.py readyz``.

For a container's health check: it exits with 0 where the answer is 200, and says the answer where
it is another. The token is taken from the environment, as the daemon takes it.
"""

import os
import sys
import urllib.error
import urllib.request

PATIENCE = 5


def main() -> None:
    """Ask, and exit with what the answer means."""
    port = os.environ.get("SORTIE_SERVER_PORT", "7678")
    token = os.environ.get("SORTIE_SERVER_AUTH_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/{sys.argv[1]}", headers=headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=PATIENCE):
            return
    except urllib.error.HTTPError as error:
        sys.exit(f"{error.code}: {error.read(1000).decode(errors='replace')}")
    except OSError as error:
        sys.exit(f"no answer: {error}")


main()
