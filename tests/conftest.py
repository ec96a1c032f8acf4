"""Where shells start tests in the background they ignore Ctrl-C, and so would all that the tests interrupt."""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
