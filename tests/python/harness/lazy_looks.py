"""How the harness looks at a lazy run after each call. Without torch: the writers of programs choose one."""

LOOKS = (
    "all",  # what is noted runs as one segment
    "apart",  # each call is a session
    "each",  # each value, one after the other, makes run what it needs
    "result",  # the same for the result only; what the call left of its state is pending still
    "never",  # nobody but the program itself looks
)
