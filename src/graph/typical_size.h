// See graph/cost.h.
#pragma once

#include "graph/cost.h"
