"""A Trainer with its own compute_loss and metrics: a BERT classifier with label smoothing by hand."""

import sys
import tempfile

import numpy as np
import torch.nn.functional as F
from torch.utils.data import TensorDataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)
from transformers.trainer_callback import PrinterCallback

import torch

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 4


def examples(count: int, seed: int) -> TensorDataset:
    """The class is which of three tokens occurs most often."""
    tokens = torch.randint(1, 20, (count, 24), generator=torch.Generator().manual_seed(seed))
    counts = torch.stack([(tokens == token).sum(1) for token in (1, 2, 3)], 1)
    return TensorDataset(tokens, counts.argmax(1))


def collate(rows):
    return {
        "input_ids": torch.stack([row[0] for row in rows]),
        "labels": torch.stack([row[1] for row in rows]),
    }


class SmoothedTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = F.cross_entropy(outputs.logits, labels, label_smoothing=0.05)
        return (loss, {"logits": outputs.logits}) if return_outputs else loss


class ShowLogs(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        kept = {
            name: value
            for name, value in logs.items()
            if "runtime" not in name and "per_second" not in name
        }
        if "loss" in kept or "eval_loss" in kept:
            print(state.global_step, kept)


def accuracy(predictions) -> dict[str, float]:
    return {"accuracy": float(np.mean(predictions.predictions.argmax(-1) == predictions.label_ids))}


torch.manual_seed(0)
config = BertConfig(
    vocab_size=20,
    hidden_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=96,
    num_labels=3,
)
model = BertForSequenceClassification(config)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder, per_device_train_batch_size=16, num_train_epochs=EPOCHS, learning_rate=2e-3, lr_scheduler_type="cosine",
        logging_steps=25, eval_strategy="epoch", save_strategy="no", report_to="none", disable_tqdm=True,
        remove_unused_columns=False, label_names=["labels"], use_cpu=True,
    )  # fmt: skip
    trainer = SmoothedTrainer(
        model, arguments, data_collator=collate, train_dataset=examples(1000, 1), eval_dataset=examples(200, 2),
        compute_metrics=accuracy, callbacks=[ShowLogs()],
    )  # fmt: skip
    trainer.remove_callback(PrinterCallback)
    trainer.train()
print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))
