// See relayout.h.
#include "execute/plan/relayout.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/options.h"
#include "base/policy.h"
#include "execute/code/schedule.h"
#include "graph/op.h"
#include "ops/list.h"

namespace janus::execute {

using graph::Node;
using graph::Trait;

namespace {

/// Which operands and results of an instruction are images that may lie channels last.
struct Images {
  std::vector<size_t> inputs, outputs;
  bool anchor = false;  ///< asks for the layout, instead of only going along with it
};

/// Convolutions of other element types do not go to the library that likes the layout.
constexpr graph::DType image_dtype = graph::DType::f32;

class Chooser {
 public:
  Chooser(const Code& code, Frame& frame) : code_(code), frame_(frame) {}

  PlannedCode choose() {
    const std::vector<Instruction>& all = code_.body.instructions;
    PlannedCode plain{all, code_.tail};
    if (options().is_disabled("layouts") || !find_images() || !makes_contiguous()) return plain;
    find_plain_uses();
    if (!pays()) return plain;
    for (size_t i = 0; i < all.size(); ++i) {
      if (i == code_.tail) result_.tail = result_.instructions.size();
      add(i);
    }
    if (code_.tail == all.size()) result_.tail = result_.instructions.size();
    for (Instruction& instruction : result_.instructions) {
      std::erase_if(instruction.dead, [&](uint32_t slot) { return gone_.contains(slot); });
    }
    return std::move(result_);
  }

 private:
  const Layout& layout(uint32_t slot) const { return frame_.learned[slot].layout; }

  bool is_image(uint32_t slot) const {
    return frame_.learned[slot].is_tensor() && layout(slot).sizes.size() == 4 &&
           layout(slot).element_count() > 0;
  }

  // --- which slots

  static std::vector<size_t> positions(uint8_t bits) {
    std::vector<size_t> result;
    for (size_t i = 0; bits >> i != 0; ++i)
      if ((bits >> i & 1) != 0) result.push_back(i);
    return result;
  }

  static std::optional<Images> fixed_images(const Node& node) {
    const graph::Images& stated = node.op->images;
    if (stated.results == 0 || node.attributes.get_or<bool>("transposed", false))
      return std::nullopt;
    return Images{positions(stated.operands), positions(stated.results), true};
  }

  /// Element by element, over results and operands of the same sizes.
  std::optional<Images> elementwise_images(const Instruction& instruction) const {
    if (instruction.action != Action::kernel && !instruction.node->op->is(Trait::elementwise)) {
      return std::nullopt;
    }
    if (draws(*instruction.node)) return std::nullopt;  // draws follow the order in memory
    if (instruction.action == Action::kernel && !instruction.kernel->axes().empty())
      return images_in_space(instruction);
    Images images;
    const auto& sizes = layout(instruction.outputs[0]).sizes;
    for (size_t i = 0; i < instruction.outputs.size(); ++i) {
      if (!is_image(instruction.outputs[i])) return std::nullopt;
      if (layout(instruction.outputs[i]).sizes != sizes) return std::nullopt;
      images.outputs.push_back(i);
    }
    for (size_t i = 0; i < instruction.inputs.size(); ++i) {
      const uint32_t slot = instruction.inputs[i];
      if (is_image(slot) && layout(slot).sizes == sizes) images.inputs.push_back(i);
    }
    return images;
  }

  /// Whether a tensor of a kernel with a rank may lie otherwise: it is read and written at each
  /// point, by a map, or not at all (an operand of which only the shape counts).
  static bool lies_as_it_likes(const kernels::Kernel& kernel, size_t tensor) {
    const std::vector<int>& axes = kernel.axes()[tensor];
    return kernel.map(tensor) != nullptr || axes == std::vector<int>{0, 1, 2, 3} ||
           axes == std::vector<int>{-1, -1, -1, -1};
  }

  /// The images of a kernel with reductions or maps: it asks how its tensors' own dimensions lie in
  /// its space, not how they lie in memory.
  std::optional<Images> images_in_space(const Instruction& instruction) const {
    if (instruction.kernel->rank() != 4) return std::nullopt;
    Images images;
    size_t tensor = 0;
    const auto is_one = [&](uint32_t slot) {
      return lies_as_it_likes(*instruction.kernel, tensor++) && is_image(slot);
    };
    for (size_t i = 0; i < instruction.inputs.size(); ++i) {
      const bool is_tensor = instruction.node->inputs[i]->type.is_tensor();
      if (is_tensor && is_one(instruction.inputs[i])) images.inputs.push_back(i);
    }
    for (size_t i = 0; i < instruction.outputs.size(); ++i)
      if (is_one(instruction.outputs[i])) images.outputs.push_back(i);
    if (images.inputs.empty()) return std::nullopt;
    return images;
  }

  std::optional<Images> images_of(size_t position) const {
    const Instruction& instruction = code_.body.instructions[position];
    if (position >= code_.tail || instruction.outputs.empty()) return std::nullopt;
    if (instruction.action != Action::operation && instruction.action != Action::kernel) {
      return std::nullopt;
    }
    std::optional<Images> images = fixed_images(*instruction.node);
    if (!images) return elementwise_images(instruction);
    const auto is_none = [&](size_t i) { return instruction.node->outputs[i]->type.is_none(); };
    std::erase_if(images->outputs, is_none);
    const auto fits = [&](uint32_t slot) { return is_image(slot); };
    for (size_t i : images->inputs) {
      if (!fits(instruction.inputs[i])) return std::nullopt;
    }
    for (size_t i : images->outputs) {
      if (!fits(instruction.outputs[i])) return std::nullopt;
    }
    return images;
  }

  /// Fills `images_` and `chosen_`; false if no convolution asks for the layout.
  bool find_images() {
    const std::vector<Instruction>& all = code_.body.instructions;
    images_.resize(all.size());
    bool convolution = false;
    for (size_t i = 0; i < all.size(); ++i) {
      images_[i] = images_of(i);
      if (!images_[i] || !images_[i]->anchor) continue;
      convolution |=
          all[i].node->op == &op::convolution && layout(all[i].outputs[0]).dtype == image_dtype;
      choose_slots(i);
    }
    if (!convolution) return false;
    for (bool changed = true; std::exchange(changed, false);) {
      for (size_t i = 0; i < all.size(); ++i) {
        if (!images_[i] || images_[i]->anchor || !touches_chosen(i)) continue;
        const size_t before = chosen_.size();
        choose_slots(i);
        changed |= chosen_.size() != before;
      }
    }
    for (size_t i = 0; i < all.size(); ++i) {
      if (images_[i] && !touches_chosen(i)) images_[i].reset();
    }
    return true;
  }

  template <class Function>
  void for_each_image(size_t position, const Function& function) const {
    const Instruction& instruction = code_.body.instructions[position];
    for (size_t i : images_[position]->inputs) function(instruction.inputs[i]);
    for (size_t i : images_[position]->outputs) function(instruction.outputs[i]);
  }

  void choose_slots(size_t position) {
    for_each_image(position, [&](uint32_t slot) { chosen_.insert(slot); });
  }

  bool touches_chosen(size_t position) const {
    bool found = false;
    for_each_image(position, [&](uint32_t slot) { found |= chosen_.contains(slot); });
    return found;
  }

  /// Other layouts than eager's usual one were somebody's choice, and stay. What is only read may
  /// lie as it likes: it is copied.
  bool makes_contiguous() const {
    for (size_t i = 0; i < images_.size(); ++i) {
      if (!images_[i]) continue;
      const std::vector<uint32_t>& outputs = code_.body.instructions[i].outputs;
      const auto contiguous = [&](size_t k) { return layout(outputs[k]).is_contiguous(); };
      if (!std::ranges::all_of(images_[i]->outputs, contiguous)) return false;
    }
    return true;
  }

  /// Whether the copies, of images and of filters, are few beside the images that convolutions read
  /// and write.
  bool pays() const {
    std::set<uint32_t> convolved, made, copied;
    for (size_t i = 0; i < images_.size(); ++i) {
      if (!images_[i]) continue;
      const Instruction& instruction = code_.body.instructions[i];
      const bool convolution = instruction.node->op == &op::convolution ||
                               instruction.node->op == &op::convolution_backward;
      for (size_t k : images_[i]->inputs) {
        if (!made.contains(instruction.inputs[k])) copied.insert(instruction.inputs[k]);
      }
      for (size_t k : images_[i]->outputs) made.insert(instruction.outputs[k]);
      if (convolution) for_each_image(i, [&](uint32_t slot) { convolved.insert(slot); });
    }
    for (uint32_t slot : made) {
      if (seen_plain_.contains(slot)) copied.insert(slot);
    }
    const auto size = [&](const std::set<uint32_t>& slots) {
      int64_t elements = 0;
      for (uint32_t slot : slots) elements += layout(slot).element_count();
      return elements;
    };
    return size(copied) * policy::kLeastLayoutGain <= size(convolved);
  }

  /// Slots that something else sees in eager's layout.
  void find_plain_uses() {
    const auto see = [&](uint32_t slot) {
      if (chosen_.contains(slot)) seen_plain_.insert(slot);
    };
    for (size_t i = 0; i < code_.body.instructions.size(); ++i) {
      const Instruction& instruction = code_.body.instructions[i];
      if (!instruction.blocks.empty()) {
        std::for_each(instruction.used.begin(), instruction.used.end(), see);
        continue;
      }
      for (size_t k = 0; k < instruction.inputs.size(); ++k) {
        const bool image =
            images_[i] && std::count(images_[i]->inputs.begin(), images_[i]->inputs.end(), k) > 0;
        if (!image) see(instruction.inputs[k]);
      }
    }
    std::for_each(code_.body.results.begin(), code_.body.results.end(), see);
    for (const Write& write : code_.commits) see(write.slot);
    for (const Write& write : code_.rebinds) see(write.slot);
  }

  // --- the new instructions

  /// A new slot for the same elements channels last.
  uint32_t channels_last_slot(uint32_t slot) {
    const auto made = static_cast<uint32_t>(frame_.slots.size());
    frame_.slots.emplace_back();
    Learned& learned = frame_.learned.of(made);
    learned.origin = Learned::Origin::computed;
    learned.root = made;
    learned.layout = layout(slot);
    learned.layout.strides = channels_last_strides(learned.layout.sizes);
    return made;
  }

  /// The one slot that holds the same elements channels last.
  uint32_t relaid(uint32_t slot) {
    const auto found = relaid_.find(slot);
    return found != relaid_.end() ? found->second
                                  : relaid_.emplace(slot, channels_last_slot(slot)).first->second;
  }

  void add_copy(const Node* node, uint32_t from, uint32_t to) {
    Instruction copy;
    copy.action = Action::relayout;
    copy.node = node;
    copy.inputs = {from};
    copy.outputs = {to};
    copy.used = copy.inputs;
    result_.instructions.push_back(std::move(copy));
  }

  void add(size_t position) {
    Instruction instruction = code_.body.instructions[position];
    if (!images_[position]) {
      result_.instructions.push_back(std::move(instruction));
      return;
    }
    for (size_t i : images_[position]->inputs) {
      const uint32_t slot = instruction.inputs[i];
      if (made_.insert(slot).second) add_copy(instruction.node, slot, relaid(slot));
      instruction.inputs[i] = relaid(slot);
    }
    instruction.is_relaid = true;
    std::vector<uint32_t> plain;
    for (size_t i : images_[position]->outputs) {
      const uint32_t slot = instruction.outputs[i];
      made_.insert(slot);
      instruction.outputs[i] = relaid(slot);
      if (seen_plain_.contains(slot)) {
        plain.push_back(slot);
      } else {
        frame_.learned.of(slot) = {};  // nobody sees it: it does not exist
        gone_.insert(slot);
      }
    }
    const Node* node = instruction.node;
    result_.instructions.push_back(std::move(instruction));
    for (uint32_t slot : plain) add_copy(node, relaid(slot), slot);
  }

  const Code& code_;
  Frame& frame_;
  PlannedCode result_;
  std::vector<std::optional<Images>> images_;  // by instruction
  std::set<uint32_t> chosen_;                  // slots that are wanted channels last
  std::unordered_set<uint32_t> seen_plain_;
  std::unordered_map<uint32_t, uint32_t> relaid_;
  std::unordered_set<uint32_t> gone_;  // slots of which only the relaid one is left
  std::unordered_set<uint32_t> made_;  // slots whose relaid one has the elements
};

}  // namespace

PlannedCode choose_layouts(const Code& code, Frame& frame) { return Chooser(code, frame).choose(); }

}  // namespace janus::execute
