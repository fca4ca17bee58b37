#include "random_program.h"

#include <algorithm>
#include <optional>
#include <random>
#include <sstream>

#include "base/check.h"

namespace janus::trace {

namespace {
constexpr size_t kRegisters = 4, kCells = 3;
}

struct RandomProgram::Statement {
  enum class Kind { call, branch, loop, leave, next, feed, cell, look, layers, write };
  Kind kind = Kind::call;
  Location location = 0;
  std::string name;  // of the operator
  OperatorId op = 0;
  std::vector<size_t> operands;  // registers
  size_t target = 0;             // a register; of `cell` and `write` the cell too
  bool number = false;           // the last operand is a number
  std::vector<Statements> blocks;
  size_t trips = 0;  // fixed; 0: drawn

  void print(std::ostream& out, const std::string& indent) const {
    static const char* words[] = {"call", "branch", "loop", "break",  "continue",
                                  "feed", "cell",   "look", "layers", "write"};
    out << indent << words[static_cast<int>(kind)] << ' ' << location << ' ' << name;
    for (const size_t operand : operands) out << " r" << operand;
    out << (number ? " number" : "") << " -> r" << target;
    if (trips != 0) out << " trips " << trips;
    out << '\n';
    for (const Statements& block : blocks) {
      for (const Statement& statement : block) statement.print(out, indent + "  ");
      out << indent << "-\n";
    }
  }
};

RandomProgram::~RandomProgram() = default;

RandomProgram::RandomProgram(unsigned seed, Names& names)
    : RandomProgram(
          [random = std::mt19937(seed)](size_t count) mutable {
            return std::uniform_int_distribution<size_t>(0, count - 1)(random);
          },
          names) {}

RandomProgram::RandomProgram(Choice choice, Names& names)
    : choice_(std::move(choice)), names_(names) {
  varies_sizes_ = draw(3) == 0;
  body_ = std::make_unique<Statements>(make(3 + draw(5), 3, false));
}

std::string RandomProgram::text() const {
  std::ostringstream out;
  for (const Statement& statement : *body_) statement.print(out, "");
  return std::move(out).str();
}

RandomProgram::Statements RandomProgram::make(size_t count, int depth, bool in_loop) {
  Statements result;
  for (size_t i = 0; i < count; ++i) result.push_back(make_statement(depth, in_loop));
  return result;
}

RandomProgram::Statement RandomProgram::make_call() {
  Statement call{.location = next_location_++};
  const auto reg = [&] { return draw(kRegisters); };
  call.target = reg();
  call.operands = {reg(), reg()};
  Operator op{.name = "aten::add.Tensor", .operands = "self,other"};
  switch (draw(6)) {
    case 0:
      op.attributes = {{"alpha", int64_t{2}}};
      break;
    case 1:
      op.name = "aten::mul.Tensor";
      call.number = true;
      call.operands.pop_back();
      break;
    case 2:
      op = {.name = "aten::neg", .operands = "self"};
      call.operands.pop_back();
      break;
    case 3:
      op = {.name = "test::mix", .operands = "a,b"};
      break;
    case 4:
      op = {.name = "test::both", .operands = "a,b"};
      break;
    default:
      break;
  }
  call.name = op.name;
  if (!op.attributes.empty()) call.name += " twice";
  call.op = names_.operators.intern(std::move(op));
  return call;
}

RandomProgram::Statement RandomProgram::make_statement(int depth, bool in_loop) {
  using Kind = Statement::Kind;
  const size_t kind = draw(depth > 0 ? 16 : 10);
  Statement result{.location = next_location_};
  if (kind < 5) return make_call();
  result.target = draw(kRegisters);
  if (kind == 5) result.kind = Kind::feed;
  if (kind == 6) result.kind = Kind::cell;
  if (kind == 7) result.kind = Kind::look;
  if (kind == 8) result.kind = Kind::write;
  if (kind == 9) result.kind = !in_loop ? Kind::look : draw(2) == 0 ? Kind::leave : Kind::next;
  if (kind == 9 && in_loop) {  // only in one of two cases
    Statement branch{.kind = Kind::branch};
    branch.blocks = {{make_call(), result}, {}};
    return branch;
  }
  if (kind == 10) {
    result = make_call();
    result.kind = Kind::layers;
    result.number = false;
    result.operands.resize(1);
    result.op = names_.operators.intern({.name = "test::mix", .operands = "a,b"});
    result.name = "test::mix";
  }
  if (kind > 10 && kind < 14) {
    result.kind = Kind::branch;
    for (size_t i = 2 + draw(2); i > 0; --i)
      result.blocks.push_back(make(draw(4), depth - 1, in_loop));
  }
  if (kind >= 14) {
    result.kind = Kind::loop;
    result.trips = draw(3) == 0 ? 1 + draw(3) : 0;
    result.blocks = {make(1 + draw(4), depth - 1, true)};
  }
  if (result.kind == Kind::write) {
    const auto cell = static_cast<CellId>(draw(kCells));
    result.op = names_.operators.write(cell);
    result.operands = {draw(kRegisters)};
    result.target = cell;
    ++next_location_;
  }
  return result;
}

std::vector<double> RandomProgram::cell_contents(CellId cell, size_t size) {
  std::vector<double> result;
  for (size_t i = 0; i < size; ++i)
    result.push_back(0.3 + 0.7 * static_cast<double>(cell) + 0.01 * static_cast<double>(i));
  return result;
}

/// One run: registers hold values, which know where they come from.
class ProgramRunner {
 public:
  using Statement = RandomProgram::Statement;

  ProgramRunner(RandomProgram& program) : program_(program) {
    run_.size = program.varies_sizes_ ? 2 + program.draw(3) : 3;
    run_.cell_size = cell_size_ = program.varies_sizes_ ? 1 : 3;
    for (size_t i = 0; i < kRegisters; ++i) registers_.push_back(i == 0 ? feed() : cell(i - 1));
  }

  ProgramRun run() {
    execute(*program_.body_);
    return std::move(run_);
  }

 private:
  enum class Flow { on, leave, next };
  struct Value {
    Operand operand;
    bool is_unused_feed = false;
    size_t feed = 0;  // which of all that were made
    std::vector<double> data;
  };

  Value feed() {
    Value value{.is_unused_feed = true, .feed = numbers_of_feeds_.size()};
    numbers_of_feeds_.emplace_back();
    for (size_t i = 0; i < run_.size; ++i)
      value.data.push_back(0.001 * static_cast<double>(program_.draw(2000)) - 1);
    return value;
  }

  Value cell(CellId id) {
    std::vector<double> data = RandomProgram::cell_contents(id, cell_size_);
    return {.operand = Operand::of_cell(id, type_of(data)), .data = std::move(data)};
  }

  /// Feeds are numbered in the order of their first use.
  Operand use(const Value& value) {
    if (!value.is_unused_feed) return value.operand;
    auto& number = numbers_of_feeds_[value.feed];
    if (!number) {
      number = static_cast<uint32_t>(run_.feeds.size());
      run_.feeds.push_back(value.data);
    }
    return Operand::feed(*number, type_of(value.data));
  }

  Flow execute(const RandomProgram::Statements& statements) {
    for (const Statement& statement : statements)
      if (const Flow flow = execute(statement); flow != Flow::on) return flow;
    return Flow::on;
  }

  Flow execute(const Statement& statement) {
    using Kind = Statement::Kind;
    switch (statement.kind) {
      case Kind::call:
        call(statement, {});
        return Flow::on;
      case Kind::branch:
        return execute(statement.blocks[program_.draw(statement.blocks.size())]);
      case Kind::loop:
        return loop(statement);
      case Kind::leave:
        return Flow::leave;
      case Kind::next:
        return Flow::next;
      case Kind::feed:
        registers_[statement.target] = feed();
        return Flow::on;
      case Kind::cell:
        registers_[statement.target] = cell(statement.target % kCells);
        return Flow::on;
      case Kind::look:
        look(registers_[statement.target]);
        return Flow::on;
      case Kind::layers:
        for (CellId id = 0; id < kCells; ++id) call(statement, id);
        return Flow::on;
      case Kind::write: {
        const Value& value = registers_[statement.operands[0]];
        if (value.data.size() != cell_size_) return Flow::on;
        run_.written[statement.target] = value.data;
        run_.trace.events.push_back({statement.op, statement.location, {use(value)}, {}});
        run_.results.emplace_back();
        return Flow::on;
      }
    }
    return Flow::on;
  }

  Flow loop(const Statement& statement) {
    const size_t trips = statement.trips != 0 ? statement.trips : program_.draw(5);
    for (size_t i = 0; i < trips; ++i)
      if (execute(statement.blocks[0]) == Flow::leave) break;
    return Flow::on;
  }

  void look(const Value& value) {
    if (value.operand.kind != Operand::Kind::result || value.is_unused_feed) return;
    run_.trace.fetches.push_back({.event = value.operand.index, .result = value.operand.result});
  }

  void call(const Statement& statement, std::optional<CellId> weight) {
    std::vector<std::vector<double>> data;
    Event event{.op = statement.op, .location = statement.location};
    for (const size_t operand : statement.operands) {
      event.operands.push_back(use(registers_[operand]));
      data.push_back(registers_[operand].data);
    }
    if (weight) {
      data.push_back(RandomProgram::cell_contents(*weight, cell_size_));
      event.operands.push_back(Operand::of_cell(*weight, type_of(data.back())));
    }
    if (statement.number) {
      run_.numbers.push_back(0.5 + 0.01 * static_cast<double>(program_.draw(50)));
      event.operands.push_back(Operand::number(graph::Type::f64()));
      data.push_back({run_.numbers.back()});
    }
    std::vector<std::vector<double>> results = compute(statement.name, data);
    event.results.assign(results.size(), type_of(results[0]));
    const auto number = static_cast<uint32_t>(run_.trace.events.size());
    run_.trace.events.push_back(std::move(event));
    const auto last = static_cast<uint32_t>(results.size() - 1);
    registers_[statement.target] = {.operand = Operand::of_result(number, last),
                                    .data = results.back()};
    run_.results.push_back(std::move(results));
  }

  static graph::Type type_of(const std::vector<double>& data) {
    return graph::Type::tensor(graph::DType::f64, {static_cast<int64_t>(data.size())});
  }

  static std::vector<std::vector<double>> compute(const std::string& name,
                                                  const std::vector<std::vector<double>>& data) {
    const std::vector<double>& other = data.back();
    std::vector<double> first(std::max(data[0].size(), other.size())), second = first;
    for (size_t i = 0; i < first.size(); ++i) {
      const double a = data[0][data[0].size() == 1 ? 0 : i], b = other[other.size() == 1 ? 0 : i];
      second[i] = RandomProgram::mix(b, a);
      if (name == "aten::add.Tensor") first[i] = a + b;
      if (name == "aten::add.Tensor twice") first[i] = a + 2 * b;
      if (name == "aten::mul.Tensor") first[i] = a * b;
      if (name == "aten::neg") first[i] = -a;
      if (name == "test::mix" || name == "test::both") first[i] = RandomProgram::mix(a, b);
    }
    if (name == "test::both") return {first, second};
    return {first};
  }

  RandomProgram& program_;
  ProgramRun run_;
  size_t cell_size_ = 0;
  std::vector<Value> registers_;
  std::vector<std::optional<uint32_t>> numbers_of_feeds_;
};

ProgramRun RandomProgram::run() { return ProgramRunner(*this).run(); }

}  // namespace janus::trace
