"""When torchjanus began to load: what comes after torch's own import is paid from the account."""

import time

began = time.process_time()
