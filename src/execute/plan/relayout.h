// Layout assignment: chooses channels-last memory for the images of convolutional programs.
//
// Convolutions, batch norms and poolings work faster where the channels of a pixel are neighbours.
// Eager's results lie in planes, which matters only where somebody sees them. After the first run
// has shown each slot's layout, the images between such operators get slots of their own with the
// other layout, and copies are put in where the two meet.
#pragma once

#include "execute/code/code.h"
#include "execute/frame/frame.h"
#include "execute/plan/planned_code.h"

namespace janus::execute {

/// The code's instructions with images in channels-last memory if that pays, else as they are. New
/// slots, with what is to be known of them, are added to the frame. Copies between the layouts are
/// instructions with Action::relayout.
PlannedCode choose_layouts(const Code& code, Frame& frame);

}  // namespace janus::execute
