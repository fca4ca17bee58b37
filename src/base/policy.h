// The numbers that steer speculation, compilation and execution: limits, thresholds, shares of
// time.
//
// A policy number changes when something is done, or how fast, never what a program computes. (How
// sums are grouped follows from some of them; a change may move last bits.) Each has its unit, what
// it bounds, and where it was measured. "Chosen, not measured": somebody took a round number that
// the tests and benchmarks do not contradict. Whoever measures one writes here what came out.
// Numbers that define a meaning or an interface stay where they are used.
#pragma once

#include <cstddef>
#include <cstdint>

namespace janus::policy {

// ---- Which calls are profiled, compiled and left to Python (speculate/dispatch.cpp, bind/) ------

/// Runs of a function that are profiled before a graph is made.
inline constexpr int kProfiledRuns = 3;  // chosen, not measured
/// Profiled runs of a segment of a cut function: the whole was profiled before, so one more run
/// tells what the variables are where the segment begins.
inline constexpr int kProfiledRunsOfSegment = 1;  // chosen, not measured
/// Work (in views, see graph/cost.h) of a graph that is worth its entry.
inline constexpr int kLeastWork = 1;  // chosen, not measured
/// The same of a part of a function or script: three operators.
inline constexpr int kLeastWorkOfPart = 9;  // chosen, not measured
/// Graphs of one function in its cache at once.
inline constexpr size_t kMostEntries = 16;  // chosen, not measured
/// Graphs ever made of one function.
inline constexpr uint64_t kMostGenerated = 32;  // chosen, not measured
/// Reasons that a function's report remembers.
inline constexpr size_t kMostReasons = 32;  // chosen, not measured
/// Refusals after which a function stays in Python.
inline constexpr int kMostRefusals = 4;  // chosen, not measured
/// Refusals of the graph for one combination of outcomes of tests.
inline constexpr int kMostRefusalsOfOutcome = 2;  // chosen, not measured
/// Graphs for different values behind one test of which the profile has no fact.
inline constexpr int kMostGraphsOfNumberedOutcome = 4;  // chosen, not measured
/// Refusals at one statement after which the function is cut there.
inline constexpr int kRefusalsBeforeCut = 2;  // chosen, not measured
/// Different values of a number that may each have a graph before the number becomes an input.
inline constexpr size_t kFirstValues = 4;  // chosen, not measured
/// Iterations of an unrolled loop after which it is forecast whether the graph will be finished in
/// time. The first one is not counted in: it often does more.
inline constexpr int64_t kIterationsBeforeForecast = 4;  // chosen, not measured
/// Milliseconds of the front end on code whose graph is not paid yet.
inline constexpr double kMillisecondsOfProbe = 30;  // chosen, not measured
/// Calls that are compared with the first graph while its kernels compile.
inline constexpr int kCallsLookedAhead = 4;  // chosen, not measured
/// Graphs that differ in the value of a number only.
inline constexpr size_t kMostGraphsOfNumbers = 8;  // chosen, not measured
/// Bailouts of one kind that are profiled before a new graph is made.
inline constexpr int kProfiledAborts = 1;  // chosen, not measured
/// Times that a function may outgrow its profile; a new profile and a new graph each count.
inline constexpr int kMostTimesOutgrown = 16;  // chosen, not measured
/// Calls between two attempts to make a better graph, at most.
inline constexpr int kLongestPause = 63;  // chosen, not measured
/// Calls after which a graph is tried again that failed for want of memory.
inline constexpr int kCallsWithoutMemory = 100;  // chosen, not measured
/// Milliseconds of processor time that further graphs of one function may take in any case.
inline constexpr double kFreeGeneration = 600;  // chosen, not measured
/// Beyond that: their share of the time since the function was first met.
inline constexpr double kShareOfGeneration = 0.2;  // chosen, not measured
/// Share of a run in Python that other graphs within it may take before a graph of the whole is
/// not worth making.
inline constexpr double kMostShareInGraphs = 0.9;  // chosen, not measured
/// The same where many graphs ran within it, as in a loop that would be unrolled.
inline constexpr double kMostShareInManyGraphs = 0.5;  // chosen, not measured
/// Runs of graphs within one run that count as many.
inline constexpr uint64_t kManyGraphs = 8;  // chosen, not measured
/// Runs of a cut region between two checks whether any of its parts has a graph.
inline constexpr uint32_t kRunsBetweenCutChecks = 64;  // chosen, not measured

// ---- Lazy execution (lazy/) ---------------------------------------------------------------------

/// Calls of operators that may be pending at once.
inline constexpr size_t kMostPendingCalls = 8192;  // chosen, not measured
/// Bytes of their results.
inline constexpr size_t kMostPendingBytes = size_t{1} << 30;  // chosen, not measured
/// Seconds of a call below which co-execution is not tried.
inline constexpr double kShortestCoExecutedCall = 2e-4;  // chosen, not measured
/// Operators of a call below which it is not worth it.
inline constexpr uint64_t kFewestNotedCalls = 8;  // chosen, not measured
/// Calls that run lazily before most of their operators must run in graphs.
inline constexpr int kMostWarmingCalls = 24;  // chosen, not measured
/// Iterations of a loop that run in one way before the other has its turn: work stays pending
/// between them, and only the last one ends it.
inline constexpr int kIterationsOfTurn = 4;  // chosen, not measured
/// Lazy calls or iterations up to which one that waits for kernels of a graph says nothing.
inline constexpr int kMostPatientCalls = 1000;  // chosen, not measured
/// Calls or turns before what is too short, or calls few operators, is looked at again.
inline constexpr uint64_t kLeastRest = 100;  // chosen, not measured
/// New structures of segments until those that came once are forgotten.
inline constexpr size_t kMostStructures = 1024;  // chosen, not measured
/// Pending calls below which a repeated call does not end a cycle.
inline constexpr size_t kFewestCallsOfCycle = 64;  // chosen, not measured
/// Looks, or ends of cycles, that leave work in one way before the other way has its turn: ahead on
/// the runner's thread, or later.
inline constexpr int64_t kLooksOfStretch = 8;  // chosen, not measured
/// Stretches over which it is found how much could overlap.
inline constexpr int kStretchesOfLook = 3;  // chosen, not measured
/// Stretches with anything new up to which a choice waits.
inline constexpr int kMostStretches = 24;  // chosen, not measured
/// Share of the time that must be able to overlap.
inline constexpr double kLeastOverlap = 0.1;  // chosen, not measured
/// Looks that leave work from a choice until it is looked at again.
inline constexpr int64_t kLeastLooksOfChoice = 1024;  // chosen, not measured
/// Seconds that compiling a segment takes for each of its calls, about.
inline constexpr double kSecondsOfGraphPerCall = 1e-4;  // chosen, not measured
/// Bytes of a storage below which a memory limit leaves it where it is.
inline constexpr size_t kSmallestMovedStorage = size_t{1} << 16;  // chosen, not measured
/// Bytes of an operand in memory that others may change, which a call that is noted copies.
inline constexpr size_t kLargestCopiedOperand = size_t{4} << 20;  // chosen, not measured

/// Times that segments find a storage until it is taken for one that the program keeps.
inline constexpr int kTimesFoundToLast = 3;  // chosen, not measured
/// Calls of a segment below which a family's graph is not worth it.
inline constexpr size_t kFewestCallsOfFamily = 4;  // chosen, not measured
/// Structures of a family that are merged into its first graph.
inline constexpr size_t kStructuresOfFamily = 4;  // chosen, not measured
/// Segments kept for the graphs of a family.
inline constexpr size_t kMostTracesOfFamily = 64;  // chosen, not measured
/// A new graph is made when one in so many of its segments is new.
inline constexpr size_t kTracesPerNews = 8;  // chosen, not measured
/// Graphs ever made of one family.
inline constexpr int kMostGraphsOfFamily = 16;  // chosen, not measured
/// Segments that a family's last graph may miss before it has to fit half of them.
inline constexpr int kMostMissesOfFamily = 32;  // chosen, not measured
/// Runs of a structure that its family's graph serves before it gets a graph of its own.
inline constexpr int kRunsInFamily = 16;  // chosen, not measured

// ---- Entry points found by watching (bind/entry_points.cpp)
// --------------------------------------

/// Milliseconds of the program before its calls are watched for the first time.
inline constexpr double kBeforeWatching = 300;  // chosen, not measured
/// Milliseconds between two looks at whether a window of watching is due.
inline constexpr int kBetweenLooks = 25;  // chosen, not measured
/// Share of the running time that watching may cost.
inline constexpr double kShareOfWatching = 0.01;  // chosen, not measured
/// Milliseconds that one event of a window costs the program: 0.3 to 0.6 us on a Zen 3.
inline constexpr double kCostOfWatchedEvent = 0.0005;
/// Milliseconds that a window has to be worth before it is opened.
inline constexpr double kLeastWindow = 3;  // chosen, not measured
/// Events (calls and returns) after which a window closes.
inline constexpr int64_t kMostWatchedEvents = 30000;  // chosen, not measured
/// Milliseconds after which a window closes.
inline constexpr double kLongestWindow = 2000;  // chosen, not measured
/// Calls that were seen whole before a function is taken for an entry point.
inline constexpr uint64_t kCallsOfEntryPoint = 3;  // chosen, not measured
/// Calls of a function by one that has ended, but was not seen that often yet: a step has fewer
/// layers of one kind, an epoch has more steps.
inline constexpr uint64_t kCallsWithinEnded = 50;  // chosen, not measured
/// Share of the watched time that a function takes to be worth it.
inline constexpr double kShareOfEntryPoint = 0.05;  // chosen, not measured
/// Milliseconds that functions without graphs may have taken in any case before further entry
/// points are tried.
inline constexpr double kFreeFinding = 500;  // chosen, not measured
/// Beyond that: their share of the running time.
inline constexpr double kShareOfFinding = 0.01;  // chosen, not measured
/// Share of a profiled run that profiling adds to it.
inline constexpr double kShareOfHooks = 0.2;  // chosen, not measured
/// Windows without a new entry point after which watching becomes rarer, twice as rare each time.
inline constexpr int kWindowsInVain = 8;  // chosen, not measured

// ---- Penalty points for misses and bailouts; hits give points back (speculate/dispatch.cpp) -----

/// Points at which a function stays in Python. A hit takes one away.
inline constexpr int kMostPenalty = 120;  // chosen, not measured
/// Points of a call that no graph fits.
inline constexpr int kPenaltyOfMiss = 1;  // chosen, not measured
/// Points of a miss when no better graph will come. More than one such miss in five calls costs
/// more than the hits save, by the times of entering graphs when it was set.
inline constexpr int kPenaltyOfLastingMiss = 4;
/// Points of a run that bailed out.
inline constexpr int kPenaltyOfAbort = 3;  // chosen, not measured
/// Points of a bailout by a graph that never ran to its end: its operator may fail in every run.
/// With fewer points such a graph cost forty runs (found by a meta convolution with infinite
/// weights).
inline constexpr int kPenaltyOfUselessGraph = 15;
/// Points of making graphs anew after all of them died with the objects that they were made for.
inline constexpr int kPenaltyOfGoneGraphs = 30;  // chosen, not measured

// ---- Measuring graphs against Python by turns (speculate/ab_measurement, base/ab_test) ----------

/// Runs without news (new graph, miss) before the measurement begins.
inline constexpr int kQuietRuns = 16;  // chosen, not measured
/// Times as fast as the profiled runs that graphs must be to be kept without measurement.
inline constexpr double kFarAhead = 1.5;  // chosen, not measured
/// The same for short runs, which hooks slow down more.
inline constexpr double kFarAheadOfShortRuns = 4;  // chosen, not measured
/// Milliseconds below which a run is short.
inline constexpr double kShortRun = 1;  // chosen, not measured
/// Requests of other functions after which a measurement that does not go on loses its turn; only
/// one runs at a time.
inline constexpr int kMostPatience = 200;  // chosen, not measured
/// Milliseconds that the slower runs of a measurement may cost in any case.
inline constexpr double kFreeMeasurement = 100;  // chosen, not measured
/// Beyond that: their share of the time since the measurement began.
inline constexpr double kShareOfMeasurement = 0.02;  // chosen, not measured
/// Parts of a result among which a tensor with a gradient is looked for.
inline constexpr int kMostResultParts = 64;  // chosen, not measured
/// Runs of each variant after which one is kept that won all of them.
inline constexpr size_t kLeastRuns = 3;  // chosen, not measured
/// Runs of each variant before ranks decide in favour of the new one.
inline constexpr size_t kLeastRankedRuns = 6;  // chosen, not measured
/// Runs of each variant before ranks decide against the new one.
inline constexpr size_t kLeastRunsToGiveUp = 8;  // chosen, not measured
/// Runs of each variant after which the new one stays.
inline constexpr size_t kMostRuns = 40;  // chosen, not measured
/// Standard deviations of the rank sum at which the new variant counts as faster. Computed: see
/// kClearlySlower.
inline constexpr double kClearlyFaster = -1;
/// Standard deviations of the rank sum at which the new variant counts as slower. Computed:
/// checked after each pair of runs, chance gives up one of a hundred variants that are equal.
inline constexpr double kClearlySlower = 3;
/// Ratio of the medians up to which both variants count as equal.
inline constexpr double kAsGood = 1.03;  // chosen, not measured

// ---- What profiles and guards keep (speculate/) -------------------------------------------------

/// Elements of a tuple whose value the profile keeps.
inline constexpr int64_t kLongestKeptTuple = 16;  // chosen, not measured
/// Characters of a string whose value the profile keeps; longer ones are data, not configuration.
inline constexpr int64_t kLongestKeptText = 4096;  // chosen, not measured
/// Classes that the profile counts at one place.
inline constexpr size_t kMostClassesSeen = 8;  // chosen, not measured
/// Calls whose tensor sizes are kept for comparison with other tensors.
inline constexpr size_t kMostCallsCompared = 8;  // chosen, not measured
/// Different values that are counted of an observed number.
inline constexpr size_t kMostValuesCounted = 8;  // chosen, not measured
/// Objects that are searched for one with a visible finalizer.
inline constexpr size_t kMostObjectsForFinalizers = 64;  // chosen, not measured
/// Changes of an inline-cached step before its path is walked at each call.
inline constexpr uint8_t kMostChangesOfStep = 2;  // chosen, not measured
/// Times that an inline cache is filled before it is checked whether it pays.
inline constexpr uint64_t kFillsBeforeCheck = 64;  // chosen, not measured
/// Cached words ahead of the one compared that are prefetched.
inline constexpr size_t kPrefetchAhead = 12;  // chosen, not measured
/// Python frames set aside for callers and callees around a recursion.
inline constexpr int64_t kFramesElsewhere = 100;  // chosen, not measured

// ---- Limits of the front end (frontend/) --------------------------------------------------------

/// Iterations of a loop that is unrolled (`options.unroll_limit`).
inline constexpr int64_t kMostRounds = 5000;  // chosen, not measured
/// Nested calls that are inlined (`options.inline_limit`).
inline constexpr int64_t kDeepestInlining = 200;  // chosen, not measured
/// Operators of one graph (`options.operation_limit`).
inline constexpr int64_t kMostOperations = 50000;  // chosen, not measured
/// Seconds of processor time for one graph (`options.generation_limit`).
inline constexpr int64_t kMostGenerationSeconds = 10;  // chosen, not measured
/// Restarts of the front end for one graph, each with weaker assumptions.
inline constexpr size_t kMostGenerationAttempts = 12;  // chosen, not measured
/// Values that these restarts may turn into inputs.
inline constexpr size_t kMostGeneralised = 16;  // chosen, not measured
/// Attempts to reach a fixpoint of the state that a loop carries.
inline constexpr int kMostLoopAttempts = 12;  // chosen, not measured
/// Passes over a recursive function until the form of its result is stable.
inline constexpr int kMostBodyPasses = 8;  // chosen, not measured
/// Branches of one graph that have both sides.
inline constexpr size_t kMostForks = 400;  // chosen, not measured
/// Such branches inside each other.
inline constexpr size_t kDeepestForks = 40;  // chosen, not measured
/// Iterations that are unrolled with a guard on each test; more become a loop in the graph.
inline constexpr int64_t kMostGuardedTrips = 64;  // chosen, not measured
/// Iterations whose test is known that are unrolled beyond those that any run had.
inline constexpr int64_t kMostUnseenTrips = 64;  // chosen, not measured
/// Time steps of a recurrent layer that are unrolled. Measured only in that oneDNN's LSTM is
/// faster than a loop of the graph (make bench-recurrent); the number is chosen.
inline constexpr int64_t kMostUnrolledLayerSteps = 64;
/// Recursive functions of one graph.
inline constexpr size_t kMostGraphFunctions = 8;  // chosen, not measured
/// Outermost activations of a recursion that are interpreted in place.
inline constexpr size_t kMostFirstActivations = 2;  // chosen, not measured
/// Activations in which a test has one outcome before only the run decides it.
inline constexpr size_t kActivationsFollowed = 3;  // chosen, not measured
/// Objects that are searched for what the graph writes.
inline constexpr size_t kMostObjectsSearched = 3000;  // chosen, not measured
/// Elements of an input list whose form is examined.
inline constexpr int64_t kMostElementsExamined = 1000;  // chosen, not measured
/// Numbers of a list that are each an input; a longer list is read in the run.
inline constexpr int64_t kMostNumbersAsInputs = 64;  // chosen, not measured
/// Elements of a list of which each may have a graph; of a longer list the run chooses one.
inline constexpr int64_t kMostElementsWithGraphs = 8;  // chosen, not measured
/// Elements of a slice of a list with bounds of the run.
inline constexpr size_t kLongestVaryingSlice = 256;  // chosen, not measured
/// Numbers among which the run chooses by an index.
inline constexpr size_t kMostChosen = 64;  // chosen, not measured
/// Elements of `tolist()` of a tensor that the graph makes one by one.
inline constexpr int64_t kMostListed = 1024;  // chosen, not measured
/// Elements of a set that existed before the call; all are assumed.
inline constexpr int64_t kMostSetElements = 64;  // chosen, not measured
/// Parts of the tuples in an input list of varying length.
inline constexpr int64_t kMostTupleParts = 8;  // chosen, not measured
/// Written objects from which on one assumption says that all differ, instead of one for each
/// pair.
inline constexpr size_t kLeastDistinct = 4;  // chosen, not measured
/// Scripted functions whose comparison with their source is remembered.
inline constexpr size_t kMostScriptedGraphs = 16;  // chosen, not measured
/// Operator calls whose overload and result are remembered.
inline constexpr size_t kMostResolvedCalls = 4096;  // chosen, not measured

// ---- Search for source text (syntax/) -----------------------------------------------------------

/// Ends of a definition's text that are tried where the code does not tell its last line.
inline constexpr int kMostExtensionsOfDefinition = 3;  // chosen, not measured
/// Lines of one statement at the prompt.
inline constexpr size_t kMostPromptLines = 200;  // chosen, not measured
/// Remembered statements that begin like the one searched.
inline constexpr size_t kMostPromptStatements = 40;  // chosen, not measured
/// Of these, those in which repeated lines are considered.
inline constexpr size_t kMostPromptDoubled = 6;  // chosen, not measured
/// Lines of a statement behind the last line of its code.
inline constexpr size_t kMostPromptExtensions = 10;  // chosen, not measured

// ---- Limits of graphs and of their text (graph/, ops/) ------------------------------------------

/// Terms of a symbolic size; a larger one is no longer simplified.
inline constexpr size_t kMostTerms = 256;  // chosen, not measured
/// Factors of a term of a symbolic size.
inline constexpr size_t kMostFactors = 64;  // chosen, not measured
/// Nested blocks that the parser accepts.
inline constexpr int kDeepestBlock = 50;  // chosen, not measured
/// Nested lists that the parser accepts in a constant.
inline constexpr int kDeepestConstant = 100;  // chosen, not measured
/// Tensors of one list among the operands of an opaque operator.
inline constexpr size_t kLongestOperandList = 1 << 20;  // chosen, not measured
/// Iterations that the reference interpreter runs.
inline constexpr int64_t kLongestReferenceLoop = 1'000'000;  // chosen, not measured
/// Nested calls that the reference interpreter runs.
inline constexpr int64_t kDeepestReferenceCall = 1'000;  // chosen, not measured

// ---- What operators lower to kernels (ops/) -----------------------------------------------------

/// Tensors that a kernel concatenates: it reads each of them at each place.
inline constexpr size_t kMostConcatenatedInKernel = 3;  // chosen, not measured
/// Elements of a pooling window that a kernel reads one by one.
inline constexpr int64_t kMostWindowElements = 32;  // chosen, not measured
/// Bytes of an input up to which kernels compute the gradients of a layer norm, in two passes;
/// ATen reads once.
inline constexpr int64_t kLayerNormCachedBytes = int64_t{1} << 20;  // chosen, not measured
/// Rows that give a kernel with a reduction enough to share out.
inline constexpr int64_t kFewReducedRows = 8;  // chosen, not measured
/// Elements of a reduction from which on so few rows are too few.
inline constexpr int64_t kLargeReducedSpace = int64_t{1} << 17;  // chosen, not measured

// ---- Passes (passes/) ---------------------------------------------------------------------------

/// Operators of one kernel: compile time grows faster than what further fusing saves.
inline constexpr size_t kMostFusedNodes = 48;  // chosen, not measured
/// Operands and results of one kernel.
inline constexpr size_t kMostFusedTensors = 28;  // chosen, not measured
/// Elements up to which ATen's call costs more than a lone operator's work, so that a kernel pays.
/// Measured on A3C's update (docs/architecture.md).
inline constexpr int64_t kFewElements = 16 << 10;
/// Numbers of a stack whose norm is a sum in a kernel.
inline constexpr size_t kMostNumbersSummed = 16;  // chosen, not measured
/// Loops side by side that make deferring their iterations pay.
inline constexpr size_t kLeastLoopsSideBySide = 4;  // chosen, not measured
/// Rows of a product that waits for the same matrix in other iterations.
inline constexpr int64_t kMostRowsDeferred = 8;  // chosen, not measured
/// Elements of a matrix that is worth waiting for.
inline constexpr double kLeastElementsDeferred = 4096;  // chosen, not measured
/// Rows of a product for which prepacking its weight pays. Measured as a whole: 4 to 9 % of a step
/// of torch's recurrent layers (make bench-recurrent).
inline constexpr int64_t kMostRowsOfPacked = 64;
/// Rows and columns of a weight that is prepacked; smaller ones are read as easily either way.
inline constexpr int64_t kLeastSideOfPacked = 16;  // chosen, not measured
/// Products with one weight that outweigh the copy.
inline constexpr int64_t kLeastProductsOfPacked = 4;  // chosen, not measured
/// Iterations that a loop is taken to have where products in it are counted.
inline constexpr int64_t kTypicalIterations = 8;  // chosen, not measured
/// Parts of an operator's operand whose gradients are tracked one by one.
inline constexpr size_t kMostPartsKnown = 128;  // chosen, not measured
/// Iterations over which reachability of gradients is followed one by one.
inline constexpr int64_t kMostIterationsFollowed = 64;  // chosen, not measured
/// Times that the results of lowering are lowered again.
inline constexpr int kDeepestDecomposition = 32;  // chosen, not measured

// ---- Code of kernels (kernels/) -----------------------------------------------------------------

/// Versions of one kernel for different strides.
inline constexpr int kMostKernelVersions = 6;  // chosen, not measured
/// Vectors side by side in a long reduction: they keep the adders busy and read columns in longer
/// pieces. Measured in and beyond the cache, on rows of 1024.
inline constexpr int kReductionVectors = 4;
/// Elements of a row that is long enough for them.
inline constexpr int64_t kLongRow = 256;  // chosen, not measured
/// Instructions for an element that alone keep the processor busy; beyond them fewer vectors go
/// side by side.
inline constexpr int64_t kLittleWork = 16;  // chosen, not measured
/// Vectors side by side in sums along a row with more work. Measured: log_softmax of rows of 1024
/// in the cache 6.7 to 5.4 ns for 16 elements, layer norm 4.9 to 4.1.
inline constexpr int kCostlyReductionVectors = 2;
/// Instructions for an element that outweigh a store and a load in the next pass over the row.
inline constexpr int kKeptCost = 8;  // chosen, not measured
/// Values of a row that are kept from pass to pass.
inline constexpr size_t kMostKept = 2;  // chosen, not measured
/// Bytes on the stack for what is kept of a row.
inline constexpr int64_t kMostKeptBytes = 64 << 10;  // chosen, not measured
/// Bytes of a tensor that is prefetched: it lies beyond the processor's own cache. Measured on 64
/// MiB, one thread: softmax 19.7 to 14.7 ms, tanh 15.2 to 12.3; the limit itself is chosen.
inline constexpr int64_t kFarBytes = 8 << 20;
/// Bytes of a row after which prefetching beyond its end does no harm.
inline constexpr int64_t kLongRowBytes = 32 << 10;  // chosen, not measured
/// Bytes of a result that is stored past the cache. Measured, with a pass over the result behind
/// it: a copy of 64 MiB 13.2 to 11.7 ms, one of 16 MiB 2.6 to 2.8.
inline constexpr int64_t kPastCacheBytes = 32 << 20;
/// Bytes ahead that are prefetched: a page. Measured with kFarBytes.
inline constexpr int64_t kBytesAhead = 4 << 10;
/// Bytes ahead at most, for rows that are passed over several times: two rows fit the cache.
inline constexpr int64_t kMostBytesAhead = 256 << 10;  // chosen, not measured
/// Rows ahead that are prefetched down columns. Measured with kFarBytes.
inline constexpr int64_t kRowsAhead = 8;
/// Elements of a space that is worth a multi-pass reduction.
inline constexpr int64_t kManyPoints = 1 << 16;  // chosen, not measured
/// Elements of a group of partial sums, at least.
inline constexpr int64_t kGroupPoints = 1 << 15;  // chosen, not measured
/// Groups of partial sums.
inline constexpr int64_t kMostGroups = 16;  // chosen, not measured
/// Rows of a group, at least: the partial sums are then little beside what is summed.
inline constexpr int64_t kGroupLength = 256;  // chosen, not measured
/// Bytes of a column that stay in the cache from pass to pass.
inline constexpr int64_t kCachedColumnBytes = 128 << 10;  // chosen, not measured
/// Bytes of a block that is walked by columns: one first-level cache.
inline constexpr int64_t kBlockBytes = 32 << 10;  // chosen, not measured
/// Columns whose sums lie in the first-level cache beside the block.
inline constexpr int64_t kPieceColumns = 1024;  // chosen, not measured
/// Rows of such a block, at least. Rows that lie pages apart evict each other: with eight, sums of
/// three tensors took 19 ms on a Zen 3 instead of 10.
inline constexpr int64_t kLeastBlock = 2;
/// Elements beyond which walking down a long column costs more than storing partial sums. Measured
/// on the gradient of 400 x 10000 scores: 5.1 to 3 ms on a Sapphire Rapids; the limit is chosen.
inline constexpr int64_t kCachedPoints = 1 << 20;
/// Rows of a column that is long in that sense.
inline constexpr int64_t kLongColumn = 64;  // chosen, not measured
/// Rows that are not shared out among threads.
inline constexpr int64_t kFewSharedRows = 8;  // chosen, not measured
/// Pieces of neighbouring rows that are not shared out.
inline constexpr int64_t kFewSharedPieces = 4;  // chosen, not measured
/// Columns of the right operand of a product that are packed at once. Measured as a whole: twice
/// as fast as the libraries where the matrices fit the cache.
inline constexpr int64_t kPanelColumns = 512;
/// Elements of the right operand that the cache holds beside the rest. Measured with
/// kPanelColumns.
inline constexpr int64_t kPanelElements = 1 << 16;
/// Rows of the right operand that are packed at once. Measured with kPanelColumns.
inline constexpr int64_t kPanelInner = 512;
/// Tiles beyond which a packed copy of the right operand pays.
inline constexpr int64_t kFewTiles = 4;  // chosen, not measured

// ---- Threads (kernels/sharing, base/) -----------------------------------------------------------

/// Instructions for single elements below which work is never shared out.
inline constexpr int64_t kLeastWorkPerThread = 1 << 15;  // chosen, not measured
/// Times the cost of sharing out that each thread is given at least, so that two threads are
/// clearly faster than one.
inline constexpr double kSharingMargin = 1.5;  // chosen, not measured
/// Threads of a team; larger teams are taken to cost as much.
inline constexpr int kMostTeam = 256;  // chosen, not measured
/// Cycles of sharing out where nothing was measured: about 3 µs. Measured: 1 µs where OpenMP's
/// threads spin, 5 µs where they sleep.
inline constexpr int kUsualCycles = 10'000;
/// Cycles below which a measurement is not believed.
inline constexpr int kLeastCycles = 1 << 10;  // chosen, not measured
/// Cycles above which a measurement is not believed.
inline constexpr int kMostCycles = 1 << 17;  // chosen, not measured
/// Cycles of the piece that each thread gets in that measurement: about 10 µs. If sharing out
/// takes as long, the machine is busy.
inline constexpr int64_t kCyclesOfPiece = 1 << 15;  // chosen, not measured
/// Repetitions of that measurement; the median counts.
inline constexpr size_t kSharingRepetitions = 15;  // chosen, not measured
/// Seconds after which it ends in any case.
inline constexpr double kSharingSeconds = 1e-3;  // chosen, not measured
/// Seconds between two repetitions, as between loops of a program: threads begin to sleep.
inline constexpr double kSecondsBetween = 2e-5;  // chosen, not measured
/// Repetitions of timing one piece by itself; the least counts.
inline constexpr int kPieceRepetitions = 5;  // chosen, not measured
/// Spins of a waiting thread before it sleeps: about 10 µs, long enough to bridge two loops and
/// short beside a time slice.
inline constexpr int kSpins = 400;  // chosen, not measured
/// Niceness of the compiling thread: the program comes first, but compiling does not starve.
inline constexpr int kNiceness = 5;  // chosen, not measured
/// Bytes that must be free to start a thread: stack and thread-local data of libraries.
inline constexpr int64_t kBytesOfThread = int64_t{16} << 20;  // chosen, not measured
/// The same for the compiling thread, with its heap.
inline constexpr int64_t kBytesOfCompilingThread = 4 * kBytesOfThread;  // chosen, not measured
/// Pieces of work between two reads of the clock, which takes as long as some of them.
inline constexpr int kPiecesBetweenClockReads = 64;  // chosen, not measured
/// Instructions for single elements in a part of a batch of kernels that one thread takes.
inline constexpr int64_t kWorkOfBatchPart = 1 << 16;  // chosen, not measured
/// Elements to which pieces of the innermost dimension are rounded: they start where a cache line
/// may start.
inline constexpr int64_t kInnerGrain = 64;  // chosen, not measured

// ---- Compiled code on disk (jit/) ---------------------------------------------------------------

/// Bytes of one kept object.
inline constexpr size_t kLargestObjectFile = size_t{16} << 20;  // chosen, not measured
/// Bytes of all kept objects of one kind.
inline constexpr int64_t kMostObjectBytes = int64_t{256} << 20;  // chosen, not measured
/// Cases of one autotuning cache.
inline constexpr size_t kMostTunedCases = 10'000;  // chosen, not measured
/// New files between two checks of the folder's size.
inline constexpr int kFilesBetweenSizeChecks = 64;  // chosen, not measured
/// Bytes that must be free before LLVM is called, which ends the process where memory runs out.
inline constexpr int64_t kCompilerBytes = int64_t{64} << 20;  // chosen, not measured
/// Bytes more for each byte of the kernel's text.
inline constexpr int64_t kCompilerBytesForByte = 1024;  // chosen, not measured

// ---- Execution and its memory (execute/) --------------------------------------------------------

/// Nested calls of a graph's functions where the caller does not say.
inline constexpr int64_t kDeepestCall = 1'000'000;  // chosen, not measured
/// Instructions of all idle instances of a program, one instance for each combination of sizes.
/// Measured on a GRU with 25 to 50 words: 14.6 to 6.2 ms a step against sixteen instances.
inline constexpr size_t kMostIdleInstructions = size_t{1} << 15;
/// Idle instances that are kept in any case.
inline constexpr size_t kLeastIdleInstances = 16;  // chosen, not measured
/// Idle instances at most.
inline constexpr size_t kMostIdleInstances = 256;  // chosen, not measured
/// Bytes of tensors that an idle instance keeps. Measured: 20 batches of sequences in turn held 45
/// MiB instead of 70.
inline constexpr int64_t kMostHeldAtRest = 64 << 10;
/// Instructions of a program that releases Python's lock; releasing costs more than fewer take.
inline constexpr size_t kLeastUnlockedInstructions = 8;  // chosen, not measured
/// Bytes of a tensor in a block that is kept for the next run.
inline constexpr int64_t kLargestKept = 64 << 10;  // chosen, not measured
/// Bytes of a tensor beside its elements, where memory is counted.
inline constexpr int64_t kBytesOfTensor = 256;  // chosen, not measured
/// Kept tensors that are tried before a new one is made: a carried value is read while the next is
/// written, and a third may be on its way.
inline constexpr size_t kTriedTensors = 3;  // chosen, not measured
/// Elements of a tensor that is computed before the no-fail point for a number of the run.
inline constexpr int64_t kMostElementsFirst = 16;  // chosen, not measured
/// Instructions between two products that may run side by side.
inline constexpr size_t kFarthestPartner = 8;  // chosen, not measured
/// Products that run side by side, on as many threads.
inline constexpr size_t kMostBeside = 16;  // chosen, not measured
/// Runs, by turns side by side and one by one, after which the faster is kept.
inline constexpr int kTimedGroupRuns = 8;  // chosen, not measured
/// Bytes of a batched tensor that is kept for the next run: there is one for each number of rows.
inline constexpr int64_t kLargestKeptRows = 4 << 10;  // chosen, not measured
/// Rows held for each waiting invocation beyond which unread rows are not searched for. Measured
/// with the search: 3 MiB less between steps of a TreeLSTM over 25 trees.
inline constexpr size_t kMostHeldForOne = 8;
/// Numbers of rows up to which what is known is kept by number.
inline constexpr size_t kLargestKnownRows = 64;  // chosen, not measured
/// Bytes of operands that are stacked for one product of a weight's gradient. Measured on the same
/// TreeLSTM: 7 to 8 MiB a step instead of 11 to 12, in the same time.
inline constexpr size_t kMostSummedBytes = 512 << 10;
/// Rows of such a stack, at least: the sum is read and written for each. Measured with
/// kMostSummedBytes.
inline constexpr size_t kLeastSummedRows = 128;
/// Bytes of addresses that an arena reserves beyond the need of its first plan.
inline constexpr int64_t kLeastReserved = int64_t{1} << 30;  // chosen, not measured
/// Times the need of its first plan that an arena reserves.
inline constexpr int64_t kReservedShare = 8;  // chosen, not measured
/// Bytes of convolutions' operands for each byte that a change of layout copies. Measured as a
/// whole: ResNet-50 86 to 66 ms, Inception-v3 89 to 70 ms of processor time.
inline constexpr int64_t kLeastLayoutGain = 2;

// ---- Autotuning and own code for operators (torch/) ---------------------------------------------

/// Runs of each candidate when an operator is autotuned; the least time counts.
inline constexpr int kTunedRepetitions = 3;  // chosen, not measured
/// Share of the first candidate's time that another must stay below.
inline constexpr double kClearlyFasterCandidate = 0.9;  // chosen, not measured
/// Multiplications of a product that is worth autotuning.
inline constexpr int64_t kLeastTunedOperations = 1'000'000;  // chosen, not measured
/// Elements beside which the half MiB that oneDNN keeps for each shape is little. Measured on
/// ResNet-50, which held 30 MiB of it.
inline constexpr int64_t kLeastForOnednn = 1 << 21;
/// Rows and columns of a product with a transposed right operand for our own code: it copies that
/// operand.
inline constexpr int kLeastSidesForOwnProduct = 8;  // chosen, not measured
/// Elements of a whole im2col matrix beyond which the library is faster.
inline constexpr int64_t kMostIm2colElements = 1 << 20;  // chosen, not measured
/// Elements of that matrix at a time: a MiB. Measured on 11 convolutions with gradients: 0.94 to
/// 1.00 of the time of the whole, pix2pix 30 MiB instead of 32.
inline constexpr int64_t kIm2colPieceElements = 1 << 18;
/// Windows of an image that is multiplied by itself; images with fewer are multiplied together.
inline constexpr int64_t kManyWindows = 256;  // chosen, not measured
/// Parts of a batch whose images are multiplied one by one.
inline constexpr int64_t kBatchParts = 8;  // chosen, not measured
/// Bytes that one thread copies by itself.
inline constexpr int64_t kLargestPlainCopy = 1 << 16;  // chosen, not measured
/// Bytes of short tensors that one thread joins.
inline constexpr size_t kLargestJoined = 1 << 20;  // chosen, not measured
/// Bytes of a block of the memory pool; smaller ones are malloc's.
inline constexpr size_t kLeastPooled = size_t{1} << 16;  // chosen, not measured
/// Bytes to which its blocks are rounded: a page.
inline constexpr size_t kPoolGranularity = size_t{1} << 12;  // chosen, not measured
/// Partial sums of a channel.
inline constexpr int64_t kMostChannelChunks = 16;  // chosen, not measured
/// Bytes of a row that a change of layout copies as it is.
inline constexpr int64_t kLeastCopiedRow = 64;  // chosen, not measured
/// Size that a named dimension has where torch is asked for a gradient's name.
inline constexpr int64_t kSampleSize = 6;  // chosen, not measured
/// Elements of a tensor that is made for that question.
inline constexpr int64_t kMostSampleElements = 1 << 14;  // chosen, not measured

// ---- Traces of imperative iterations (trace/) ---------------------------------------------------

/// Trips of a loop that is unrolled if their number never varies.
inline constexpr int64_t kLongestUnrolledTrips = 4;  // chosen, not measured
/// Traces kept that added nothing. A later trace may make the graph anew, of those that are kept.
inline constexpr size_t kMostCoveredTraces = 64;  // chosen, not measured
/// How deeply branches of a generated graph nest, which passes go through by recursion.
inline constexpr int kDeepestBranches = 200;  // chosen, not measured

}  // namespace janus::policy
