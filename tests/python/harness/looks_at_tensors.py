"""Ways to look at a tensor's values, each a function of a (3, 4) tensor of float32 to nested lists."""

import copy
import ctypes
import io
import os
import pickle
import threading

import numpy

import torch


def tolist(t):
    return t.tolist()


def item(t):
    return [[element.item() for element in row] for row in t]


def array(t):
    return t.numpy().tolist()


def array_protocol(t):
    return numpy.asarray(t).tolist()


def buffer(t):
    return numpy.frombuffer(memoryview(t.numpy()), numpy.float32).reshape(3, 4).tolist()


def text(t):
    return eval(str(t).replace("tensor", "").strip())


def formatted(t):
    return [[float(f"{element:.3f}") for element in row] for row in t]


def test_of_all(t):
    assert bool((t > 0).all())
    return t.tolist()


def equal(t):
    assert torch.equal(t, t.clone())
    return t.tolist()


def read_at(address):
    return numpy.ctypeslib.as_array((ctypes.c_float * 12).from_address(address)).reshape(3, 4)


def address(t):
    return read_at(t.data_ptr()).tolist()


def address_of_storage(t):
    return read_at(t.untyped_storage().data_ptr()).tolist()


def bytes_of_storage(t):
    storage = t.untyped_storage()
    return (
        numpy.frombuffer(bytes(storage[i] for i in range(48)), numpy.float32).reshape(3, 4).tolist()
    )


def list_of_storage(t):
    taken = bytes(t.untyped_storage().tolist())
    return numpy.frombuffer(taken, numpy.float32).reshape(3, 4).tolist()


def cloned_storage(t):
    return torch.empty(0).set_(t.untyped_storage().clone(), 0, (3, 4)).tolist()


def copied_storage(t):
    storage = torch.UntypedStorage(48)
    storage.copy_(t.untyped_storage())
    return torch.empty(0).set_(storage, 0, (3, 4)).tolist()


def resized_storage(t):
    t.untyped_storage().resize_(96)
    return t.tolist()


def filled_storage(t):
    later = t + 0
    t.untyped_storage().fill_(0)
    return later.tolist()


def same_storage(t):
    return torch.empty(0).set_(t.untyped_storage(), 0, (3, 4)).tolist()


def dlpack(t):
    return numpy.from_dlpack(t).tolist()


def dlpack_capsule(t):
    return torch.from_dlpack(torch.utils.dlpack.to_dlpack(t)).tolist()


def saved(t):
    file = io.BytesIO()
    torch.save(t, file)
    file.seek(0)
    return torch.load(file).tolist()


def saved_as_before(t):
    file = io.BytesIO()
    torch.save(t, file, _use_new_zipfile_serialization=False)
    file.seek(0)
    return torch.load(file).tolist()


def pickled(t):
    return pickle.loads(pickle.dumps(t)).tolist()


def deep_copy(t):
    return copy.deepcopy(t).tolist()


def shared(t):
    t.share_memory_()
    return t.tolist()


def data(t):
    return t.data.tolist()


def detached(t):
    return t.detach().numpy().tolist()


def tensor_of_elements(t):
    return torch.tensor([[element for element in row] for row in t]).tolist()


def in_thread(look):
    found = []
    thread = threading.Thread(target=lambda: found.append(look()))
    thread.start()
    thread.join()
    return found[0]


def operator_of_thread(t):
    return in_thread(lambda: (t + 0).tolist())


def list_of_thread(t):
    return in_thread(t.tolist)


def array_of_thread(t):
    return in_thread(lambda: t.numpy().tolist())


def forked(t):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, repr(t.tolist()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    return eval(os.read(reader, 10_000).decode())


def array_sees_later_writes(t):
    seen = t.numpy()
    t.add_(1)
    return (seen - 1).tolist()


def array_writes_later(t):
    taken = t.numpy()
    later = t + 0
    taken[:] = 0
    return later.tolist()


def operand_of_numpy(t):
    array = t.numpy().copy()
    later = torch.from_numpy(array) * 1 + 0
    array[:] = 0
    return later.tolist()


def target_of_numpy(t):
    array = numpy.zeros((3, 4), numpy.float32)
    torch.from_numpy(array).add_(t)
    return array.tolist()


def array_from_before(t):
    before = torch.zeros(3, 4)
    seen = before.numpy()
    before.add_(t)
    return seen.tolist()


LOOKS = {
    name: each
    for name, each in globals().items()
    if getattr(each, "__module__", None) == __name__ and name not in ("read_at", "in_thread")
}
