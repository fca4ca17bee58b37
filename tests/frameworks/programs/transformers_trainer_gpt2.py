"""A small GPT-2, trained on repeating sequences by the Trainer."""

import sys
import tempfile

from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_callback import PrinterCallback

import torch

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 200


class Repeats(Dataset):
    """Sequences that repeat a few random tokens."""

    def __init__(self, count: int) -> None:
        generator = torch.Generator().manual_seed(0)
        self.patterns = torch.randint(0, 64, (count, 8), generator=generator)

    def __len__(self) -> int:
        return len(self.patterns)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        tokens = self.patterns[index].repeat(4)
        return {"input_ids": tokens, "labels": tokens.clone()}


class ShowLoss(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" in logs:
            print(state.global_step, logs["loss"], logs["learning_rate"], logs["grad_norm"])
        if "eval_loss" in logs:
            print("eval", logs["eval_loss"])


torch.manual_seed(0)
config = GPT2Config(
    vocab_size=64, n_positions=64, n_embd=64, n_layer=3, n_head=4, bos_token_id=0, eos_token_id=0
)
model = GPT2LMHeadModel(config)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=8,
        max_steps=STEPS,
        learning_rate=1e-3,
        warmup_steps=20,
        logging_steps=20,
        eval_strategy="steps",
        eval_steps=100,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        seed=1,
        use_cpu=True,
    )
    trainer = Trainer(
        model,
        arguments,
        train_dataset=Repeats(400),
        eval_dataset=Repeats(40),
        callbacks=[ShowLoss()],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))
