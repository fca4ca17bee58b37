#include "bind/cuts.h"

#include <set>

#include "base/check.h"
#include "base/options.h"
#include "base/policy.h"
#include "base/printable.h"
#include "speculate/describe.h"
#include "syntax/slice.h"

namespace janus::bind {
namespace {

using speculate::Call;
using speculate::Dispatcher;
using speculate::Reason;

constexpr speculate::DispatchOptions kSegmentOptions = {
    .profile_runs = policy::kProfiledRunsOfSegment, .least_work = policy::kLeastWorkOfPart};

bool is_simple(const syntax::Statement& statement) {
  using syntax::StatementKind;
  switch (statement.kind) {
    case StatementKind::If:
    case StatementKind::For:
    case StatementKind::While:
    case StatementKind::With:
    case StatementKind::Try:
    case StatementKind::TryStar:
    case StatementKind::Match:
      return false;
    default:
      return true;
  }
}

}  // namespace

Segment::Segment(std::string name, const std::shared_ptr<const syntax::Tree>& part, size_t from,
                 size_t to, speculate::DispatchOptions options)
    : begin(from),
      end(to),
      tree(part),
      dispatcher(std::move(name), printable(*part->file), part->body.front()->span.line, options) {}

bool Cuts::possible() const {
  return tree_->body.size() > 1 || (!tree_->body.empty() && !is_simple(*tree_->body.front()));
}

void Cuts::cut_whole(const Dispatcher& whole, Reason reason) {
  starting_at_.resize(tree_->body.size());
  in_python_.resize(tree_->body.size());
  cut(0, tree_->body.size(), whole, std::move(reason));
}

void Cuts::cut(const std::shared_ptr<Segment>& segment, Reason reason) {
  starting_at_[segment->begin] = nullptr;
  if (reason.statement >= 0) reason.statement += static_cast<int>(segment->begin);
  cut(segment->begin, segment->end, segment->dispatcher, std::move(reason));
}

void Cuts::cut(size_t begin, size_t end, const Dispatcher& seen, Reason reason) {
  log("speculate",
      cat(seen.name(), " is cut at statement ", reason.statement, ": ", reason.describe()));
  if (reason.statement >= 0) {
    const auto at = static_cast<size_t>(reason.statement);
    TORCHJANUS_CHECK(begin <= at && at < end, "cuts: statement ", at, " is not in ", begin, " to ",
                     end);
    add(begin, at, seen);
    add(at + 1, end, seen);
  } else if (end - begin > 1) {
    const size_t middle = begin + (end - begin) / 2;
    add(begin, middle, seen);
    add(middle, end, seen);
  }
  cuts_.push_back({begin, end, reason.statement, std::move(reason)});
}

void Cuts::add(size_t begin, size_t end, const Dispatcher& seen) {
  if (begin == end) return;
  std::set<size_t> variables;
  for (size_t i = begin; i < end; ++i) variables.insert(bound_[i].begin(), bound_[i].end());
  std::vector<std::string> assigned;
  for (const size_t number : variables) assigned.push_back(names_[number]);
  const auto tree = syntax::slice(tree_, begin, end, assigned);
  const int first = tree->body.front()->span.line, last = tree->body.back()->span.end_line;
  const auto segment =
      std::make_shared<Segment>(first == last ? cat(tree_->name, ", line ", first)
                                              : cat(tree_->name, ", lines ", first, " to ", last),
                                tree, begin, end, kSegmentOptions);
  segment->variables.assign(variables.begin(), variables.end());
  segment->dispatcher.inherit(seen);
  segment->dispatcher.roots = seen.roots;
  segment->dispatcher.is_part = true;
  segment->dispatcher.open_account_of_part(seen);
  starting_at_[begin] = segment;
}

graph::SourceSpan Cuts::place_of(const Cut& cut) const {
  if (cut.statement >= 0) return tree_->body[static_cast<size_t>(cut.statement)]->span;
  graph::SourceSpan place = tree_->body[cut.begin]->span;
  place.end_line = tree_->body[cut.end - 1]->span.end_line;
  return place;
}

Spent Cuts::in_python(const Segment& segment) const {
  Spent sum{in_python_[segment.begin].runs, 0};
  for (size_t i = segment.begin; i < segment.end; ++i)
    sum.milliseconds += in_python_[i].milliseconds;
  return sum;
}

std::vector<std::shared_ptr<Segment>> Cuts::segments() const {
  std::vector<std::shared_ptr<Segment>> result;
  for (const auto& each : starting_at_)
    if (each != nullptr) result.push_back(each);
  return result;
}

}  // namespace janus::bind
