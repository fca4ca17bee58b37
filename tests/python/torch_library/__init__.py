"""Parts of torch above its operators: modules, losses, optimizers, autocast, distributions."""
