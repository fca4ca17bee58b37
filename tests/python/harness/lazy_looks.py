"""How the harness looks at a lazy run after each call. Without torch: the writers of programs choose one."""

LOOKS = (
    "all",  # what is noted runs as one segment
    "apart",  # each call is a session
    "ahead",  # the result; what the call left of its state runs ahead of the next call
    "result",  # the same, but that stays pending
    "each",  # each value, one after the other, makes run what it needs
    "never",  # nobody but the program itself looks
)
WITHOUT_RUNNER = ("result", "each", "never")  # with it, a look makes all run that is left
