// Chooses channels-last memory for the images of convolutional programs.
//
// Convolutions, batch norms and poolings work faster where the channels of a pixel are neighbours,
// and eager's results, which lie in planes, need only be laid out like that where somebody sees
// them. After the first run has shown each slot's layout, the images between such operators get
// slots of their own with the other layout, and copies are put in where the two meet.
#pragma once

#include <vector>

#include "execute/code/code.h"
#include "execute/frame/frame.h"

namespace janus::execute {

/// The instructions of a plan, and how many of them come before the first that may write to cells.
struct PlannedCode {
  std::vector<Instruction> instructions;
  size_t tail = 0;
};

/// The code's instructions with images in channels-last memory if that pays, else as they are. New
/// slots, with what is to be known of them, are added to the frame. Copies between the layouts are
/// instructions with Action::relayout.
PlannedCode choose_layouts(const Code& code, Frame& frame);

}  // namespace janus::execute
