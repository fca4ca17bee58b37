// Tensors as Python objects: identity, views, in-place writes, metadata.
#pragma once

#include "frontend/core/interpreter.h"
#include "graph/op.h"

namespace janus::frontend {

/// Current contents: a view whose base was written is taken again.
graph::Value* read(Interpreter& interpreter, Tensor& tensor);
/// Whether its value is what its memory holds: no view of what was written since.
bool is_current(const Tensor& tensor);
/// What it was taken from: its base, or the tensor whose memory it may share; null: nothing.
const std::shared_ptr<Tensor>& viewed_by(const TensorState& tensor);
/// Whether it is a view that was taken without gradients of what requires one: to eager a leaf that
/// requires one itself.
bool is_leaf_view(const Tensor& tensor);
/// Gradients of such a view have nowhere to go in a graph.
void refuse_leaf_view(const Interpreter& interpreter, const Tensor& tensor);
/// Notes how Python takes the view again: by that call.
void note_view_call(Interpreter& interpreter, Tensor& view, PyObject* callable,
                    const CallArguments& arguments);
/// The tensor at the bottom of views and of opaque results that may be views.
std::shared_ptr<Tensor> memory_of(std::shared_ptr<Tensor> tensor);
const Tensor* memory_of(const Tensor* tensor);
/// Whether the tensor may be another one that still lives.
bool has_live_alias(const Tensor& tensor);
/// Replaces the contents (same type); a view writes through to its base.
void write(Interpreter& interpreter, Tensor& tensor, graph::Value* contents);

/// As write(), by an operation that autograd tracks if `tracked` and gradients are enabled: refuses
/// what eager would raise, and keeps the tensor's autograd state.
void write_tracked(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                   graph::Value* contents, bool tracked);
/// As write_tracked(), by the in-place form of the operator that computed `contents` by `node`, of
/// which the tensor is the first operand.
void write_in_place(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                    const graph::Node& node, graph::Value* contents, bool tracked);
/// Contents converted to another dtype, as torch's `to`.
graph::Value* cast(Interpreter& interpreter, graph::Value* contents, graph::DType dtype);

/// A fresh tensor from an operator's result, with the autograd state that eager would give it.
std::shared_ptr<Tensor> make_tensor(Interpreter& interpreter, graph::Value* value,
                                    bool requires_grad);

/// A view of `tensor` by the operator; `arguments` to its __getitem__ make it again in Python.
std::shared_ptr<Tensor> view_of(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                                const graph::OpDef& op, graph::Attributes attributes,
                                const CallArguments& arguments);

/// The same, of a node whose first input is the tensor's value.
std::shared_ptr<Tensor> view_by(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                                const graph::Node* node, const CallArguments& arguments);

/// tensor[key], tensor[key] = value
Value index_tensor(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                   const Value& key);
void write_index(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor, const Value& key,
                 const Value& value);

/// tensor.item() as a number of the graph.
Value item(Interpreter& interpreter, Tensor& tensor);

/// torch.Size of the tensor's dimensions.
Value size_of(ValueMaker& maker, const Tensor& tensor);

}  // namespace janus::frontend
