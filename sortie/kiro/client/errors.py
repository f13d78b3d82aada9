"""The errors of the client. docs/kiro-client.md has a table of what raises each."""

from __future__ import annotations


class KiroSDKError(Exception):
    """The base of all errors that the client raises."""


class OptionError(KiroSDKError, ValueError):
    """An option asks for what kiro-cli cannot do, or contradicts another one.

    ``option`` is its name in ``KiroAgentOptions``. Nothing has been started, but where kiro-cli
    itself turned out not to do what was asked for.
    """

    def __init__(self, message: str, option: str = "") -> None:
        super().__init__(message)
        self.option = option


class CLINotFoundError(KiroSDKError):
    """There is no kiro-cli at ``cli_path``, or none on PATH."""


class CLIConnectionError(KiroSDKError):
    """kiro-cli, or what it keeps, could not be talked to."""


class TurnTimeoutError(CLIConnectionError, TimeoutError):
    """A turn took longer than ``timeout`` seconds; its processes are gone."""


class ProcessError(KiroSDKError):
    """kiro-cli ended without having done the turn.

    ``exit_code`` is its exit status; it is negative where a signal has ended it, as in
    ``subprocess``, and None where another part of this program has taken it. An exit status of 0
    is no proof that a turn ran: that is the trailer with the credits.
    """

    def __init__(self, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class AuthenticationError(ProcessError):
    """kiro-cli has no login and no ``KIRO_API_KEY``, or its key is invalid or has expired."""


class ToolPermissionError(KiroSDKError):
    """kiro-cli gave up the turn because a tool was not trusted; see ``allowed_tools``.

    Other versions of kiro-cli deny the tool and go on: then its result is an ``ErrorBlock``.
    """


class SessionNotFoundError(KiroSDKError):
    """A session does not exist, or not for this directory, or kiro-cli did not go on with it."""


class CLIJSONDecodeError(KiroSDKError):
    """A session that is to be resumed is damaged: what kiro-cli wrote cannot be decoded.

    ``raw_output`` is the beginning of what was written, "" where it could not be had. Turns do not
    raise this: kiro-cli prints no JSON.
    """

    def __init__(self, message: str, raw_output: str = "") -> None:
        super().__init__(message)
        self.raw_output = raw_output
