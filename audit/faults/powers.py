"""What makes permissions bind the superuser, too: a process that gives up its powers."""

import ctypes
import sys

_VERSION_3 = 0x20080522


def give_up_powers() -> None:
    """From now on this process may do what the permissions of files say, whoever owns it."""
    if sys.platform != "linux":
        return  # whoever is no superuser has none to give up
    head = (ctypes.c_uint32 * 2)(_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    if ctypes.CDLL(None, use_errno=True).capset(head, nothing) != 0:
        raise OSError(ctypes.get_errno(), "powers cannot be given up")
